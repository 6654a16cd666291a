"""Which links and addresses a plan touches, so that others may lose something on them.

It errs on the side of more: what was recorded and did not go costs some bytes. Only of routes, of
which there may be a million, no more is asked for than what may go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.kinds import route
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.host.netlink.addresses.address_codec import SECONDARY, SeenAddress

Links = Mapping[str, Fields]  # by name

# Below this the kernel drops IPv6 from a link.
_IPV6_LEAST_MTU = 1280
_IPV4_KEY = 5  # bytes: a length and an address
_CONF, _DISABLE = "net.ipv6.conf.", ".disable_ipv6"
# Fields of a link whose change takes nothing along; with the others it may go down for a moment.
_HARMLESS = frozenset({"alias", "stp", "learning", "vlan_filtering", "miimon"})


@dataclass(frozen=True, slots=True)
class Touched:
    # All that stands on these links is recorded but for routes, and how they are themselves.
    links: frozenset[str] = frozenset()
    # By IP version, the links of which all routes may go.
    routed: Mapping[int, frozenset[str]] = field(default_factory=dict)
    # Links that may lose their carrier, and with it the routes over nexthop objects.
    dark: frozenset[str] = frozenset()
    # Those that may get another MTU: IPv6 routes that have one of their own follow.
    resized: frozenset[str] = frozenset()
    # Links of which IPv6 routes to a prefix may go that the kernel takes for its own.
    prefixes: frozenset[str] = frozenset()
    # Addresses that may be nowhere for a while: routes name them as their preferred source.
    sources: frozenset[bytes] = frozenset()
    # By IP version, the links whose settings go, as they end or their IPv6 does.
    reset: Mapping[int, frozenset[str]] = field(default_factory=dict)
    # Those that leave their bridge, if only for a moment, and bridges that end.
    ports: frozenset[str] = frozenset()
    # To which IPv4 routes of ours lead that go or change, as `route_decode.key_of` has them.
    destinations: frozenset[bytes] = frozenset()


def touched(plan: Plan, links: Links, addresses: Sequence[SeenAddress]) -> Touched:
    changed = _links(plan)
    silenced = _without_ipv6(plan, links)
    ended = _with_uppers(changed.ended, links)
    down = _with_uppers(changed.ended | changed.falling, links)
    # What becomes of a port becomes of its bridge, and of what stands on that.
    narrow = _with_masters(changed.narrow | _ports(changed.narrow, links), links)
    without_ipv6 = narrow | _with_uppers(silenced, links)
    around = _with_masters(changed.every | silenced, links)
    there = (down | without_ipv6 | around) & links.keys()
    there |= _around(there, links)
    leaving, made = _addresses(plan)
    gone = _gone(leaving, addresses)
    devs = {_dev(address) for address in gone}
    # Where an address goes and another comes, that is made first, on the way back too.
    last = {dev for dev in devs ^ made if not _remains(dev, gone, addresses)}
    # The order of those that stay is put right by making them anew.
    on_links = {address.ip for address in addresses if _dev(address) in down | without_ipv6 | devs}
    return Touched(
        links=frozenset(there | devs | last),
        routed={4: frozenset(down | last), 6: frozenset(down | without_ipv6)},
        dark=frozenset(_with_masters(changed.ended | changed.falling, links)),
        resized=frozenset(_with_masters(changed.resized, links)),
        prefixes=frozenset(_dev(address) for address in gone if address.version == 6),
        sources=frozenset(on_links),
        reset={4: frozenset(ended), 6: frozenset(ended | narrow)},
        ports=frozenset(ended | changed.leaving | _ports(ended, links)),
        destinations=frozenset(_destinations(plan)),
    )


@dataclass(frozen=True, slots=True)
class _Changed:
    """Links that end, that may go down, that get another MTU or lose IPv6 by it, that get another
    MAC, and that leave their master; and the masters that they join."""

    ended: set[str] = field(default_factory=set)
    falling: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)
    sized: set[str] = field(default_factory=set)

    @property
    def resized(self) -> set[str]:
        return self.sized | self.leaving | self.joined | self.ended

    @property
    def every(self) -> set[str]:
        return self.ended | self.falling | self.narrow | self.moved | self.joined


def _changes(plan: Plan) -> Iterator[tuple[Verb, Key, Operation | None]]:
    """What the plan does, and what a pass of the candidate may do a moment later: what is in its
    way now may be gone then."""
    for operation in plan.changes:
        if isinstance(operation.subject, Artifact):
            yield operation.verb, operation.subject.key, operation
    for held in plan.blocked:
        if held.key is not None:
            yield Verb.REPLACE, held.key, None
    for orphan in plan.orphans:
        if isinstance(orphan.subject, Artifact) and not orphan.removed:
            yield Verb.DELETE, orphan.subject.key, None


def _links(plan: Plan) -> _Changed:
    found = _Changed()
    for verb, key, operation in _changes(plan):
        if key.kind != LINK.name:
            continue
        if operation is not None:
            found.joined.update(_joined(operation))
        if verb is Verb.CREATE:
            continue
        fields = {change.field for change in operation.changes} if operation else set()
        if verb in (Verb.DELETE, Verb.REPLACE):
            found.ended.add(key.name)
        elif fields - _HARMLESS - {"mtu", "mac"}:
            found.falling.add(key.name)
        elif fields - _HARMLESS:
            found.moved.add(key.name)
        if "mtu" in fields:
            found.sized.add(key.name)
        if "master" in fields:
            found.leaving.add(key.name)
        if operation is not None and _is_narrow(operation):
            found.narrow.add(key.name)
    return found


def _joined(operation: Operation) -> Iterator[str]:
    """The master that a link is made for, or gets: it follows the MACs and MTUs of its ports."""
    yield from (str(change.after) for change in operation.changes if change.field == "master")
    if operation.verb is Verb.CREATE and isinstance(operation.subject, Artifact):
        yield str(operation.subject.fields.get("master", ""))


def _without_ipv6(plan: Plan, links: Links) -> set[str]:
    """Links that a setting takes IPv6 from, or gives it back to."""
    found: set[str] = set()
    for _verb, key, _operation in _changes(plan):
        if key.kind == SYSCTL.name and key.name.startswith(_CONF) and key.name.endswith(_DISABLE):
            dev = key.name.removeprefix(_CONF).removesuffix(_DISABLE)
            found |= links.keys() if dev == "all" else {dev}
    return found


def _is_narrow(operation: Operation) -> bool:
    """Before or after it."""
    sizes = (
        int(str(size))
        for change in operation.changes
        if change.field == "mtu"
        for size in (change.before, change.after)
        if size is not None
    )
    return any(size < _IPV6_LEAST_MTU for size in sizes)


def _with_uppers(names: Iterable[str], links: Links) -> set[str]:
    """With the links that stand on them, and the other ends of pairs."""
    found = list(names)
    for lower in found:  # grows while it is walked
        found += [
            other
            for other, fields in links.items()
            if lower in (fields.get("parent"), fields.get("peer")) and other not in found
        ]
    return set(found)


def _with_masters(names: Iterable[str], links: Links) -> set[str]:
    """With all that leans on them: what stands on them, other ends of pairs, and their masters."""
    found = _with_uppers(names, links)
    while True:
        masters = {str(links[name]["master"]) for name in found & links.keys()} & links.keys()
        if masters <= found:
            return found
        found = _with_uppers(found | masters, links)


def _ports(names: Iterable[str], links: Links) -> set[str]:
    return {name for name, fields in links.items() if fields["master"] in set(names)}


def _around(names: set[str], links: Links) -> set[str]:
    """Their masters, whose MACs and MTUs follow them, and their ports, which lose their place."""
    masters = {str(links[name]["master"]) for name in names} & links.keys()
    return masters | _ports(names, links)


def _destinations(plan: Plan) -> Iterator[bytes]:
    subjects = [op.subject for op in plan.changes if op.verb is not Verb.CREATE]
    subjects += [orphan.subject for orphan in plan.orphans if not orphan.removed]
    for subject in subjects:
        keys: Sequence[bytes] = ()
        if isinstance(subject, Batch):
            keys = subject.keys
        elif subject.key.kind == route.ROUTE.name:
            keys = [route.identify(subject.fields)[1]]
        yield from (key for key in keys if len(key) == _IPV4_KEY)


def _addresses(plan: Plan) -> tuple[set[Key], set[str]]:
    """The addresses that go, if only for a moment, and the links that others are made on: those go
    when it is taken back."""
    leaving: set[Key] = set()
    made: set[str] = set()
    for verb, key, operation in _changes(plan):
        if key.kind == ADDRESS.name:
            if verb is Verb.CREATE and operation is not None:
                made |= _ipv4_link(operation.subject)
            else:
                leaving.add(key)
    return leaving, made


def _ipv4_link(subject: object) -> set[str]:
    if not isinstance(subject, Artifact):
        return set()
    ip = ipaddress.ip_address(str(subject.fields["address"]))
    return {str(subject.fields["dev"])} if ip.version == 4 else set()


def _gone(leaving: set[Key], addresses: Sequence[SeenAddress]) -> list[SeenAddress]:
    """With the secondaries that may go along."""
    primaries = {
        address.subnet for address in addresses if address.key in leaving and address.version == 4
    }
    return [
        address
        for address in addresses
        if address.key in leaving or (address.flags & SECONDARY and address.subnet in primaries)
    ]


def _remains(dev: str, gone: Sequence[SeenAddress], addresses: Sequence[SeenAddress]) -> bool:
    """Whether an IPv4 address stays on a link throughout."""
    leaving = {address.key for address in gone}
    return any(
        address.version == 4 and _dev(address) == dev and address.key not in leaving
        for address in addresses
    )


def _dev(address: SeenAddress) -> str:
    return str(address.artifact.fields["dev"])
