"""BGPAggregate: one prefix in place of many below it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bgp_instance as instances
from holdfast.engine.kinds import bgp_network
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.routing import path_attributes
from holdfast.resources.routing.bgp_instance import (
    GROUPS,
    BGPInstance,
    instance_of,
    vrf_of,
)
from holdfast.resources.routing.bgp_prefix import untold
from holdfast.resources.routing.path_attributes import PathAttributes
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import flag, optional, reference, required
from holdfast.resources.spec.values import Network, prefix


class BGPAggregate(PathAttributes):
    prefix: Network = required(prefix(), "told while BGP knows at least one prefix below it")
    summary_only: bool = optional(flag(), "those below it are not told", default=False)
    as_set: bool = optional(
        flag(), "with the AS numbers in the paths of those below it", default=False
    )
    instance: str | None = optional(
        reference(BGPInstance), "which tells it; where not given, the one outside of all VRFs"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPAggregate = resource.spec
    network = spec.prefix
    trouble = untold(network)
    if trouble:
        yield Fault(("prefix",), f"{network} {trouble}")
    if network.prefixlen == network.max_prefixlen:
        yield Fault(("prefix",), f"nothing is below {network}: declare a BGPPrefix")
    yield from path_attributes.check(spec, {network.version})


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: BGPAggregate = resource.spec
    instance = instance_of(spec.instance, site)
    vrf = vrf_of(instance, site)
    local_as = instance.spec.local_as if instance is not None else 0
    made = bgp_network.bgp_aggregate(
        str(spec.prefix),
        vrf=vrf,
        as_set=spec.as_set,
        summary_only=spec.summary_only,
        attributes=path_attributes.attributes(spec, local_as),
    )
    requires = (instances.instance_key(vrf),)
    yield Intent(resource.id, made, resource.place, requires=requires)


KINDS = (
    Kind(
        BGPAggregate,
        "A prefix that is told while BGP knows at least one below it, beside those or in their"
        " place.",
        (BGP_AGGREGATE.name,),
        "prefix: 203.0.112.0/20\nsummaryOnly: true\n",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        cross_checks="routing.bgp_checks",
    ),
)
