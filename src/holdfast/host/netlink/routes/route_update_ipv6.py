"""Updates of IPv6 routes, leg by leg: the kernel merges legs of equal destination and metric into
one route whoever adds them, and refuses a second leg through the same gateway and link."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from holdfast.engine.kinds.route import RouteTemplate, expand, scope
from holdfast.errors import DriverError
from holdfast.host.netlink.links.link_names import LinkNames
from holdfast.host.netlink.routes.route_codec import (
    RTM_DELROUTE,
    RTM_NEWROUTE,
    Leg,
    Shape,
    appended,
    deleted,
)
from holdfast.host.netlink.routes.route_decode import Reader, metric_of, select
from holdfast.host.netlink.routes.route_delete import left_alone
from holdfast.host.netlink.routes.route_probe import FEW, look_at
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.routes.route_update import Update, chunks
from holdfast.host.netlink.routes.shared_legs import FOREIGN_NEXTHOPS, among, same_leg
from holdfast.host.netlink.socket import APPEND, CREATE, NetlinkSocket, Request


class Steps(NamedTuple):
    """What it takes to turn one sequence of legs into another."""

    first: list[Leg]  # appended while the old legs are still there
    doomed: list[Leg]
    last: list[Leg]  # appended after the old legs are gone, as they would collide or be disordered


def plan_legs(update: Update) -> Steps:
    """Legs are dumped in the order they were added, so the order declared is restored by deleting
    from the first one that is out of place."""
    old, new = update.old, update.new
    kept = 0
    old_legs = update.old_legs or []
    doomed = list(old_legs)
    if _said(old) == _said(new):
        rest = iter(old_legs)
        for leg in update.new_legs:
            match = next((have for have in rest if _equal(leg, have)), None)
            if match is None:
                break
            doomed.remove(match)
            kept += 1
    wanted = update.new_legs[kept:]
    first = 0
    while first < len(wanted) and not among(
        wanted[first].nexthop, [leg.nexthop for leg in old_legs]
    ):
        first += 1
    return Steps(wanted[:first], doomed, wanted[first:])


def _said(shared: RouteTemplate) -> tuple[object, ...]:
    """Of the route as a whole."""
    return shared.type, shared.prefsrc, shared.mtu, shared.other, shared.protocol


def _equal(leg: Leg, other: Leg) -> bool:
    return same_leg(leg.nexthop, other.nexthop) and (
        (leg.nexthop.weight, leg.nexthop.onlink) == (other.nexthop.weight, other.nexthop.onlink)
    )


def update_legs(
    sock: NetlinkSocket,
    tag: int,
    names: LinkNames,
    updates: Sequence[Update],
    progress: Callable[[int], None],
) -> None:
    for update in updates:
        steps = plan_legs(update)
        for chunk in chunks(update.keys):
            _append_first(sock, tag, update, steps.first, chunk)
            _swap(sock, tag, update, steps, update.unfailed(chunk))
            progress(len(chunk))
    _tell_others_legs(sock, tag, names, updates)


def _append_first(
    sock: NetlinkSocket, tag: int, update: Update, legs: Sequence[Leg], keys: Sequence[bytes]
) -> None:
    """Where one leg of a route is refused, the others are taken back, and the old ones stay."""
    failed = sock.transact(_in_turn(keys, [_append(update.new, leg, tag) for leg in legs]))
    for index, error in failed.items():
        update.fail(keys[index // len(legs)], error)
    taken_back = [
        Request(RTM_DELROUTE, 0, shape.bodies([keys[at]])[0])
        for at in sorted({index // len(legs) for index in failed})
        for number, leg in enumerate(legs)
        if at * len(legs) + number not in failed
        for shape in deleted(update.new, [leg], tag)
    ]
    sock.transact(taken_back)


def _swap(
    sock: NetlinkSocket, tag: int, update: Update, steps: Steps, keys: Sequence[bytes]
) -> None:
    """The old legs out, those in that could not be beside them. A route that fails gets its old
    legs back."""
    shapes = [
        _Message(RTM_DELROUTE, 0, shape)
        for leg in steps.doomed
        for shape in deleted(update.old, [leg], update.protocol)
    ]
    shapes += [_append(update.new, leg, tag) for leg in steps.last]
    failed = sock.transact(_in_turn(keys, shapes))
    for index, error in failed.items():
        at, number = divmod(index, len(shapes))
        if shapes[number].kind == RTM_NEWROUTE or error.errno != errno.ESRCH:
            update.fail(keys[at], error)
    lost = [key for key in keys if key in update.failures] if update.failures else []
    back = [_append(update.old, leg, update.protocol) for leg in steps.doomed]
    sock.transact(_in_turn(lost, back))  # what was not deleted answers EEXIST


class _Message(NamedTuple):
    """What is asked of each of many routes."""

    kind: int
    flags: int
    shape: Shape

    def requests(self, keys: Sequence[bytes]) -> Iterator[Request]:
        return (Request(self.kind, self.flags, body) for body in self.shape.stream(keys))


def _append(shared: RouteTemplate, leg: Leg, protocol: int) -> _Message:
    return _Message(RTM_NEWROUTE, CREATE | APPEND, appended(shared, leg, protocol))


def _in_turn(keys: Sequence[bytes], messages: Sequence[_Message]) -> Iterator[Request]:
    """All messages about the first route, then all about the next: none is without its legs for
    longer than the kernel takes for its own."""
    return chain.from_iterable(zip(*(message.requests(keys) for message in messages), strict=True))


def _tell_others_legs(
    sock: NetlinkSocket, tag: int, names: LinkNames, updates: Sequence[Update]
) -> None:
    """Legs that are still beside ours were refused to us by the kernel: they are others'."""
    tables: dict[int, list[Update]] = defaultdict(list)
    for update in updates:
        tables[update.new.table].append(update)
    for table, members in tables.items():
        keys = set().union(*(update.keys for update in members))
        try:
            bodies = _few_routes(sock, table, members) if len(keys) <= FEW else None
            if bodies is None:
                bodies = select(dump_routes(sock, 6, table=table), 6, keys)
        except DriverError as error:
            for update in members:
                update.fail_all(f"changed, but not seen since: {error}")
            continue
        for shared, there in Reader(names.names).group(bodies).items():
            for update in members:
                _tell(update, shared, there, tag)


def _few_routes(sock: NetlinkSocket, table: int, updates: Sequence[Update]) -> list[bytes] | None:
    """The routes that were changed, looked at one by one; None where others hide one of them."""
    found = []
    for update in updates:
        for key in update.keys:
            body = look_at(sock, table, key).body
            if body is None or metric_of(body) != update.new.metric:
                return None
            found.append(body)
    return found


def _tell(update: Update, seen: RouteTemplate, keys: Sequence[bytes], tag: int) -> None:
    own = [leg.nexthop for leg in update.new_legs]
    others = [leg for leg in seen.nexthops if not among(leg, own)]
    if not others or len(others) == len(seen.nexthops) or scope(seen) != scope(update.new):
        return
    meant = set(update.unfailed(update.keys))
    for key in keys:
        if key in meant:
            update.notes += [left_alone(leg, key) for leg in others]
            artifact = expand(update.new, key)
            foreign = tuple(str(leg) for leg in others)
            # The protocol tells what is left there once our legs are gone: it is not ours.
            update.remember[artifact.key] = {
                **artifact.fields,
                FOREIGN_NEXTHOPS: foreign,
                "protocol": tag,
            }
