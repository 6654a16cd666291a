"""BGPPeerGroup: what several neighbours have in common, and neighbours that are not known."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bgp_instance as instances
from holdfast.engine.kinds import bgp_peer as peers
from holdfast.engine.kinds.bfd import BFD_PROFILE
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_peer import BGP_PEER_GROUP
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.routing import session
from holdfast.resources.routing.bgp_instance import GROUPS, instance_of, vrf_of
from holdfast.resources.routing.session import Session
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import listed, optional
from holdfast.resources.spec.values import Network, prefix


class BGPPeerGroup(Session):
    listen_ranges: tuple[Network, ...] = optional(
        listed(prefix(), least=0),
        "whoever calls from there is a neighbour of the group; needs `remoteAS`",
        default=(),
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPPeerGroup = resource.spec
    yield from session.check(spec)
    if spec.listen_ranges and spec.remote_as is None:
        yield Fault(("remoteAS",), "is missing: `listenRanges` needs it")
    for index, network in enumerate(spec.listen_ranges):
        at = ("listenRanges", index)
        if network in spec.listen_ranges[:index]:
            yield Fault(at, f"{network} is there already")
        if network.is_multicast:
            yield Fault(at, f"no neighbour is in {network}")
    versions = {network.version for network in spec.listen_ranges}
    if spec.source is not None and versions - {spec.source.version}:
        yield Fault(("source",), "is of another family than `listenRanges`")


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: BGPPeerGroup = resource.spec
    instance = instance_of(spec.instance, site)
    vrf = vrf_of(instance, site)
    versions = {network.version for network in spec.listen_ranges}
    # Neighbours that nobody declares have nothing but what the group says.
    told = session.told(
        resource, site, instance, tuple(f"ipv{version}" for version in sorted(versions))
    )
    for artifact in told.artifacts:
        yield Intent(resource.id, artifact, resource.place)
    group = peers.bgp_peer_group(
        resource.name, told.session, vrf=vrf, listen_ranges=map(str, spec.listen_ranges)
    )
    requires = (instances.instance_key(vrf), *told.requires)
    yield Intent(resource.id, group, resource.place, requires=requires)


def open_to_others(resource: Resource) -> Iterator[Fault]:
    """A file is not for other sources to name."""
    if resource.spec.password_file is not None:
        yield Fault(("passwordFile",), "names a file, which only the startup file may do")


KINDS = (
    Kind(
        BGPPeerGroup,
        "What several neighbours have in common; with `listenRanges`, neighbours that call from"
        " there need no BGPPeer. FRR knows the group by the name of the resource.",
        (BGP_PEER_GROUP.name, BGP_FILTER.name, BFD_PROFILE.name),
        """\
remoteAS: external
listenRanges: [10.0.0.0/24]
bfd: {detectMultiplier: 5}
families:
  - family: ipv4
    maxPrefixes: 100
""",
        intents,
        check,
        session.read_password,
        groups=GROUPS,
        open_to_others=open_to_others,
        reaches=session.reaches,
        cross_checks="routing.bgp_checks",
    ),
)
