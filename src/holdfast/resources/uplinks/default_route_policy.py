"""IPv4DefaultRoutePolicy and IPv6DefaultRoutePolicy: which of several ways is the default."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from holdfast.dataclass import dataclass
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.resources.resource import Fault, Kind, Resource, id_of, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    nested,
    no_networks,
    optional,
    reference,
    required,
    text,
)
from holdfast.resources.spec.values import address, mark
from holdfast.resources.uplinks import uplink
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.policy_route_set import IPv4PolicyRouteSet
from holdfast.resources.uplinks.selection import DESTINATIONS, SOURCES, prefixes, reaches, selection
from holdfast.resources.uplinks.uplink import State, Uplink

_NAME = "for people to read"
_PRIORITY = f"lowest first. Of a link also {uplink.PRIORITY}"
_CHECK = "healthy unless it says otherwise; without one it is always healthy"
_CANDIDATES = "ways out; of those that are healthy the one with the lowest priority is taken"
_ROUTER = (
    "whether what the router itself sends takes it too; true unless `sourceCIDRs` says whose"
    " packets it is for"
)
_MODE = "how the candidate is chosen"


class Candidate4(Spec):
    name: str | None = optional(text(reach=no_networks), _NAME)
    interface: str | None = optional(link_reference(), uplink.LINK)
    route_set: str | None = optional(
        reference(IPv4PolicyRouteSet), "or flows are spread over the targets of this set"
    )
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), uplink.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), uplink.GATEWAY)
    priority: int = required(integer(1, 32765), _PRIORITY)
    table: int | None = optional(uplink.own_table(), uplink.TABLE)
    mark: int | None = optional(mark(), uplink.MARK)
    route_metric: int = optional(
        integer(0, 0xFFFFFFFF), uplink.METRIC, default=uplink.DEFAULT_METRIC
    )
    health_check: str | None = optional(reference(HealthCheck), _CHECK)

    @property
    def whole(self) -> bool:
        """Whether a candidate with a link has all that one needs."""
        return self.table is not None and self.mark is not None


class Candidate6(Spec):
    name: str | None = optional(text(reach=no_networks), _NAME)
    interface: str = required(link_reference(), uplink.LINK)
    gateway_source: str = optional(
        choice("none", "ra", "static"),
        "`none`: everything is on the link, as with PPP and tunnels; `static`: `gateway`; `ra`: the"
        " one that router advertisements on the link name",
        default="none",
    )
    gateway: IPv6Address | None = optional(address(6), uplink.GATEWAY)
    priority: int = required(integer(1, 32765), _PRIORITY)
    table: int = required(uplink.own_table(), uplink.TABLE)
    mark: int = required(mark(), uplink.MARK)
    route_metric: int = optional(
        integer(1, 0xFFFFFFFF), uplink.METRIC, default=uplink.DEFAULT_METRIC
    )
    health_check: str | None = optional(reference(HealthCheck), _CHECK)

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


POLICIES: dict[int, type[Spec]] = {4: IPv4DefaultRoutePolicy, 6: IPv6DefaultRoutePolicy}


Policy = IPv4DefaultRoutePolicy | IPv6DefaultRoutePolicy
Candidate = Candidate4 | Candidate6


def check(resource: Resource) -> Iterator[Fault]:
    spec: Policy = resource.spec
    for index, candidate in enumerate(spec.candidates):
        location = ("candidates", index)
        others: tuple[Candidate, ...] = spec.candidates[:index]
        yield from uplink.faults(candidate, location)
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
    ways: tuple[Uplink, ...]  # one, or the targets of a set
    state: State
    why: str  # why its state is no better
    unchecked: State  # what it would be whatever health checks say

    @property
    def shown(self) -> str:
        return shown(self.candidate)


def shown(candidate: Candidate) -> str:
    """What it is called."""
    return candidate.name or candidate.interface or candidate.route_set or ""


def choices(policy: Resource, site: Site) -> list[Choice]:
    """The candidates of a policy, the one to take first. Where none is healthy, one that leads
    somewhere comes before one without a gateway: a check may be wrong."""
    direct = {one.location: one for one in uplink.uplinks_of(policy)}
    found = [
        _choice(candidate, direct.get(("candidates", index)), site)
        for index, candidate in enumerate(policy.spec.candidates)
    ]
    return sorted(found, key=lambda one: (one.state, one.unchecked, one.candidate.priority))


def _choice(candidate: Candidate, direct: Uplink | None, site: Site) -> Choice:
    if direct is not None:
        state, why = uplink.state(direct, site)
        return Choice(candidate, (direct,), state, why, uplink.unchecked(direct, site)[0])
    target_set = site.find(IPv4PolicyRouteSet, candidate.route_set)
    targets = tuple(uplink.uplinks_of(target_set)) if target_set is not None else ()
    name = candidate.health_check
    verdict = site.facts.verdicts.get(name) if name else None
    found = [(*uplink.state(target, site), uplink.unchecked(target, site)[0]) for target in targets]
    nothing = (State.DOWN, "it has no targets", State.DOWN)
    state, why, unchecked = min(found, key=lambda one: (one[0], one[2]), default=nothing)
    if unchecked is not State.DOWN and verdict is not None and not verdict.healthy:
        state, why = State.DOWN, f"{id_of(HealthCheck, str(name))} says: {verdict.reason}"
        unchecked = min(one[2] for one in found)
    return Choice(candidate, targets, state, why, unchecked)


def for_router(spec: Policy) -> bool:
    if spec.router_traffic is not None:
        return spec.router_traffic
    return spec.source_cidrs is None


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    spec: Policy = resource.spec
    for one in uplink.uplinks_of(resource):
        yield from uplink.intents(one, site)
    ordered = choices(resource, site)
    if ordered[0].state is State.DOWN:
        told = "; ".join(f"{choice.shown}: {choice.why}" for choice in ordered)
        reason = f"no candidate is healthy, {ordered[0].shown} is kept as the last resort ({told})"
        if ordered[0].unchecked is State.DOWN:
            reason = f"no candidate leads anywhere ({told})"
        yield Waiting(resource.id, resource.place, reason, keeps=False)
    if for_router(spec):
        yield from _router_rules(resource, ordered[0].ways, site)


def _router_rules(resource: Resource, active: tuple[Uplink, ...], site: Site) -> Iterator[Intent]:
    """What the router sends has no mark when its route is looked up, and its source address comes
    of that first lookup, so a mark set afterwards would be too late.

    A set cannot be looked up: the router itself then takes the first of its targets.
    """
    if not active:
        return
    best = min(active, key=lambda one: (uplink.state(one, site)[0], uplink.unchecked(one, site)[0]))
    selected = selection(resource.spec, best.family)
    for destination in selected.destinations or ("",):
        for intent in uplink.rules(best, fwmark=0, iif="lo", destination=str(destination)):
            yield Intent(resource.id, intent.artifact, resource.place)


_SUMMARY = (
    "Which of several ways is the IPv{} default route: the first that is healthy. Flows stay on the"
    " way they began on for as long as that one is healthy."
)


def uplinks(resource: Resource) -> Iterator[Uplink]:
    family = 4 if isinstance(resource.spec, IPv4DefaultRoutePolicy) else 6
    for index, candidate in enumerate(resource.spec.candidates):
        if candidate.interface is not None and candidate.whole:
            at, label = ("candidates", index), f"candidate {candidate.name or index}"
            yield uplink.declared_by(resource, at, family, candidate, label, candidate.interface)


KINDS = (
    Kind(
        IPv4DefaultRoutePolicy,
        _SUMMARY.format(4),
        (NFT.name, ROUTE.name, RULE.name),
        """\
candidates:
  - {name: fibre, interface: wan, gatewaySource: dhcp4, priority: 10, table: 111, mark: 0x111,
     healthCheck: fibre}
  - {name: spare, interface: dmz, gatewaySource: static, gateway: 192.168.2.254, priority: 20,
     table: 112, mark: 0x112}
""",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=lambda resource: reaches(resource, 4),
        combiner="uplinks.nft_default_route",
        cross_checks="uplinks.policy_checks",
        needs_facts=True,
        leads_out="candidates",
        uplinks=uplinks,
    ),
    Kind(
        IPv6DefaultRoutePolicy,
        _SUMMARY.format(6),
        (NFT.name, ROUTE.name, RULE.name),
        """\
candidates:
  - {name: fibre, interface: wan, gatewaySource: ra, priority: 10, table: 111, mark: 0x111}
  - {name: spare, interface: dmz, gatewaySource: static, gateway: "2001:db8:3::fe", priority: 20,
     table: 112, mark: 0x112}
""",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=lambda resource: reaches(resource, 6),
        combiner="uplinks.nft_default_route",
        cross_checks="uplinks.policy_checks",
        needs_facts=True,
        leads_out="candidates",
        uplinks=uplinks,
    ),
)
