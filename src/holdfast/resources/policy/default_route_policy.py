"""IPv4DefaultRoutePolicy and IPv6DefaultRoutePolicy: which of several ways is the default."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from holdfast.dataclass import dataclass
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.resources.policy import way
from holdfast.resources.policy.selection import DESTINATIONS, SOURCES, prefixes, selection
from holdfast.resources.policy.way import State, Way
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.shape import (
    Spec,
    choice,
    flag,
    integer,
    listed,
    nested,
    optional,
    reference,
    required,
    text,
)
from holdfast.resources.site import LINK_KINDS, Site
from holdfast.resources.values import address, mark

_NAME = "for people to read"
_PRIORITY = f"lowest first. Of a link also {way.PRIORITY}"
_CHECK = "healthy unless it says otherwise; without one it is always healthy"
_CANDIDATES = "ways out; of those that are healthy the one with the lowest priority is taken"
_ROUTER = (
    "whether what the router itself sends takes it too; true unless `sourceCIDRs` says whose"
    " packets it is for"
)
_MODE = "how the candidate is chosen"


class Candidate4(Spec):
    name: str | None = optional(text(), _NAME)
    interface: str | None = optional(reference(*LINK_KINDS), way.LINK)
    route_set: str | None = optional(
        reference("IPv4PolicyRouteSet"), "or flows are spread over the targets of this set"
    )
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), way.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), way.GATEWAY)
    priority: int = required(integer(1, 32765), _PRIORITY)
    table: int | None = optional(way.own_table(), way.TABLE)
    mark: int | None = optional(mark(), way.MARK)
    route_metric: int = optional(integer(0, 0xFFFFFFFF), way.METRIC, default=way.DEFAULT_METRIC)
    health_check: str | None = optional(reference("HealthCheck"), _CHECK)

    @property
    def whole(self) -> bool:
        """Whether a candidate with a link has all that one needs."""
        return self.table is not None and self.mark is not None


class Candidate6(Spec):
    name: str | None = optional(text(), _NAME)
    interface: str = required(reference(*LINK_KINDS), way.LINK)
    gateway_source: str = optional(
        choice("none", "ra", "static"),
        "`none`: everything is on the link, as with PPP and tunnels; `static`: `gateway`; `ra`: the"
        " one that router advertisements on the link name",
        default="none",
    )
    gateway: IPv6Address | None = optional(address(6), way.GATEWAY)
    priority: int = required(integer(1, 32765), _PRIORITY)
    table: int = required(way.own_table(), way.TABLE)
    mark: int = required(mark(), way.MARK)
    route_metric: int = optional(integer(1, 0xFFFFFFFF), way.METRIC, default=way.DEFAULT_METRIC)
    health_check: str | None = optional(reference("HealthCheck"), _CHECK)

    route_set = None
    whole = True


class IPv4DefaultRoutePolicy(Spec):
    mode: str = optional(choice("priority"), _MODE, default="priority")
    source_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), SOURCES, name="sourceCIDRs"
    )
    destination_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), DESTINATIONS, name="destinationCIDRs"
    )
    router_traffic: bool | None = optional(flag(), _ROUTER)
    candidates: tuple[Candidate4, ...] = required(listed(nested(Candidate4)), _CANDIDATES)


class IPv6DefaultRoutePolicy(Spec):
    mode: str = optional(choice("priority"), _MODE, default="priority")
    source_cidrs: tuple[IPv6Network, ...] | None = optional(
        prefixes(6), SOURCES, name="sourceCIDRs"
    )
    destination_cidrs: tuple[IPv6Network, ...] | None = optional(
        prefixes(6), DESTINATIONS, name="destinationCIDRs"
    )
    router_traffic: bool | None = optional(flag(), _ROUTER)
    candidates: tuple[Candidate6, ...] = required(listed(nested(Candidate6)), _CANDIDATES)


Policy = IPv4DefaultRoutePolicy | IPv6DefaultRoutePolicy
Candidate = Candidate4 | Candidate6


def check(resource: Resource) -> Iterator[Fault]:
    spec: Policy = resource.spec
    for index, candidate in enumerate(spec.candidates):
        location = ("candidates", index)
        others: tuple[Candidate, ...] = spec.candidates[:index]
        yield from way.faults(candidate, location)
        if isinstance(candidate, Candidate4):
            yield from _check_kind(candidate, index)
        for name in ("priority", "name"):
            value = getattr(candidate, name)
            if value is not None and value in (getattr(other, name) for other in others):
                message = f"{value} is the {name} of another candidate"
                yield Fault((*location, name), message)


def _check_kind(candidate: Candidate4, index: int) -> Iterator[Fault]:
    location = ("candidates", index)
    if (candidate.interface is None) == (candidate.route_set is None):
        yield Fault(location, "needs either `interface` or `routeSet`, one of them")
        return
    for name in ("table", "mark"):
        given = getattr(candidate, name) is not None
        if candidate.route_set is not None and given:
            yield Fault((*location, name), "the targets of the set have their own; leave it out")
        if candidate.route_set is None and not given:
            yield Fault((*location, name), "is missing; a candidate with `interface` needs it")
    if candidate.route_set is not None and candidate.gateway_source != "none":
        message = "the targets of the set say where they lead; leave it out"
        yield Fault((*location, "gatewaySource"), message)


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate as things are."""

    candidate: Candidate
    ways: tuple[Way, ...]  # one, or the targets of a set
    state: State
    why: str  # why its state is no better

    @property
    def shown(self) -> str:
        candidate = self.candidate
        return candidate.name or candidate.interface or candidate.route_set or ""


