"""What a plan does to the way of a connection that somebody came in on.

The way before is asked of the kernel. Where the model of it (`lookup`) does not come to the same,
something is at work that it does not know: the way after is then not judged by it, only whether the
address and the links that the connection uses are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds import KINDS
from holdfast.engine.path import changes
from holdfast.engine.path.lookup import Packet, Path, look_up
from holdfast.engine.path.network import IPAddress, Network, Route
from holdfast.engine.path.tunnel import secrets_for
from holdfast.engine.plan import Operation, Verb


@dataclass(frozen=True, slots=True)
class Connection:
    remote: IPAddress
    local: IPAddress
    remote_port: int = 0
    local_port: int = 0
    link: str = ""  # that of link-local addresses
    vrf: str = ""  # the VRF that our address is in
    mark: int = 0  # what its packets are marked with when they are routed

    @property
    def version(self) -> int:
        return self.remote.version

    @property
    def ends(self) -> tuple[tuple[IPAddress, int], tuple[IPAddress, int]]:
        """Ours and theirs."""
        return (self.local, self.local_port), (self.remote, self.remote_port)

    def answer(self, network: Network) -> Packet:
        """A packet of ours, to the operator."""
        return Packet(
            self.local,
            self.remote,
            self.local_port,
            self.remote_port,
            oif=self.link,
            mark=self.mark,
            vrf_table=self._vrf_table(network),
        )

    def arriving(self, network: Network, link: str) -> Packet:
        """A packet of the operator's."""
        return Packet(
            self.remote,
            self.local,
            self.remote_port,
            self.local_port,
            iif=link,
            vrf_table=self._vrf_table(network),
        )

    def _vrf_table(self, network: Network) -> int:
        for fields in network.addresses.values():
            if fields["address"] == str(self.local):
                return network.vrf_table(str(fields["dev"]))
        return 0


@dataclass(frozen=True, slots=True)
class Loss:
    operation: Operation
    doing: str  # "create rule 100: from all prohibit"
    why: str  # what becomes of the connection by it
    certain: bool  # False: it may well work that way, and nobody can know before


@dataclass(frozen=True, slots=True)
class _Problem:
    why: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Situation:
    """How things are before the plan."""

    connection: Connection
    network: Network
    path: Path  # of answers, by the kernel's word
    # The links that others need to work, as far as the kernel does not tell: PPPoE, tunnels.
    lower: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[str] = ()  # those of bridges by which the next hop was seen last

    @property
    def addresses(self) -> tuple[IPAddress, IPAddress]:
        return self.connection.remote, self.connection.local


def relevant(
    operations: Sequence[Operation], connection: Connection
) -> tuple[list[Operation], set[IPAddress]]:
    """The operations that may matter, and the addresses whose routes have to be known for that."""
    ends = {connection.remote, connection.local}
    version = connection.remote.version
    found = [operation for operation in operations if changes.concerns(operation, version, ends)]
    return found, ends | changes.gateways(found, ends)


def judge(
    situation: Situation, operations: Sequence[Operation], known: set[IPAddress]
) -> Loss | None:
    """What a plan takes away, by which of its operations; None where nothing.

    operations: those that are `relevant`, in their order. known: what that said besides.
    """
    changes.learn(situation.network, operations)
    after = situation.network.copy()
    problem_of = _examiner(situation)
    culprit: Operation | None = None
    problem: _Problem | None = None
    for operation in operations:
        changes.carry_out(after, operation, known)
        found = problem_of(after)
        if found != problem:
            culprit, problem = operation, found
    if problem is None or culprit is None:
        return None
    return Loss(culprit, told(culprit, situation.addresses), problem.why, problem.certain)


def _examiner(situation: Situation) -> Callable[[Network], _Problem | None]:
    """What is wrong with a network for the connection, that was not wrong before."""
    looking = _assumption(situation)
    ways: list[_Check] = []
    if looking is not None:
        ways = [_way_in(looking), _way_back(looking), _reverse_path(looking)]
    checks = [_own_address, *ways, _links, _other_link_in, _neighbour, _peer]

    def problem(after: Network) -> _Problem | None:
        return next(filter(None, (check(situation, after) for check in checks)), None)

    return problem


_LookUp = Callable[[Network, Packet], Path]
_Check = Callable[[Situation, Network], _Problem | None]


def _assumption(situation: Situation) -> _LookUp | None:
    """The way of looking up that comes to what the kernel says now; None where there is none, or
    where no answers get back as it is."""
    before, connection = situation.network, situation.connection
    if situation.path.type != "unicast":
        return None
    for unsure in (False, True):
        found = look_up(before, connection.answer(before), unsure=unsure)
        if found.type == situation.path.type and situation.path.nexthops <= found.nexthops:
            return partial(look_up, unsure=unsure)
    return None


def _own_address(situation: Situation, after: Network) -> _Problem | None:
    local = situation.connection.local
    if situation.network.holds(local) and not after.holds(local):
        return _Problem(f"{local} is no address of this host then")
    return None


def _links(situation: Situation, after: Network) -> _Problem | None:
    """Those that the connection uses now."""
    before = situation.network
    for name in carriers(situation, situation.path.links):
        if before.carries(name) and not after.carries(name):
            return _Problem(_what_became(after, name))
    for name in situation.path.links:
        if after.member_of(name) and not before.member_of(name):
            # The kernel gives packets of a member to its master, whose addresses are other ones.
            return _Problem(f"what comes in by {name} is {after.member_of(name)}'s then")
    for port in situation.ports:
        if before.member_of(port) != after.member_of(port):
            return _Problem(f"{port} is no port of {before.member_of(port)} then")
    return None


