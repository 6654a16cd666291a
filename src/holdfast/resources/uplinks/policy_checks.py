"""Policy routing across resources: one mark, table or priority for two different things, policies
that never get a packet, and settings that the kernel would not heed."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.dataclass import dataclass, replace
from holdfast.engine.kinds.route import Nexthop
from holdfast.resources import registry
from holdfast.resources.checks.clashes import Finding
from holdfast.resources.nft_text import ifname_trouble
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.routes import route_checks
from holdfast.resources.routes.routing_rule import RoutingRule
from holdfast.resources.site import Site
from holdfast.resources.uplinks import marking, uplink
from holdfast.resources.uplinks.default_route_policy import POLICIES, for_router
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.policy_route_set import IPv4PolicyRouteSet
from holdfast.resources.uplinks.reverse_path_filter import MODES, IPv4ReversePathFilter
from holdfast.resources.uplinks.selection import Selection
from holdfast.resources.uplinks.uplink import Uplink


def check(site: Site) -> Iterator[Finding]:
    for family in POLICIES:
        # In the order of the file: the first to use a number has it.
        found = sorted(uplink.uplinks(site, family), key=lambda one: one.resource.index)
        yield from _ways(found)
        yield from _vrfs(found, site)
        yield from _rules(found, family, site)
        yield from _links(found, site)
        yield from _gateways(found, site)
        yield from _shadowed(site.of(POLICIES[family]))
        yield from _router_traffic(site.of(POLICIES[family]))
        for policy in site.of(POLICIES[family]):
            yield from _into_itself(policy, family, site)
    yield from _shadowed(marking.decided_first(site))
    yield from _half_sets(site)
    yield from _tunnels(site)
    yield from _filters(site)


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who has a number already."""

    resource: Resource
    location: Location

    def __str__(self) -> str:
        inside = "".join(
            f"[{step}]" if isinstance(step, int) else str(step) for step in self.location
        )
        return f"{self.resource}, {inside}" if inside else str(self.resource)


def _holder(one: Uplink) -> _Holder:
    return _Holder(one.resource, one.location)


def _ways(found: list[Uplink]) -> Iterator[Finding]:
    """The same mark, table and priority with the same target is one thing that is shared."""
    marks: dict[int, Uplink] = {}
    tables: dict[int, Uplink] = {}
    priorities: dict[int, Uplink] = {}
    for one in found:
        first = marks.setdefault(one.mark, one)
        if first is not one and (
            first.resource is one.resource or _identity(first) != _identity(one)
        ):
            message = f"mark {one.mark:#x} is that of {_holder(first)}, {_difference(one, first)}"
            yield one.resource, Fault((*one.location, "mark"), message)
            continue
        first = tables.setdefault(one.table, one)
        if first.target != one.target:
            message = f"table {one.table} is that of {_holder(first)}, {_difference(one, first)}"
            yield one.resource, Fault((*one.location, "table"), message)
        first = priorities.setdefault(one.priority, one)
        if first.mark != one.mark:
            message = f"{one.priority} is also the priority of {_holder(first)}, a different rule"
            yield one.resource, Fault((*one.location, "priority"), message)


def _identity(one: Uplink) -> tuple[object, ...]:
    return one.table, one.priority, one.target


def _difference(one: Uplink, other: Uplink) -> str:
    if one.target != other.target:
        return f"which leads elsewhere ({_leads(other)} there, {_leads(one)} here)"
    if one.table != other.table:
        return f"with table {other.table} there and {one.table} here"
    if one.priority == other.priority:
        return "which is the very same"
    return f"with priority {other.priority} there and {one.priority} here"


def _leads(one: Uplink) -> str:
    via = {"none": "", "static": f" via {one.gateway}"}.get(one.gateway_source)
    return (
        f"{one.link}{via if via is not None else f' via {one.gateway_source}'} metric {one.metric}"
    )


def _vrfs(found: list[Uplink], site: Site) -> Iterator[Finding]:
    vrfs = {
        interface.spec.vrf.table: interface
        for interface in site.interfaces.values()
        if interface.spec.vrf is not None
    }
    for one in found:
        if one.table in vrfs:
            message = f"table {one.table} is the table of the VRF {vrfs[one.table]}"
            yield one.resource, Fault((*one.location, "table"), message)


def _rules(found: list[Uplink], family: int, site: Site) -> Iterator[Finding]:
    rules = [rule for rule in site.of(RoutingRule) if rule.spec.version == family]
    at = {one.priority: one for one in reversed(found)}
    before = {one.priority - 1: one for one in reversed(found)}
    for rule in rules:
        spec = rule.spec
        same = at.get(spec.priority)
        if same is not None and not _same_rule(rule, same):
            message = f"{spec.priority} is also the priority of {_holder(same)}, a different rule"
            yield rule, Fault(("priority",), message)
        elif spec.priority in before and same is None:
            message = (
                f"{spec.priority} is taken by {_holder(before[spec.priority])}, for the rule before"
                " its own"
            )
            yield rule, Fault(("priority",), message)
        for one in found:
            if _catches(rule, one) and spec.table != one.table:
                here = f"to table {spec.table}" if spec.table else f"to {spec.action}"
                message = (
                    f"mark {one.mark:#x} leads {here} here and to table {one.table} by"
                    f" {_holder(one)}"
                )
                yield rule, Fault(("fwmark",), message)
                break


