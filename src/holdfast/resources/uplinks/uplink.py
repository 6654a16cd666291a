"""One way out of the house: a link, a table with a default route over it, and the mark that leads
there. What policy routes, route sets and default route policies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

from holdfast.config.document import Location
from holdfast.dataclass import dataclass
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.route import MAIN_TABLE, Nexthop, pack_key
from holdfast.engine.kinds.rule import rule
from holdfast.resources import registry
from holdfast.resources.facts import GONE
from holdfast.resources.resource import Fault, Resource, id_of
from holdfast.resources.routes import nexthops
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Shape, no_networks
from holdfast.resources.spec.values import TABLES, Address, parse_table

DEFAULT_METRIC = 50
LINK = "the link to leave through"
TABLE = "the routing table for it, used for nothing else"
PRIORITY = (
    "where the rule for the mark stands; one before it stands the rule that lets what is closer"
    " than a default route pass by"
)
MARK = "the mark that leads there; not 0"
METRIC = "metric of the default route in the table"
GATEWAY_SOURCE = (
    "`none`: everything is on the link, as with PPP and tunnels; `static`: `gateway`; `dhcp4`: the"
    " one the DHCP server named"
)
GATEWAY = "for `gatewaySource: static`"


def own_table() -> Shape:
    def read(value: Any) -> int:
        table = parse_table(value)
        if table in TABLES.values():
            raise ValueError(f"table {value} is everybody's; it has to be one of its own")
        return table

    json = {
        "type": "integer",
        "minimum": 1,
        "maximum": 0xFFFFFFFF,
        "not": {"enum": [253, 254, 255]},
    }
    return Shape(read, json, "table number, not 253 to 255", reach=no_networks)


def faults(spec: Any, location: Location) -> Iterator[Fault]:
    """What is wrong with mark and gateway of one way."""
    if spec.mark == 0:
        yield Fault((*location, "mark"), "0 is what packets without a mark have")
    if spec.gateway_source == "static" and spec.gateway is None:
        yield Fault((*location, "gateway"), "is missing; `gatewaySource: static` needs it")
    if spec.gateway_source != "static" and spec.gateway is not None:
        message = f"has no meaning with `gatewaySource: {spec.gateway_source}`"
        yield Fault((*location, "gateway"), message)
    elif spec.gateway is not None and (spec.gateway.is_unspecified or spec.gateway.is_multicast):
        yield Fault((*location, "gateway"), f"{spec.gateway} cannot be a gateway")


class State(IntEnum):
    """How fit a way is to be taken, best first."""

    READY = 0
    UNKNOWN = 1  # it waits for a fact: what was there before may still be
    DOWN = 2


@dataclass(frozen=True, slots=True)
class Uplink:
    resource: Resource
    location: Location  # in the spec of the resource
    family: int
    link: str  # a resource of a link kind
    table: int
    mark: int
    priority: int
    metric: int
    gateway_source: str
    gateway: Address | None
    health_check: str | None
    label: str  # "candidate dhcp4", for people to read

    @property
    def target(self) -> tuple[object, ...]:
        """Where it leads: two ways with the same target are the same thing."""
        return self.link, self.gateway_source, self.gateway, self.metric


def uplinks_of(resource: Resource) -> Iterable[Uplink]:
    declared = registry.kind(resource.kind).uplinks
    return declared(resource) if declared is not None else ()


def declared_by(
    resource: Resource, location: Location, family: int, spec: Any, label: str, link: str
) -> Uplink:
    return Uplink(
        resource,
        location,
        family,
        link,
        spec.table,
        spec.mark,
        spec.priority,
        spec.route_metric,
        spec.gateway_source,
        spec.gateway,
        getattr(spec, "health_check", None),
        label,
    )


def uplinks(site: Site, family: int) -> Iterator[Uplink]:
    """All ways of a family, those of default route policies first."""
    from holdfast.resources.uplinks.default_route_policy import POLICIES

    others = [
        resource
        for resource in site.having(lambda kind: kind.uplinks)
        if not isinstance(resource.spec, tuple(POLICIES.values()))
    ]
    for resource in (*site.of(POLICIES[family]), *others):
        yield from (uplink for uplink in uplinks_of(resource) if uplink.family == family)


def intents(way: Uplink, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    """The default route and the rules of one way."""
    yield _route(way, site)
    yield from rules(way, fwmark=way.mark)


def rules(way: Uplink, *, fwmark: int, iif: str = "", destination: str = "") -> Iterator[Intent]:
    """Packets with a mark look in the main table first, for anything but a default route: what is
    closer than that (another LAN, the provider's own network) is not sent out of the house.

    Rules at one priority do not get in each other's way as long as their marks differ.
    """
    resource = way.resource
    for priority, table, suppress in (
        (way.priority - 1, MAIN_TABLE, 0),
        (way.priority, way.table, None),
    ):
        artifact = rule(
            way.family,
            priority,
            destination=destination,
            iif=iif,
            fwmark=fwmark,
            table=table,
            suppress=suppress,
        )
        yield Intent(resource.id, artifact, resource.place)


def _route(way: Uplink, site: Site) -> BulkIntent | Waiting:
    resource = way.resource
    ifname = site.ifname(way.link)
    gateway, missing, gone = _gateway(way, site)
    if missing:
        reason = f"{way.label}: {missing}" if way.label else missing
        return Waiting(
            resource.id,
            resource.place,
            reason,
            keeps=not gone,
            groups=frozenset({routes.in_table(way.table)}),
            groups_only=True,
        )
    # A DHCP server may name a gateway outside of the subnet it gave, and its address may come a
    # moment after the route.
    nexthop = Nexthop(str(gateway or ""), ifname, onlink=way.gateway_source == "dhcp4")
    template = routes.template(way.family, table=way.table, metric=way.metric, nexthops=(nexthop,))
    key = pack_key(bytes(4 if way.family == 4 else 16), 0)
    return BulkIntent(
        resource.id,
        routes.batch(template, [key]),
        resource.place,
        nexthops.requires(template, site),
    )


def _gateway(way: Uplink, site: Site) -> tuple[Address | None, str, bool]:
    """The gateway; or why there is none, and whether that is known."""
    ifname = site.ifname(way.link)
    if way.gateway_source == "dhcp4":
        lease = site.facts.leases4.get(ifname)
        if lease is None:
            return None, f"waits for a DHCP lease on {ifname}", False
        if lease is GONE:
            return None, f"the DHCP lease on {ifname} is over", True
        if lease.gateway is None:
            return None, f"the DHCP lease on {ifname} names no gateway", True
        return lease.gateway, "", False
    if way.gateway_source == "ra":
        learned = site.facts.gateways.get((ifname, way.family))
        if learned is None:
            return None, f"waits for a router advertisement on {ifname}", False
        return learned, "", False
    return way.gateway, "", False


def state(way: Uplink, site: Site) -> tuple[State, str]:
    """How fit a way is, and why it is no better."""
    found, why = unchecked(way, site)
    verdict = site.facts.verdicts.get(way.health_check) if way.health_check else None
    if found is not State.DOWN and verdict is not None and not verdict.healthy:
        from holdfast.resources.uplinks.health_check import HealthCheck  # one is declared

        return State.DOWN, f"{id_of(HealthCheck, str(way.health_check))} says: {verdict.reason}"
    return found, why


def unchecked(way: Uplink, site: Site) -> tuple[State, str]:
    """As `state`, whatever its health check says: one that is down even so leads nowhere."""
    _, missing, gone = _gateway(way, site)
    if missing:
        return (State.DOWN if gone else State.UNKNOWN), missing
    return _link_state(way, site)


def _link_state(way: Uplink, site: Site) -> tuple[State, str]:
    ifname = site.ifname(way.link)
    link = site.links[ifname]
    given = registry.kind(link.kind).lease
    if given is not None and way.family == 4:
        _, session = given(link, site)
        if session is None or session is GONE:
            found = State.UNKNOWN if session is None else State.DOWN
            return found, f"waits for the PPP session on {ifname}"
    for intent in registry.kind(link.kind).intents(link, site):
        if isinstance(intent, Waiting):
            return (State.UNKNOWN if intent.keeps else State.DOWN), str(intent)
    return State.READY, ""
