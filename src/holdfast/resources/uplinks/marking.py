"""What the nftables tables of policy routing have in common: which marks flows keep, which they
give up, and how packets get them.

A flow keeps in its conntrack mark the way it took. Packets get their mark from there, so that a
change of the default, or of the targets of a set, moves new flows only. A flow whose way is down
gets a new one. Conntrack marks that are not of the configuration (of another program, or of a way
that was removed) are left as they are, and the packet is marked as if its flow were new.

These tables are replaced when a way comes or goes, with packets under way in them. The elements of
sets and maps stop to count while packets are still in the old chains, and a rule that looks one up
is passed by as if nothing were there. So what packets of running flows meet are plain comparisons,
mark by mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.resources.nft_text import branch, chain, quoted
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.uplinks import default_route_policy, uplink
from holdfast.resources.uplinks.policy_route import IPv4PolicyRoute
from holdfast.resources.uplinks.policy_route_set import IPv4PolicyRouteSet
from holdfast.resources.uplinks.selection import Selection, selection
from holdfast.resources.uplinks.uplink import State, Uplink

# Marks other than those set by us are somebody's decision: of a socket (a health check, a VPN),
# or of a table that comes before.
_FOREIGN = "meta mark != 0 return"
# A packet keeps its mark when it is taken out of a tunnel, so what is for the router gets none.
# From 2 to 5: local, broadcast, anycast, multicast.
_NOT_FORWARDED = "fib daddr type 2-5 return"
# A flow that was there before the policy stays as it is until its way is known by an answer.
_OLD_FLOWS = "ct mark 0 ct state != new return"


@dataclass(frozen=True, slots=True)
class Marks:
    """All marks of a family as things are."""

    kept: frozenset[int]
    given_up: frozenset[int]
    # Kernel name -> the mark of connections that come in there.
    arrivals: dict[str, int] = field(default_factory=dict)

    def only(self, some: Iterable[int]) -> Marks:
        wanted = frozenset(some)
        return Marks(self.kept & wanted, self.given_up & wanted, self.arrivals)


def marks(site: Site, family: int) -> Marks:
    """A mark that several resources share is as good as the best of them says."""
    best: dict[int, State] = {}

    def note(mark: int, state: State) -> None:
        best[mark] = min(state, best.get(mark, State.DOWN))

    for policy in site.of(default_route_policy.POLICIES[family]):
        found = default_route_policy.choices(policy, site)
        taken = found[0]
        for choice in found:
            for one in choice.ways:
                state = max(choice.state, uplink.state(one, site)[0])
                if taken.state is State.DOWN:  # no healthy way to go to: flows stay where they can
                    state = _last_resort(one, site, taken.unchecked)
                note(one.mark, state)
    for resource in decided_first(site) if family == 4 else ():
        alone = isinstance(resource.spec, IPv4PolicyRoute)  # there is no other way for its packets
        for one in uplink.uplinks_of(resource):
            note(one.mark, State.READY if alone else usable(one, site))
    kept = frozenset(mark for mark, state in best.items() if state is not State.DOWN)
    return Marks(kept, frozenset(best) - kept, _arrivals(site, family))


def decided_first(site: Site) -> list[Resource]:
    """Policy routes and sets that go before any default: all but the sets that are candidates of a
    policy, which get packets only while they are the default."""
    candidates = {
        candidate.route_set
        for policy in site.of(default_route_policy.POLICIES[4])
        for candidate in policy.spec.candidates
    }
    return [
        resource
        for resource in site.of(IPv4PolicyRoute, IPv4PolicyRouteSet)
        if isinstance(resource.spec, IPv4PolicyRoute) or resource.name not in candidates
    ]


def usable(target: Uplink, site: Site) -> State:
    """The state of a target of a set; while all are down, none that leads anywhere is better than
    another."""
    targets = list(uplink.uplinks_of(target.resource))
    states = {target.mark: uplink.state(target, site)[0] for target in targets}
    if min(states.values()) is State.DOWN:
        best = min(uplink.unchecked(target, site)[0] for target in targets)
        return _last_resort(target, site, best)
    return states[target.mark]


def _last_resort(one: Uplink, site: Site, best: State) -> State:
    """What a way counts as while none is healthy. best: of them all, whatever their checks say."""
    if best is State.DOWN:
        return State.READY
    return uplink.unchecked(one, site)[0]


def _arrivals(site: Site, family: int) -> dict[str, int]:
    """A link over which several gateways are reached does not tell which one a packet came by."""
    found: dict[str, Uplink | None] = {}
    for one in uplink.uplinks(site, family):
        ifname = site.ifname(one.link)
        first = found.setdefault(ifname, one)
        if first is not None and _leads(first) != _leads(one):
            found[ifname] = None
    return {ifname: one.mark for ifname, one in found.items() if one is not None}


def _leads(one: Uplink) -> tuple[object, ...]:
    return one.link, one.gateway_source, one.gateway


def selected(resource: Resource) -> Selection:
    return selection(resource.spec, 6 if resource.kind.startswith("IPv6") else 4)


def _restore(known: Marks) -> Iterator[str]:
    for mark in sorted(known.kept):
        yield f"ct mark {mark:#x} meta mark set {mark:#x} return"


def prerouting(
    priority: int, known: Marks, arrivals: Mapping[str, str], rest: Iterable[str]
) -> str:
    """arrivals: by kernel name, what else a packet has to match to be one that comes in there."""
    marked = (
        f"iifname {quoted(ifname)} ct mark 0 {match}ct mark set {known.arrivals[ifname]:#x}"
        for ifname, match in arrivals.items()
    )
    rules = (_FOREIGN, *marked, _NOT_FORWARDED, *_restore(known), _OLD_FLOWS, *rest)
    return chain("prerouting", f"filter hook prerouting priority {priority}", rules)


def output(priority: int, known: Marks, departures: Iterable[str]) -> str:
    """What the router itself sends: answers take the way their connection came in by, and
    connections stay on the way they began on."""
    marked = (
        f"oifname {quoted(ifname)} ct mark 0 ct state new ct mark set {known.arrivals[ifname]:#x}"
        for ifname in departures
    )
    rules = (_FOREIGN, *_restore(known), *marked)
    return chain("output", f"route hook output priority {priority}", rules)


def decision(name: str, known: Marks, choice: Sequence[int], hashed: str = "") -> str:
    """A chain that gives a packet its mark, and its flow too where that has none, or one it has
    to give up. hashed: what picks one of several marks, as a number from 0."""
    first, *others = (f"meta mark set {mark:#x}" for mark in choice)
    chosen = (f"{hashed} {number} {other}" for number, other in enumerate(others, 1))
    given = (f"ct mark {mark:#x} ct mark set meta mark" for mark in sorted({0, *known.given_up}))
    return branch(name, (first, *chosen, *given))