def choices(policy: Resource, site: Site) -> list[Choice]:
    """The candidates of a policy, the one to take first."""
    direct = {one.location: one for one in way.ways_of(policy)}
    found = [
        _choice(candidate, direct.get(("candidates", index)), site)
        for index, candidate in enumerate(policy.spec.candidates)
    ]
    return sorted(found, key=lambda choice: (choice.state, choice.candidate.priority))


def _choice(candidate: Candidate, direct: Way | None, site: Site) -> Choice:
    if direct is not None:
        state, why = way.state(direct, site)
        return Choice(candidate, (direct,), state, why)
    target_set = site.named.get(("IPv4PolicyRouteSet", candidate.route_set or ""))
    targets = tuple(way.ways_of(target_set)) if target_set is not None else ()
    name = candidate.health_check
    verdict = site.facts.verdicts.get(name) if name else None
    if verdict is not None and not verdict.healthy:
        return Choice(candidate, targets, State.DOWN, f"HealthCheck/{name} says: {verdict.reason}")
    states = [way.state(target, site) for target in targets]
    best, why = min(states, default=(State.DOWN, "it has no targets"))
    return Choice(candidate, targets, best, why)


def for_router(spec: Policy) -> bool:
    if spec.router_traffic is not None:
        return spec.router_traffic
    return spec.source_cidrs is None


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    spec: Policy = resource.spec
    for one in way.ways_of(resource):
        yield from way.intents(one, site)
    ordered = choices(resource, site)
    if ordered[0].state is State.DOWN:
        told = "; ".join(f"{choice.shown}: {choice.why}" for choice in ordered)
        reason = f"no candidate is healthy, {ordered[0].shown} is kept as the last resort ({told})"
        yield Waiting(resource.id, resource.place, reason, keeps=False)
    if for_router(spec):
        yield from _router_rules(resource, ordered[0].ways, site)


def _router_rules(resource: Resource, active: tuple[Way, ...], site: Site) -> Iterator[Intent]:
    """What the router sends has no mark when its route is looked up, and its source address comes
    of that first lookup, so a mark set afterwards would be too late.

    A set cannot be looked up: the router itself then takes the first of its targets.
    """
    if not active:
        return
    best = min(active, key=lambda one: way.state(one, site)[0])
    selected = selection(resource.spec, best.family)
    for destination in selected.destinations or ("",):
        for intent in way.rules(best, fwmark=0, iif="lo", destination=str(destination)):
            yield Intent(resource.id, intent.artifact, resource.place)


_SUMMARY = (
    "Which of several ways is the IPv{} default route: the first that is healthy. Flows stay on the"
    " way they began on for as long as that one is healthy."
)

KINDS = {
    "IPv4DefaultRoutePolicy": Kind(
        "IPv4DefaultRoutePolicy",
        IPv4DefaultRoutePolicy,
        _SUMMARY.format(4),
        ("nft", "route", "rule"),
        """\
candidates:
  - {name: fibre, interface: wan, gatewaySource: dhcp4, priority: 10, table: 111, mark: 0x111,
     healthCheck: fibre}
  - {name: spare, interface: dmz, gatewaySource: static, gateway: 192.168.2.254, priority: 20,
     table: 112, mark: 0x112}
""",
        intents,
        check,
    ),
    "IPv6DefaultRoutePolicy": Kind(
        "IPv6DefaultRoutePolicy",
        IPv6DefaultRoutePolicy,
        _SUMMARY.format(6),
        ("nft", "route", "rule"),
        """\
candidates:
  - {name: fibre, interface: wan, gatewaySource: ra, priority: 10, table: 111, mark: 0x111}
  - {name: spare, interface: dmz, gatewaySource: static, gateway: "2001:db8:3::fe", priority: 20,
     table: 112, mark: 0x112}
""",
        intents,
        check,
    ),
}
