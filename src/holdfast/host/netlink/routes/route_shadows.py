"""Others' IPv4 routes in front of ours.

The kernel keeps IPv4 routes of equal destination, table and metric as a list, and uses the first.
`ip route prepend` puts another's in front of ours, which is there as declared and is not used. IPv6
has none in front, only legs beside (`shared_legs.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from holdfast.dataclass import replace
from holdfast.engine import bulk_changes
from holdfast.engine.artifact import Batch
from holdfast.engine.bulk_keys import few_of
from holdfast.engine.kinds.route import RouteTemplate, expand, scope, split_identity
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.routes.route_codec import OddTemplate
from holdfast.host.netlink.routes.route_decode import carried, keys_of, protocol_of, select, settle
from holdfast.host.netlink.routes.route_probe import look_at
from holdfast.host.netlink.routes.route_read import dump_runs
from holdfast.host.netlink.routes.route_sighting import RouteSighting
from holdfast.host.netlink.socket import NetlinkSocket

# A look at one takes as long as twenty of a dump, and others' may be a million.
_FEW = 128
_DEAD = 1  # of a route: its link is down, and the kernel goes on to the next


class Shadows:
    """What is known from look to look. Where somebody listens to the kernel all along, only those
    that he heard of are looked at again, and those that were found: each of our creates is
    exclusive, so that another's comes in front only by a change that the kernel tells of."""

    def __init__(self, sock: NetlinkSocket) -> None:
        self._sock = sock
        # Identities of ours that others' are in front of; None: not all were looked at.
        self._found: frozenset[bytes] | None = None

    def doubtful(self, batches: Sequence[Batch], heard: Collection[bytes] | None) -> list[Batch]:
        """Those of ours that others' may be in front of. heard: identities of routes that others
        were at since the last look; None where nobody listened."""
        declared = [batch for batch in batches if batch.template.family == 4]
        known, self._found = self._found, None
        if heard is None or known is None:
            return declared
        wanted: dict[bytes, set[bytes]] = defaultdict(set)
        for identity in known.union(heard):
            where, key = split_identity(identity)
            wanted[where].add(key)
        return bulk_changes.only(declared, wanted)

    def read(self, doubtful: Sequence[Batch]) -> dict[int, Dump]:
        """The tables that too many of them are in for looking at one after the other, by number.
        Besides others' routes they hold all of ours, which need not be read again."""
        many = {
            table: batches
            for table, batches in _by_table(doubtful).items()
            if sum(map(len, batches)) > _FEW
        }
        return {table: dump_runs(self._sock, 4, table=table) for table in many}

    def find(
        self, doubtful: Sequence[Batch], read: Mapping[int, Dump], seen: RouteSighting
    ) -> dict[bytes, str]:
        """Why ours are of no use, by identity."""
        front: dict[bytes, bytes] = {}
        for table, batches in _by_table(doubtful).items():
            dump = read.get(table)
            if dump is None:
                batches = list(self._look(table, batches, seen, front))
                dump = dump_runs(self._sock, 4, table=table) if batches else Dump([])
            front.update(_first(dump, batches, seen))
        self._found = frozenset(front)
        return {identity: _said(body, seen) for identity, body in front.items()}

    def _look(
        self, table: int, batches: Sequence[Batch], seen: RouteSighting, front: dict[bytes, bytes]
    ) -> Iterator[Batch]:
        """Looks at single ones; answers those that something hides from such a look."""
        for batch in batches:
            unclear = []
            for key in batch.keys:
                point = look_at(self._sock, table, key)
                if point.body is None:
                    if not point.known:
                        unclear.append(key)
                elif scope(seen.reader.read(point.body)[0]) != batch.scope:
                    unclear.append(key)  # it has a lower metric
                elif _is_in_the_way(point.body, batch, seen):
                    front[batch.scope + key] = point.body
            if unclear:
                yield replace(batch, keys=unclear)


def _by_table(batches: Sequence[Batch]) -> dict[int, list[Batch]]:
    found: dict[int, list[Batch]] = defaultdict(list)
    for batch in batches:
        found[batch.template.table].append(batch)
    return found


def _first(dump: Dump, batches: Sequence[Batch], seen: RouteSighting) -> dict[bytes, bytes]:
    """By identity, others' routes that a dump has before ours: its order is the kernel's."""
    _, others = carried(dump, {seen.tag, *seen.former})
    there = keys_of(others.bodies(), 4)
    met = {batch.scope + key: batch for batch in batches for key in few_of(there, batch.keys)}
    if not met:
        return {}
    first: dict[bytes, bytes] = {}
    for body in select(dump.bodies(), 4, {split_identity(one)[1] for one in met}):
        if attributes.to_int(body[8:12]) & _DEAD:
            continue
        (settled,) = settle([body], 4)
        route, key = seen.reader.read(settled)
        first.setdefault(scope(route) + key, settled)
    return {
        identity: body
        for identity, body in first.items()
        if identity in met and _is_in_the_way(body, met[identity], seen)
    }


def _is_in_the_way(body: bytes, batch: Batch, seen: RouteSighting) -> bool:
    """Does what stands first lead elsewhere than ours would?"""
    route, _ = seen.reader.read(body)
    return not seen.is_own(protocol_of(body)) and _way(route) != _way(batch.template)


def _way(route: RouteTemplate) -> tuple[object, ...]:
    return route.type, route.nexthops, route.prefsrc, route.mtu, route.other


def _said(body: bytes, seen: RouteSighting) -> str:
    """With the command that takes the other away: whoever put it there may have meant it."""
    route, key = seen.reader.read(body)
    found = expand(route, key)
    holder = tags.holder_text(protocol_of(body))
    kind = "" if route.type == "unicast" else f"{route.type} "
    way = f" {route.nexthops[0]}" if len(route.nexthops) == 1 else ""
    if isinstance(route, OddTemplate) and route.nhid:
        way = f" nhid {route.nhid}"
    what = f"{kind}{found.key.name}{way} proto {protocol_of(body)}"
    return (
        f"{found.key}: another's stands before it ({holder}) and is used; delete that one"
        f" (`ip route del {what}`), or do not declare yours"
    )
