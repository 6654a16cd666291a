"""The diff by itself, for programs of others: what is to be done so that what was seen becomes what
is wanted, on plain values.

It is the decision that every pass of Holdfast takes (`engine.planner`, by the rules of
`engine.ownership`) without files, a ledger or a kernel: nothing is read and nothing is changed.

    routes(desired, observed, protocol)               two-way: the kernel tells whose a route is
    links, addresses, neighbours, rules(desired, observed, last_applied)
                                                      three-way: nothing in the kernel tells that

Whose something is decides what may become of it. A route carries the protocol number of who made
it, so that whatever carries `protocol` and is not wanted goes. The others carry no such mark
everywhere: only what was applied before (`last_applied`, keys as `key` gives them) and is not
wanted any more goes. What others made is never updated and never deleted; where it stands in the
place of something wanted and is otherwise, that is told as a conflict, and where it is as wanted,
there is nothing to do.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Set
from typing import Any, Generic, TypeVar

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.intent import Action, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds import address as _address
from holdfast.engine.kinds import link as _link
from holdfast.engine.kinds import neighbour as _neighbour
from holdfast.engine.kinds import route as _route
from holdfast.engine.kinds import rule as _rule
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Change, Operation
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy

__all__ = [
    "Address",
    "Change",
    "Key",
    "Link",
    "Neighbour",
    "Op",
    "Route",
    "Rule",
    "addresses",
    "key",
    "links",
    "neighbours",
    "routes",
    "rules",
]

# One who asks, and one moment: what is claimed was claimed here and now.
_CALLER, _NOW = "holdfast.diff", "now"
_POLICY = Policy(epoch=_NOW, allow_mass_delete=True, allow_side_effects=True)


@dataclass(frozen=True, slots=True)
class Route:
    """Key: destination, table, metric. What may differ: type, nexthop, preferred source, MTU."""

    destination: str  # "10.0.0.0/8"; "default" is that of IPv4, "::/0" that of IPv6
    gateway: str = ""
    dev: str = ""
    metric: int = 0  # of IPv6, 0 is what the kernel makes of it: 1024
    table: int = _route.MAIN_TABLE
    type: str = "unicast"
    preferred_source: str = ""
    mtu: int = 0
    protocol: int = 0  # of one that was seen: who made it


@dataclass(frozen=True, slots=True)
class Address:
    """Key: address (of IPv4 with its prefix length) and link. Only those of global scope count."""

    address: str  # "192.0.2.1/24"
    dev: str
    scope: str = ""  # "link", "host"; what follows from the address where not said


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Key: address and link. What may differ: the MAC."""

    address: str
    dev: str
    mac: str
    permanent: bool = True  # False: the kernel found it out by itself, and it is nobody's


@dataclass(frozen=True, slots=True)
class Rule:
    """All of it is key: another rule is one more, and the end of this one."""

    priority: int
    family: int = 4
    source: str = ""  # a prefix; "": any
    destination: str = ""
    fwmark: int | None = None
    fwmask: int = 0xFFFFFFFF
    iif: str = ""
    oif: str = ""
    action: str = "lookup"
    table: int = _route.MAIN_TABLE


@dataclass(frozen=True, slots=True)
class Link:
    """Key: its name. Whether it is there is all that counts."""

    name: str


Item = TypeVar("Item", Route, Address, Neighbour, Rule, Link)


@dataclass(frozen=True, slots=True)
class Op(Generic[Item]):
    # create, update, replace (it cannot be changed in place), delete; conflict: others have it
    # otherwise, and it is for somebody to decide.
    action: str
    item: Item  # as wanted; of a delete as it was seen
    reason: str
    changes: tuple[Change, ...] = ()  # field, before, after


def routes(desired: Iterable[Route], observed: Iterable[Route], protocol: int) -> list[Op[Route]]:
    """Two-way: of those observed, the ones that carry `protocol` are the caller's."""
    return _diff(
        desired, observed, lambda route: route.protocol == protocol, f"protocol {protocol}"
    )


def links(
    desired: Iterable[Link], observed: Iterable[Link], last_applied: Set[Key]
) -> list[Op[Link]]:
    return _diff(desired, observed, lambda link: key(link) in last_applied)


def addresses(
    desired: Iterable[Address], observed: Iterable[Address], last_applied: Set[Key]
) -> list[Op[Address]]:
    """Those that were seen with another scope than global are the kernel's: fe80::/64."""
    seen = [address for address in observed if _artifact(address).fields["scope"] == "global"]
    return _diff(desired, seen, lambda address: key(address) in last_applied)


