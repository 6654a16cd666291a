"""IPv4Route and IPv6Route: one route."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from holdfast.config.document import Location
from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.route import MAIN_TABLE, ROUTE, Nexthop, RouteTemplate, pack_key
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.routes import nexthops
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    nested,
    optional,
    required,
)
from holdfast.resources.spec.values import Address, Network, address, destination, route_table

METRIC_MAX = 0xFFFFFFFF
# The kernel cuts a larger route MTU down to this and would read back another value.
MTU_MIN, MTU_MAX = 68, 65520
WEIGHT_MAX = 256


class Leg(Spec):
    gateway: Address | None = optional(address(), "the next router")
    interface: str = optional(
        link_reference(),
        "the interface to it; where none is given, the one that has it in a network",
        default="",
    )
    weight: int = optional(integer(1, WEIGHT_MAX), "share of the traffic", default=1)
    onlink: bool = optional(
        flag(), "the gateway is on the link although no address says so", default=False
    )


_GATEWAY = "the next router; an IPv4 route may have an IPv6 one"
_INTERFACE = (
    "the interface to send through; where none is given, the one that has the gateway in a network"
)
_NEXTHOPS = "two or more nexthops to spread traffic over, instead of gateway and interface"
_TYPE = "anything but `unicast` leads nowhere, and says so or not"
_TABLE = "routing table"
_METRIC = "lower wins; where none is given IPv4 takes 0 and IPv6 1024"
_SOURCE = "source address for what the host itself sends"
_MTU = "packet size along this route"
_ONLINK = "the gateway is on the link although no address says so"


class IPv4Route(Spec):
    destination: IPv4Network = required(destination(4), "where the route leads")
    gateway: Address | None = optional(address(), _GATEWAY)
    interface: str | None = optional(link_reference(), _INTERFACE)
    nexthops: tuple[Leg, ...] | None = optional(listed(nested(Leg), least=2), _NEXTHOPS)
    type: str = optional(choice(*routes.TYPES), _TYPE, default="unicast")
    table: int = optional(route_table(), _TABLE, default=MAIN_TABLE)
    metric: int = optional(integer(0, METRIC_MAX), _METRIC, default=0)
    preferred_source: IPv4Address | None = optional(address(4), _SOURCE)
    mtu: int | None = optional(integer(MTU_MIN, MTU_MAX), _MTU)
    onlink: bool | None = optional(flag(), _ONLINK)


class IPv6Route(Spec):
    destination: IPv6Network = required(destination(6), "where the route leads")
    gateway: IPv6Address | None = optional(address(6), "the next router")
    interface: str | None = optional(link_reference(), _INTERFACE)
    nexthops: tuple[Leg, ...] | None = optional(listed(nested(Leg), least=2), _NEXTHOPS)
    type: str = optional(choice(*routes.TYPES), _TYPE, default="unicast")
    table: int = optional(route_table(), _TABLE, default=MAIN_TABLE)
    metric: int = optional(integer(0, METRIC_MAX), _METRIC, default=0)
    preferred_source: IPv6Address | None = optional(address(6), _SOURCE)
    mtu: int | None = optional(integer(MTU_MIN, MTU_MAX), _MTU)
    onlink: bool | None = optional(flag(), _ONLINK)


Route = IPv4Route | IPv6Route


def template(spec: Route) -> RouteTemplate:
    if spec.nexthops is not None:
        legs = tuple(
            Nexthop(str(leg.gateway or ""), leg.interface, leg.weight, leg.onlink)
            for leg in spec.nexthops
        )
    elif spec.gateway is not None or spec.interface is not None or spec.onlink:
        legs = (Nexthop(str(spec.gateway or ""), spec.interface or "", 1, bool(spec.onlink)),)
    else:
        legs = ()
    return routes.template(
        spec.destination.version,
        table=spec.table,
        metric=spec.metric,
        kind=spec.type,
        nexthops=legs,
        prefsrc=str(spec.preferred_source or ""),
        mtu=spec.mtu or 0,
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: Route = resource.spec
    if spec.nexthops is not None:
        for name in ("gateway", "interface", "onlink"):
            if getattr(spec, name) is not None:
                yield Fault((name,), "say it in `nexthops`, or leave `nexthops` out")
    for index, field, message in nexthops.faults(template(spec)):
        location: Location = ("nexthops", index) if spec.nexthops is not None else ()
        if index < 0:
            location = (field,)
        elif field and (spec.nexthops is not None or getattr(spec, field) is not None):
            location = (*location, field)
        yield Fault(location, message)


def lone_gateways(resource: Resource) -> Iterator[tuple[int, bytes]]:
    spec: Route = resource.spec
    if spec.gateway is not None and not spec.interface:
        yield spec.table, spec.gateway.packed
    for leg in spec.nexthops or ():
        if leg.gateway is not None and not leg.interface:
            yield spec.table, leg.gateway.packed


def on_link(resource: Resource, site: Site) -> Iterator[tuple[int, Network, str]]:
    """Where it has no gateway, its destination."""
    spec: Route = resource.spec
    if spec.interface and spec.gateway is None and spec.nexthops is None:
        yield spec.table, spec.destination, site.device(spec.interface)


def behind(resource: Resource, version: int) -> Iterator[Network]:
    """Everything is behind a default route, which thus tells nothing."""
    spec: Route = resource.spec
    network = spec.destination
    if network.version == version and network.prefixlen and spec.type == "unicast":
        yield network


def alone(resource: Resource, site: Site) -> bool:
    """Where it has no gateway, the gateways of others may be on the link that it names."""
    legs = template(resource.spec).nexthops
    if not all(leg.gateway for leg in legs):
        return False
    from holdfast.resources.routes import route_checks  # which is made of this module

    return not route_checks.warns(resource, site)


def intents(resource: Resource, site: Site) -> Iterator[BulkIntent]:
    spec: Route = resource.spec
    resolved = nexthops.resolve(template(spec), site)
    network = spec.destination
    key = pack_key(network.network_address.packed, network.prefixlen)
    yield BulkIntent(
        resource.id,
        routes.batch(resolved, [key]),
        resource.place,
        nexthops.requires(resolved, site),
        nexthops.lacks(resolved),
    )


KINDS = (
    Kind(
        IPv4Route,
        "One IPv4 route.",
        (ROUTE.name,),
        "destination: 198.51.100.0/24\ngateway: 192.0.2.254\nmetric: 100\n",
        intents,
        check,
        open_to_others=nothing_against,
        cross_checks="routes.route_checks",
        lone_gateways=lone_gateways,
        on_link=on_link,
        behind=behind,
        alone=alone,
        leads_out="interface",
    ),
    Kind(
        IPv6Route,
        "One IPv6 route.",
        (ROUTE.name,),
        """\
destination: default
nexthops:
  - {gateway: "fe80::1", interface: lan}
  - {gateway: "2001:db8::2", weight: 2}
""",
        intents,
        check,
        open_to_others=nothing_against,
        cross_checks="routes.route_checks",
        lone_gateways=lone_gateways,
        on_link=on_link,
        behind=behind,
        alone=alone,
        leads_out="interface",
    ),
)