def _what_became(after: Network, name: str) -> str:
    if name not in after.links:
        return f"{name} is not there then"
    if after.links[name].get("up") is False:
        return f"{name} is down then"
    return f"{name} carries no IPv{after.version} then"


def carriers(situation: Situation, links: frozenset[str]) -> Iterator[str]:
    """Links, and those below them."""
    seen: set[str] = set()
    left = [*sorted(links), *situation.ports]
    while left:
        name = left.pop(0)
        if name in seen:
            continue
        seen.add(name)
        yield name
        parent = situation.network.links.get(name, {}).get("parent")
        left += [lower for lower in (str(parent or ""), situation.lower.get(name, "")) if lower]


def _way_in(looking: _LookUp) -> _Check:
    def check(situation: Situation, after: Network) -> _Problem | None:
        connection = situation.connection
        for link in sorted(situation.path.links):
            before = looking(situation.network, connection.arriving(situation.network, link))
            if before.type != "local":
                continue
            packet = connection.arriving(after, link)
            found = looking(after, packet)
            if found.type != "local":
                return _Problem(f"what comes in goes `{found.told(packet)}` then")
        return None

    return check


def _way_back(looking: _LookUp) -> _Check:
    def check(situation: Situation, after: Network) -> _Problem | None:
        connection, path = situation.connection, situation.path
        packet = connection.answer(after)
        found = looking(after, packet)
        if found.nexthops == path.nexthops and found.type == path.type:
            return None
        before = looking(situation.network, connection.answer(situation.network))
        if found.type == path.type and found.nexthops and found.nexthops <= before.nexthops:
            return None  # one of the ways that were taken before
        now = path.told(connection.answer(situation.network))
        why = f"answers go `{now}` now, and `{found.told(packet)}` then"
        return _Problem(why, certain=found.type != "unicast")

    return check


def _other_links_in(situation: Situation) -> frozenset[str]:
    """Links that the operator's packets may come in by, besides those that answers leave by. The
    kernel tells nobody; where our end is an address on a link that a route to the operator leads
    over, whatever its table and metric, others are likely to send them there."""
    network, connection = situation.network, situation.connection
    likely = network.links_of(connection.local) - situation.path.links
    return frozenset(
        name
        for name in likely
        if any(
            way.leads_over(name) and connection.remote in way.destination for way in _ways(network)
        )
    )


def _ways(network: Network) -> Iterator[Route]:
    return (route for route in network.routes if route.type == "unicast")


def _other_link_in(situation: Situation, after: Network) -> _Problem | None:
    before = situation.network
    for name in sorted(_other_links_in(situation)):
        why = ""
        if before.carries(name) and not after.carries(name):
            why = _what_became(after, name)
        elif after.member_of(name) and not before.member_of(name):
            why = f"what comes in by {name} is {after.member_of(name)}'s then"
        if why:
            local = situation.connection.local
            return _Problem(f"what is sent to {local} may come in by {name}: {why}", certain=False)
    return None


def _reverse_path(looking: _LookUp) -> _Check:
    """Strict filters drop what comes in by another link than answers to it would leave by, as the
    kernel looks them up for that: without a mark."""

    def drops(situation: Situation, network: Network, link: str) -> bool:
        answer = replace(situation.connection.answer(network), mark=0, oif="")
        return network.filters_strictly(link) and link not in looking(network, answer).links

    def check(situation: Situation, after: Network) -> _Problem | None:
        if after.version != 4:
            return None  # the kernel has no such filter
        for link in sorted(situation.path.links | _other_links_in(situation)):
            if drops(situation, after, link) and not drops(situation, situation.network, link):
                why = f"{link}, which packets may come in by, drops them then (rp_filter 1)"
                return _Problem(why, certain=False)
        return None

    return check


def _neighbour(situation: Situation, after: Network) -> _Problem | None:
    """Of the next hop, where it is the same as before."""
    for nexthop in situation.path.nexthops:
        place = nexthop.gateway or str(situation.connection.remote), nexthop.dev
        was, is_then = situation.network.neighbours.get(place), after.neighbours.get(place)
        if was and is_then and was != is_then:
            return _Problem(f"{place[0]} dev {place[1]} has lladdr {was} now, and {is_then} then")
    return None


def _peer(situation: Situation, after: Network) -> _Problem | None:
    """Of a WireGuard link."""
    remote = situation.connection.remote
    for link in situation.path.links:
        was = secrets_for(situation.network.tunnels.get(link, {}), remote)
        if was is not None and secrets_for(after.tunnels.get(link, {}), remote) != was:
            return _Problem(f"{link} has {remote} for no peer, or not the same keys, then")
    return None


def told(operation: Operation, addresses: Sequence[IPAddress]) -> str:
    """What an operation does, for people."""
    verb, subject = operation.verb, operation.subject
    if KINDS[operation.kind].bulk:
        found = max(changes.about(operation, addresses), key=_length)
        kind = str(found.fields["type"])
        kind = "" if kind == "unicast" or verb is Verb.DELETE else f"{kind} "
        return f"{verb} {kind}{found.key}"
    if not isinstance(subject, Artifact):
        return f"{verb} {operation.kind}s"
    changed = {change.field: change.after for change in operation.changes}
    if changed.get("up") is False:
        return f"set {subject.key} down"
    if changed.get("master"):
        return f"put {subject.key} under {changed['master']}"
    values = ", ".join(f"{name} {value}" for name, value in changed.items() if value)
    return f"{verb} {subject.key}" + (f" ({values})" if values else "")


def _length(artifact: Artifact) -> int:
    return int(str(artifact.fields["destination"]).partition("/")[2])