def neighbours(
    desired: Iterable[Neighbour], observed: Iterable[Neighbour], last_applied: Set[Key]
) -> list[Op[Neighbour]]:
    return _diff(desired, observed, lambda neighbour: key(neighbour) in last_applied)


def rules(
    desired: Iterable[Rule], observed: Iterable[Rule], last_applied: Set[Key]
) -> list[Op[Rule]]:
    return _diff(desired, observed, lambda rule: key(rule) in last_applied)


def key(item: Route | Address | Neighbour | Rule | Link) -> Key:
    """What makes it this one and no other: a kind and a name, as `ip` would write it."""
    return _artifact(item).key


def _diff(
    desired: Iterable[Item], observed: Iterable[Item], ours: Callable[[Item], bool], tag: str = ""
) -> list[Op[Item]]:
    """tag: what those that are ours carry in the kernel; "": that they are is a claim."""
    wanted = {key(one): one for one in desired}
    seen: dict[Key, Item] = {}
    sightings: dict[Key, list[Sighting]] = {}
    owned: dict[Key, Artifact] = {}
    for one in observed:
        artifact = _artifact(one)
        mine = ours(one)
        seen.setdefault(artifact.key, one)
        sightings.setdefault(artifact.key, []).append(
            Sighting(
                artifact,
                tag if mine else "",
                transient=isinstance(one, Neighbour) and not one.permanent,
            )
        )
        if mine:
            seen[artifact.key] = one
            owned[artifact.key] = artifact
    # Two rules may stand side by side by their tags, which there are none of here.
    twins = {found for found in seen if found not in owned and KINDS[found.kind].coexists}
    intents = [
        Intent(_CALLER, _artifact(one), "", creates=found not in twins)
        for found, one in wanted.items()
    ]
    intents += [
        Intent(_CALLER, artifact, "", Action.DELETE)
        for found, artifact in owned.items()
        if found not in wanted
    ]
    claims = {} if tag else {found: _claim(found) for found in owned}
    made = plan(Desired(tuple(intents)), Observed(sightings), claims, _POLICY)
    ops = [
        Op(operation.verb.value, wanted[found], operation.reason, operation.changes)
        if found in wanted
        else Op(operation.verb.value, seen[found], "not wanted any more")
        for operation in made.operations
        if operation.verb.changes_host and (found := _key(operation))
    ]
    return ops + [
        Op("conflict", wanted[conflict.desired.key], conflict.remedy, conflict.changes)
        for conflict in made.conflicts
    ]


def _key(operation: Operation) -> Key:
    assert isinstance(operation.subject, Artifact)  # noqa: S101 (there are no batches)
    return operation.subject.key


def _claim(found: Key) -> Claim:
    """Of what was applied before: which one it is, and not how it was made."""
    return Claim(found, (_CALLER,), Provenance.CREATED, ClaimState.OWNED, {}, "", 0, _NOW)


def _artifact(item: Any) -> Artifact:
    """As the engine has it."""
    match item:
        case Route():
            return _of_route(item)
        case Address():
            interface = ipaddress.ip_interface(item.address)
            # Whether prefixes may overlap is not for a diff to say.
            return _address.address(interface, item.dev, scope=item.scope, allow_overlap=True)
        case Neighbour():
            address = ipaddress.ip_address(item.address)
            return _neighbour.neighbour(address, item.dev, item.mac.lower())
        case Rule():
            return _rule.rule(
                item.family,
                item.priority,
                source=_prefix(item.source),
                destination=_prefix(item.destination),
                iif=item.iif,
                oif=item.oif,
                fwmark=item.fwmark,
                fwmask=item.fwmask,
                action=item.action,
                table=item.table if item.action == "lookup" else 0,
            )
        case Link():
            return _link.link(item.name, {})
    raise TypeError(f"{item!r} is no route, address, neighbour, rule or link")


def _of_route(item: Route) -> Artifact:
    default = "0.0.0.0/0" if item.destination == "default" else item.destination
    network = ipaddress.ip_network(default)
    leg = _route.Nexthop(_host(item.gateway), item.dev)
    template = _route.template(
        network.version,
        table=item.table,
        metric=item.metric,
        kind=item.type,
        nexthops=(leg,) if leg.gateway or leg.dev else (),
        prefsrc=_host(item.preferred_source),
        mtu=item.mtu,
    )
    packed = _route.pack_key(network.network_address.packed, network.prefixlen)
    return _route.expand(template, packed)


def _prefix(text: str) -> str:
    return str(ipaddress.ip_network(text)) if text else ""


def _host(text: str) -> str:
    return str(ipaddress.ip_address(text)) if text else ""
