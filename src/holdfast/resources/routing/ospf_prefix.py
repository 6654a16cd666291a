"""OSPFPrefix: prefixes that OSPF tells, whatever link they are on."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.kinds import ospf, route
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_PREFIX
from holdfast.engine.kinds.route import ROUTE, pack_key
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing.bgp_instance import GROUPS
from holdfast.resources.routing.bgp_prefix import untold
from holdfast.resources.routing.ospf_interface import instance
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec, flag, integer, listed, optional
from holdfast.resources.spec.values import Network, prefix

# zebra takes the first byte of a metric for the distance: 254 is behind all that it learns.
LAST_METRIC = 254 << 24
_METRIC_MAX = 16777214


class OSPFPrefix(Spec):
    prefixes: tuple[Network, ...] | None = optional(listed(prefix()), "what is told, all alike")
    prefix: Network | None = optional(prefix(), "or else a single one")
    metric: int | None = optional(integer(0, _METRIC_MAX), "lower is preferred; 20 where not given")
    metric_type: int = optional(
        integer(1, 2),
        "1: the way to this router counts, too; 2: only where metrics are equal",
        default=2,
    )
    discard_route: bool = optional(
        flag(),
        "a route of the kernel that drops what has no better way, behind all others: OSPF tells"
        " only what there is a route to. false: it is told while there is a route of the kernel, of"
        " a link or a static one",
        default=True,
    )

    @property
    def told(self) -> tuple[Network, ...]:
        return self.prefixes or ((self.prefix,) if self.prefix is not None else ())


def check(resource: Resource) -> Iterator[Fault]:
    spec: OSPFPrefix = resource.spec
    if (spec.prefix is None) == (spec.prefixes is None):
        yield Fault((), "needs either `prefix` or `prefixes`, one of them")
    seen: set[Network] = set()
    for index, network in enumerate(spec.told):
        at = ("prefixes", index) if spec.prefixes is not None else ("prefix",)
        if network in seen:
            yield Fault(at, f"{network} is there already")
        seen.add(network)
        if not network.prefixlen:
            yield Fault(at, "a default route is not told so: every router would send all here")
        elif trouble := untold(network):
            yield Fault(at, f"{network} {trouble}")


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent]:
    spec: OSPFPrefix = resource.spec
    for family, version in ((4, 2), (6, 3)):
        networks = [network for network in spec.told if network.version == family]
        if not networks:
            continue
        router = instance(version, DEFAULT_VRF, site)
        yield Intent(resource.id, router, resource.place)
        if spec.discard_route:
            shared = route.template(family, metric=LAST_METRIC, kind="blackhole")
            keys = [
                pack_key(network.network_address.packed, network.prefixlen) for network in networks
            ]
            yield BulkIntent(resource.id, route.batch(shared, keys), resource.place)
        for network in networks:
            made = ospf.ospf_prefix(str(network), metric=spec.metric, metric_type=spec.metric_type)
            yield Intent(resource.id, made, resource.place, requires=(router.key,))


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
        OSPFPrefix,
        "Prefixes that OSPF tells as external ones, IPv4 by version 2 and IPv6 by version 3. OSPF"
        " tells what there is a route to, so one that drops what it gets is made, behind all"
        " others.",
        (OSPF_PREFIX.name, OSPF_INSTANCE.name, ROUTE.name),
        'prefixes: [203.0.113.10/32, "2001:db8:113::10/128"]\nmetric: 10\nmetricType: 1\n',
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
        size=size,
    ),
)
