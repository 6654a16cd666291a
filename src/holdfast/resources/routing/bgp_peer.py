"""BGPPeer: a neighbour that BGP speaks to."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bgp_instance as instances
from holdfast.engine.kinds import bgp_peer as peers
from holdfast.engine.kinds.bfd import BFD_PROFILE
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_peer import BGP_PEER
from holdfast.resources.resource import Fault, Kind, Reach, Resource
from holdfast.resources.routing import session
from holdfast.resources.routing.bgp_instance import GROUPS, instance_of, vrf_of
from holdfast.resources.routing.bgp_peer_group import BGPPeerGroup
from holdfast.resources.routing.session import Session
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import link_reference, optional, reference
from holdfast.resources.spec.values import Address, address


class BGPPeer(Session):
    address: Address | None = optional(address(), "of the neighbour, or else `interface`")
    interface: str | None = optional(
        link_reference(), "the link it is on: it is found there, whatever its address (unnumbered)"
    )
    group: str | None = optional(
        reference(BGPPeerGroup), "what it does not say itself, this group says"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPPeer = resource.spec
    peer = spec.address
    if (peer is None) == (spec.interface is None):
        yield Fault((), "needs either `address` or `interface`, one of them")
    if spec.remote_as is None and spec.group is None:
        yield Fault(("remoteAS",), "is missing, and no `group` says it")
    yield from session.check(spec)
    if peer is None:
        for name, value in (("source", spec.source), ("ebgpMultihop", spec.ebgp_multihop)):
            if value is not None:
                yield Fault((name,), "has no meaning for a neighbour on a link")
        return
    if peer.is_multicast or peer.is_unspecified or peer.is_loopback:
        yield Fault(("address",), f"{peer} cannot be the address of a neighbour")
    if peer.is_link_local and peer.version == 6:
        yield Fault(("address",), f"{peer} is one of a link: name the link in `interface` instead")
    if spec.source is not None:
        if spec.source.version != peer.version:
            yield Fault(("source",), f"must be an IPv{peer.version} address, as `address`")
        elif spec.source == peer:
            yield Fault(("source",), "is the address of the neighbour")
    if spec.extended_nexthop and peer.version == 4:
        yield Fault(("extendedNexthop",), "is for sessions over IPv6")


def name_of(resource: Resource, site: Site) -> str:
    """As FRR calls it: its address, or the link."""
    spec: BGPPeer = resource.spec
    return str(spec.address) if spec.address is not None else site.ifname(spec.interface or "")


def _families(spec: BGPPeer) -> tuple[str, ...]:
    """Of one that says none: those of its group, or that of its address; on a link, both."""
    if spec.group is not None:
        return ()
    if spec.address is None:
        return ("ipv4", "ipv6")
    return ("ipv4",) if spec.address.version == 4 else ("ipv6",)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: BGPPeer = resource.spec
    instance = instance_of(spec.instance, site)
    vrf = vrf_of(instance, site)
    told = session.told(resource, site, instance, _families(spec))
    for artifact in told.artifacts:
        yield Intent(resource.id, artifact, resource.place)
    requires = [instances.instance_key(vrf), *told.requires]
    if spec.group is not None:
        requires.append(peers.group_key(spec.group, vrf))
    if spec.interface is not None:
        requires += site.link_key(site.ifname(spec.interface))
    peer = peers.bgp_peer(name_of(resource, site), told.session, vrf=vrf, group=spec.group)
    yield Intent(resource.id, peer, resource.place, requires=tuple(requires))


def open_to_others(resource: Resource) -> Iterator[Fault]:
    """A file is not for other sources to name."""
    if resource.spec.password_file is not None:
        yield Fault(("passwordFile",), "names a file, which only the startup file may do")


def reaches(resource: Resource) -> Iterator[Reach]:
    """Whoever the neighbour is, the AS numbers that are said of it and to it, and what comes and
    goes by it."""
    yield from session.reaches(resource)
    spec: BGPPeer = resource.spec
    if spec.address is not None:
        yield Reach(("address",), peer=str(spec.address))
    if spec.remote_as is not None:
        number = int(spec.remote_as) if spec.remote_as.isdecimal() else 0
        yield Reach(("remoteAS",), autonomous_system=number, unnumbered_as=not number)
    if spec.local_as is not None:
        yield Reach(("localAS",), autonomous_system=spec.local_as)


KINDS = (
    Kind(
        BGPPeer,
        "A neighbour, and what is taken from it and told to it. Nothing is taken unless"
        " `importFilter` or `importAll` says so, and it is told what this AS begins, unless"
        " `exportFilter` or `exportAll` says otherwise. The password stands in a file, and in no"
        " plan, event or log.",
        (BGP_PEER.name, BGP_FILTER.name, BFD_PROFILE.name),
        """\
address: 192.0.2.254
remoteAS: 65000
description: upstream
keepalive: 10s
holdTime: 30s
bfd: {receiveInterval: 100ms, transmitInterval: 100ms}
families:
  - family: ipv4
    importAll: true
    maxPrefixes: 1000
""",
        intents,
        check,
        session.read_password,
        groups=GROUPS,
        open_to_others=open_to_others,
        reaches=reaches,
        cross_checks="routing.bgp_checks",
    ),
)
