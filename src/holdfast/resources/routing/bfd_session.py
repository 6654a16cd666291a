"""BFDSession: BFD with a peer that nothing else asks for."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bfd
from holdfast.engine.kinds.bfd import BFD_PEER
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing import bfd_use
from holdfast.resources.routing.bfd_profile import timing
from holdfast.resources.routing.bfd_use import BFDUse
from holdfast.resources.routing.bgp_instance import GROUPS
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import flag, link_reference, optional, required
from holdfast.resources.spec.values import Address, address


class BFDSession(BFDUse):
    peer: Address = required(address(), "the address of the peer")
    interface: str | None = optional(link_reference(), "the link to it")
    local_address: Address | None = optional(address(), "the own address; needed over several hops")
    multihop: bool = optional(flag(), "the peer is several hops away", default=False)
    vrf: str | None = optional(link_reference(), "the VRF it is in")
    shutdown: bool = optional(flag(), "keep the session down", default=False)


def check(resource: Resource) -> Iterator[Fault]:
    spec: BFDSession = resource.spec
    yield from bfd_use.check(spec, ())
    if spec.peer.is_multicast or spec.peer.is_unspecified:
        yield Fault(("peer",), f"{spec.peer} cannot be the address of a peer")
    if spec.local_address is not None:
        if spec.local_address.version != spec.peer.version:
            yield Fault(("localAddress",), f"must be an IPv{spec.peer.version} address, as `peer`")
        elif spec.local_address == spec.peer:
            yield Fault(("localAddress",), "is the address of the peer")
    if spec.multihop:
        if spec.local_address is None:
            yield Fault(("localAddress",), "is missing: over several hops FRR needs it")
        if spec.interface is not None:
            yield Fault(("interface",), "has no meaning over several hops")
    elif spec.peer.is_link_local and spec.interface is None:
        yield Fault(("interface",), f"is missing: {spec.peer} is one of a link")


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: BFDSession = resource.spec
    interface = site.ifname(spec.interface) if spec.interface is not None else ""
    vrf = site.ifname(spec.vrf) if spec.vrf is not None else DEFAULT_VRF
    name = bfd.bfd_peer_name(
        str(spec.peer),
        multihop=spec.multihop,
        local_address=str(spec.local_address or ""),
        vrf=vrf,
        interface=interface,
    )
    made = bfd.bfd_peer(
        name,
        profile=spec.profile,
        timing=timing(spec) if spec.profile is None else None,
        shutdown=spec.shutdown,
    )
    requires = [*site.link_key(interface), *site.link_key(vrf)]
    if spec.profile is not None:
        requires.append(bfd.profile_key(spec.profile))
    yield Intent(resource.id, made, resource.place, requires=tuple(requires))


def reaches(resource: Resource) -> Iterator[Reach]:
    yield Reach(("peer",), peer=str(resource.spec.peer))


KINDS = (
    Kind(
        BFDSession,
        "BFD with a peer, for its own sake. A BGPPeer or an OSPFInterface with `bfd` has a session"
        " without one of these.",
        (BFD_PEER.name,),
        "peer: 192.0.2.254\ninterface: wan\nreceiveInterval: 100ms\ntransmitInterval: 100ms\n",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
        cross_checks="routing.bgp_checks",
    ),
)