def _same_rule(rule: Resource, one: Uplink) -> bool:
    spec = rule.spec
    return _catches(rule, one) and spec.fwmark == one.mark and spec.table == one.table


def _catches(rule: Resource, one: Uplink) -> bool:
    """Whether a rule takes packets by the mark of a way, and by nothing else."""
    spec = rule.spec
    if spec.fwmark is None or any(spec.selectors[1:]):
        return False
    return bool(one.mark & spec.mask == spec.fwmark)


def _links(found: list[Uplink], site: Site) -> Iterator[Finding]:
    for one in found:
        trouble = ifname_trouble(site.ifnames.get(one.link, ""))
        if trouble:
            default = isinstance(one.resource.spec, tuple(POLICIES.values()))
            field = "interface" if default else "outboundInterface"
            yield one.resource, Fault((*one.location, field), trouble)


def _shadowed(policies: list[Resource]) -> Iterator[Finding]:
    """The first that selects a packet takes it."""
    before: list[tuple[Resource, Selection]] = []
    for policy in policies:
        if not _says_which(policy):
            continue
        selected = marking.selected(policy)
        first = next((resource for resource, other in before if other.covers(selected)), None)
        if first is not None:
            message = f"never gets a packet: {first} comes first and takes all of them"
            yield policy, Fault((), message)
        before.append((policy, selected))


def _says_which(policy: Resource) -> bool:
    """For a default route policy, no prefixes are all of them; for others they are a fault."""
    spec = policy.spec
    given = spec.source_cidrs is not None or spec.destination_cidrs is not None
    return given or isinstance(policy.spec, tuple(POLICIES.values()))


def _router_traffic(policies: list[Resource]) -> Iterator[Finding]:
    """What the router itself sends has no source yet when its route is looked up."""
    taking: list[tuple[Resource, Selection]] = []
    for policy in policies:
        if not for_router(policy.spec):
            continue
        mine = replace(marking.selected(policy), sources=())
        first = next((resource for resource, other in taking if other.overlaps(mine)), None)
        if first is not None:
            message = f"{first} takes what the router itself sends already; say false here"
            yield policy, Fault(("routerTraffic",), message)
        taking.append((policy, mine))


def _into_itself(policy: Resource, family: int, site: Site) -> Iterator[Finding]:
    """A tunnel that is the default for the router itself, and so for the packets around it."""
    if not for_router(policy.spec):
        return
    from holdfast.resources.links.wireguard_interface import WireGuardInterface  # few need it

    for index, candidate in enumerate(policy.spec.candidates):
        found = site.find(IPv4PolicyRouteSet, candidate.route_set)
        ways = uplink.uplinks_of(policy if found is None else found)
        mine = [way for way in ways if found is not None or way.location[-1] == index]
        for one in mine:
            tunnel = site.find(WireGuardInterface, one.link)
            if (
                tunnel is not None
                and tunnel.spec.fwmark in (0, one.mark)
                and any(peer.may_be_over(family) for peer in tunnel.spec.peers)
            ):
                field = "interface" if found is None else "routeSet"
                message = (
                    f"while this is the default, the packets around those in {tunnel} go into the"
                    " tunnel too, unless a route of their own leads to the peers: give it the mark"
                    " of another candidate as its `fwmark`"
                )
                yield policy, Fault(("candidates", index, field), message, warning=True)


def _gateways(found: list[Uplink], site: Site) -> Iterator[Finding]:
    for one in found:
        gateway = str(one.gateway) if one.gateway is not None else ""
        remedy = f"if it is on {one.link} all the same, declare a route to it there"
        message = route_checks.doubt(Nexthop(gateway, one.link), site, remedy)
        if message:
            yield one.resource, Fault((*one.location, "gateway"), message, warning=True)


def _half_sets(site: Site) -> Iterator[Finding]:
    for policy in site.of(POLICIES[4]):
        for index, candidate in enumerate(policy.spec.candidates):
            target_set = site.find(IPv4PolicyRouteSet, candidate.route_set)
            if target_set is None:
                continue
            if not marking.selected(target_set).covers(marking.selected(policy)):
                message = (
                    f"{target_set} takes only some of the packets of this policy; while it is the"
                    " default, the others follow the main table"
                )
                yield policy, Fault(("candidates", index, "routeSet"), message, warning=True)


def _tunnels(site: Site) -> Iterator[Finding]:
    for resource in site.of(HealthCheck):
        spec = resource.spec
        if spec.target_source == "dsliteRemote" and spec.interface is not None:
            link = site.links.get(site.ifnames.get(spec.interface, ""))
            kind = registry.kind(link.kind).link if link is not None else None
            if kind is not None and kind.remote is None:
                message = f"{link} is no DSLiteTunnel, whose far end `dsliteRemote` would ask"
                yield resource, Fault(("interface",), message)


def _filters(site: Site) -> Iterator[Finding]:
    filters = site.of(IPv4ReversePathFilter)
    for_all = next((resource for resource in filters if resource.spec.target == "all"), None)
    if for_all is None:
        return
    least = MODES[for_all.spec.mode]
    for resource in filters:
        own = MODES[resource.spec.mode]
        if resource.spec.target == "interface" and own < least:
            message = (
                f"the kernel takes the higher of this ({own}) and `all` ({least}), which {for_all}"
                f" sets to {for_all.spec.mode}"
            )
            yield resource, Fault(("mode",), message, warning=True)
