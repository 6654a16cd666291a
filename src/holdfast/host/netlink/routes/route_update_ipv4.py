"""Updates of IPv4 routes. The kernel keeps routes of equal destination and metric as a list of
aliases, ours and others', of which the first is in effect."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.engine.kinds.route import ROUTE, Nexthop, RouteTemplate, scope
from holdfast.errors import DriverError
from holdfast.host.netlink.links.link_names import LinkNames
from holdfast.host.netlink.routes.route_codec import (
    RTM_DELROUTE,
    RTM_NEWROUTE,
    OddTemplate,
    created,
    deleted,
)
from holdfast.host.netlink.routes.route_decode import Reader, protocol_of, select, settle
from holdfast.host.netlink.routes.route_probe import FEW, look_at
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.routes.route_update import Update, chunks
from holdfast.host.netlink.socket import APPEND, CREATE, EXCL, NetlinkSocket, Request


class Alias(NamedTuple):
    body: bytes
    shared: RouteTemplate


class One(NamedTuple):
    """One route of an update."""

    update: Update
    key: bytes

    @property
    def identity(self) -> bytes:
        return scope(self.update.new) + self.key


def update_aliases(
    sock: NetlinkSocket,
    tag: int,
    names: LinkNames,
    updates: Sequence[Update],
    progress: Callable[[int], None],
) -> None:
    """Make before break, at the place in the list where the old one stands.

    A route that stands alone and is as it was observed has no place to lose: those are changed
    many at a time. All others are looked at one by one.
    """
    tables: dict[int, list[Update]] = defaultdict(list)
    for update in updates:
        tables[update.new.table].append(update)
    for table, members in tables.items():
        keys = set().union(*(update.keys for update in members))
        if len(keys) <= FEW and _update_first(sock, tag, table, members):
            progress(sum(len(update.keys) for update in members))
            continue
        try:
            bodies = settle(select(dump_routes(sock, 4, table=table), 4, keys), 4)
        except DriverError as error:
            for update in members:
                update.fail_all(str(error))
            continue
        alone, others = _sort_out(bodies, members, tag, names)
        # First, because more can go wrong with what has been read of them.
        _update_in_place(sock, tag, others, _aliases(bodies, others, names))
        progress(len(others))
        for update, apart in alone:
            _update_alone(sock, tag, update, apart, progress)


def _update_first(sock: NetlinkSocket, tag: int, table: int, updates: Sequence[Update]) -> bool:
    """Few routes, each as it was observed and in effect: the new one goes in front of it, whatever
    stands behind. False: not all of them are so, and nothing was touched."""
    ones: list[One] = []
    for update in updates:
        expected = _as_observed(update, tag)
        if not expected or _delete_would_match(update.old, update.new):
            return False
        for key, body in zip(update.keys, expected, strict=True):
            if look_at(sock, table, key).body != body:
                return False
            ones.append(One(update, key))
    made = [created(one.update.new, one.update.new_legs, tag).bodies([one.key])[0] for one in ones]
    for index, error in sock.transact(
        [Request(RTM_NEWROUTE, CREATE, body) for body in made]
    ).items():
        if error.errno != errno.EEXIST:  # the very same alias, protocol included, is there
            ones[index].update.fail(ones[index].key, error)
    doomed = [one for one in ones if one.key not in one.update.failures]
    removed = []
    for one in doomed:
        (old,) = deleted(one.update.old, one.update.old_legs or (), one.update.protocol)
        removed.append(Request(RTM_DELROUTE, 0, old.bodies([one.key])[0]))
    for index, error in sock.transact(removed).items():
        if error.errno != errno.ESRCH:
            doomed[index].update.fail(doomed[index].key, error)
    return True


def _sort_out(
    bodies: Sequence[bytes], updates: Sequence[Update], tag: int, names: LinkNames
) -> tuple[list[tuple[Update, Sequence[bytes]]], list[One]]:
    """Own routes that are exactly as observed and the only ones of their destination and metric,
    and the others."""
    expected = [_as_observed(update, tag) for update in updates]
    meant = set().union(*expected)
    reader = Reader(names.names)
    beside = (reader.read(body) for body in bodies if body not in meant)
    crowded = {scope(shared) + key for shared, key in beside}
    there = meant.intersection(bodies)
    alone: list[tuple[Update, Sequence[bytes]]] = []
    others: list[One] = []
    for update, wanted in zip(updates, expected, strict=True):
        keys = update.keys if wanted else ()
        if crowded or not there.issuperset(wanted):
            identities = scope(update.new)
            keys = [
                key
                for key, body in zip(keys, wanted, strict=True)
                if body in there and identities + key not in crowded
            ]
        alone.append((update, keys))
        if len(keys) < len(update.keys):
            others += [One(update, key) for key in _without(update.keys, keys)]
    return alone, others


def _as_observed(update: Update, tag: int) -> list[bytes]:
    """The bodies of the routes to be changed, where they are ours by tag and their links exist."""
    if update.protocol not in (tag, update.old.protocol) or update.old_legs is None:
        return []
    return created(update.old, update.old_legs, update.protocol).bodies(update.keys)


def _without(keys: Sequence[bytes], some: Sequence[bytes]) -> Sequence[bytes]:
    left = set(keys).difference(some)
    return [key for key in keys if key in left]


def _update_alone(
    sock: NetlinkSocket,
    tag: int,
    update: Update,
    keys: Sequence[bytes],
    progress: Callable[[int], None],
) -> None:
    new = created(update.new, update.new_legs, tag)
    (old,) = deleted(update.old, update.old_legs or (), update.protocol)
    for chunk in chunks(keys):
        made = (Request(RTM_NEWROUTE, CREATE | APPEND, body) for body in new.stream(chunk))
        for index, error in sock.transact(made).items():
            if error.errno != errno.EEXIST:  # the very same alias, protocol included, is there
                update.fail(chunk[index], error)
        doomed = update.unfailed(chunk)
        removed = (Request(RTM_DELROUTE, 0, body) for body in old.stream(doomed))
        for index, error in sock.transact(removed).items():
            if error.errno != errno.ESRCH:
                update.fail(doomed[index], error)
        progress(len(chunk))


def _update_in_place(
    sock: NetlinkSocket, tag: int, ones: Sequence[One], aliases: Mapping[bytes, Sequence[Alias]]
) -> None:
    made: list[tuple[One, Request]] = []
    removed: list[tuple[One, Request]] = []
    for one in ones:
        update = one.update
        there = aliases.get(one.identity, ())
        place = _place(one, there)
        (body,) = created(update.new, update.new_legs, tag).bodies([one.key])
        if place is None:
            made.append((one, Request(RTM_NEWROUTE, CREATE | EXCL, body)))
            continue
        (shape,) = deleted(there[place].shared, update.old_legs or (), update.protocol)
        delete = Request(RTM_DELROUTE, 0, shape.bodies([one.key])[0])
        if place > 0 or len(there) == 1:
            made.append((one, Request(RTM_NEWROUTE, CREATE | APPEND, body)))
            removed.append((one, delete))
        elif not _delete_would_match(update.old, update.new):
            # Behind the others it would no longer be in effect, so it goes in front.
            made.append((one, Request(RTM_NEWROUTE, CREATE, body)))
            removed.append((one, delete))
        else:
            _swap(sock, one, delete, body, there[place].body)
    for index, error in sock.transact([request for _, request in made]).items():
        one, request = made[index]
        # Without EXCL, EEXIST means that the very same alias, protocol included, is there already.
        if error.errno != errno.EEXIST or request.flags & EXCL:
            one.update.fail(one.key, error)
    removed = [(one, request) for one, request in removed if one.key not in one.update.failures]
    for index, error in sock.transact([request for _, request in removed]).items():
        if error.errno != errno.ESRCH:
            one, _ = removed[index]
            one.update.fail(one.key, error)


def _aliases(
    bodies: Sequence[bytes], ones: Sequence[One], names: LinkNames
) -> Mapping[bytes, Sequence[Alias]]:
    reader = Reader(names.names)
    found: dict[bytes, list[Alias]] = defaultdict(list)
    for body in select(bodies, 4, {one.key for one in ones}):
        shared, key = reader.read(body)
        if not (isinstance(shared, OddTemplate) and shared.tos):
            found[scope(shared) + key].append(Alias(body, shared))
    return found


def _place(one: One, aliases: Sequence[Alias]) -> int | None:
    """Where the route that was observed stands; None where it is gone."""
    wanted = _compared(one.update.old)
    for place, (body, shared) in enumerate(aliases):
        if _compared(shared) == wanted and protocol_of(body) == one.update.protocol:
            return place
    return None


def _compared(shared: RouteTemplate) -> tuple[object, ...]:
    return tuple(getattr(shared, name) for name in ROUTE.fields)


def _delete_would_match(old: RouteTemplate, new: RouteTemplate) -> bool:
    """Would a delete of the old one take the new one too?

    It can't ask for `no MTU`, `no preferred source` or `no gateway`, and compares no more legs
    than both have.
    """
    return (
        old.protocol == new.protocol
        and old.type == new.type
        and all(map(_leg_would_match, old.nexthops, new.nexthops))
        and old.prefsrc in ("", new.prefsrc)
        and old.mtu in (0, new.mtu)
    )


def _leg_would_match(old: Nexthop, new: Nexthop) -> bool:
    return old.gateway in ("", new.gateway) and (old.dev == new.dev or not old.dev or not new.dev)


def _swap(sock: NetlinkSocket, one: One, delete: Request, new: bytes, old: bytes) -> None:
    """In front of others' aliases, where a delete could not tell the old from the new."""
    failed = sock.transact([delete, Request(RTM_NEWROUTE, CREATE, new)])
    if 1 in failed and failed[1].errno != errno.EEXIST:
        one.update.fail(one.key, failed[1])
        sock.transact([Request(RTM_NEWROUTE, CREATE, old)])
