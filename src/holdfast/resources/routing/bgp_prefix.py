"""BGPPrefix: prefixes that BGP tells to its peers."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds import bgp_instance as instances
from holdfast.engine.kinds import bgp_network as networks
from holdfast.engine.kinds.bgp_network import BGP_NETWORK, NetworkTemplate, pack_key
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing import path_attributes
from holdfast.resources.routing.bgp_instance import (
    GROUPS,
    BGPInstance,
    instance_of,
    vrf_of,
)
from holdfast.resources.routing.path_attributes import PathAttributes
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import listed, optional, reference
from holdfast.resources.spec.values import Network, prefix


class BGPPrefix(PathAttributes):
    prefixes: tuple[Network, ...] | None = optional(listed(prefix()), "what is told, all alike")
    prefix: Network | None = optional(prefix(), "or else a single one")
    instance: str | None = optional(
        reference(BGPInstance), "which tells them; where not given, the one outside of all VRFs"
    )

    @property
    def told(self) -> tuple[Network, ...]:
        return self.prefixes or ((self.prefix,) if self.prefix is not None else ())


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPPrefix = resource.spec
    if (spec.prefix is None) == (spec.prefixes is None):
        yield Fault((), "needs either `prefix` or `prefixes`, one of them")
    seen: set[Network] = set()
    for index, network in enumerate(spec.told):
        at = ("prefixes", index) if spec.prefixes is not None else ("prefix",)
        if network in seen:
            yield Fault(at, f"{network} is there already")
        seen.add(network)
        trouble = untold(network)
        if trouble:
            yield Fault(at, f"{network} {trouble}")
    yield from path_attributes.check(spec, {network.version for network in spec.told})


def untold(network: Network) -> str:
    """Why a prefix is none that a router tells another; "" if it is one."""
    if not network.prefixlen:
        return ""
    if network.is_multicast:
        return "is of multicast groups, which unicast BGP does not carry"
    if network.is_loopback:
        return "is every machine's own"
    if network.version == 6 and network.is_link_local:
        return "is of a link, and means nothing beyond it"
    return ""


def intents(resource: Resource, site: Site) -> Iterator[BulkIntent]:
    spec: BGPPrefix = resource.spec
    instance = instance_of(spec.instance, site)
    vrf = vrf_of(instance, site)
    local_as = instance.spec.local_as if instance is not None else 0
    attributes = path_attributes.attributes(spec, local_as)
    requires = (instances.instance_key(vrf),)
    for family in (4, 6):
        keys = [
            pack_key(network.network_address.packed, network.prefixlen)
            for network in spec.told
            if network.version == family
        ]
        if keys:
            shared = NetworkTemplate(family, vrf, attributes)
            yield BulkIntent(resource.id, networks.batch(shared, keys), resource.place, requires)


def size(resource: Resource) -> int:
    """Each prefix counts: a list is no way round a limit."""
    return max(1, len(resource.spec.told))


def reaches(resource: Resource) -> Iterator[Reach]:
    spec = resource.spec
    for index, network in enumerate(spec.told):
        at = ("prefixes", index) if spec.prefixes is not None else ("prefix",)
        yield Reach(at, network, advertised=True)


KINDS = (
    Kind(
        BGPPrefix,
        "Prefixes that are told to the peers of an instance, whether there is a route to them or"
        " not, and with which attributes. Those that are told alike share one route-map of FRR's;"
        " a prefix that gets other attributes is told anew, without a withdrawal in between.",
        (BGP_NETWORK.name,),
        """\
prefixes: [203.0.113.0/24, "2001:db8:113::/48"]
communities: ["65001:100", no-export]
med: 0
""",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
        size=size,
        cross_checks="routing.bgp_checks",
    ),
)
