"""Updates of IPv4 routes. The kernel keeps routes of equal destination and metric as a list of
aliases, ours and others', of which the first is in effect."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.engine.kinds.route import ROUTE, RouteTemplate, expand, scope
from holdfast.host.netlink.names import LinkNames
from holdfast.host.netlink.route_codec import (
    RTM_DELROUTE,
    RTM_NEWROUTE,
    OddTemplate,
    created,
    deleted,
)
from holdfast.host.netlink.route_decode import Reader, protocol_of, select
from holdfast.host.netlink.route_read import dump_routes
from holdfast.host.netlink.route_shared import same_leg
from holdfast.host.netlink.route_update import Update
from holdfast.host.netlink.socket import APPEND, CREATE, EXCL, NetlinkSocket, Request


class Alias(NamedTuple):
    body: bytes
    shared: RouteTemplate


def update_aliases(
    sock: NetlinkSocket, tag: int, names: LinkNames, updates: Sequence[Update]
) -> None:
    """Make before break, at the place in the list where the old one stands."""
    aliases = _aliases(sock, names, updates)
    made: list[tuple[Update, Request]] = []
    removed: list[tuple[Update, Request]] = []
    for update in updates:
        there = aliases[scope(update.new) + update.key]
        place = _place(update, there)
        body = created(update.new, update.new_legs, tag).bodies([update.key])[0]
        if place is None:
            made.append((update, Request(RTM_NEWROUTE, CREATE | EXCL, body)))
            continue
        shape = deleted(there[place].shared, update.old_legs, update.protocol)[0]
        delete = Request(RTM_DELROUTE, 0, shape.bodies([update.key])[0])
        if place > 0 or len(there) == 1:
            made.append((update, Request(RTM_NEWROUTE, CREATE | APPEND, body)))
            removed.append((update, delete))
        elif not _delete_would_match(update.old, update.new):
            # Behind the others it would no longer be in effect, so it goes in front.
            made.append((update, Request(RTM_NEWROUTE, CREATE, body)))
            removed.append((update, delete))
        else:
            _swap(sock, update, delete, body, there[place].body)
    failed = sock.transact([request for _, request in made])
    for index, error in failed.items():
        update, request = made[index]
        # Without EXCL, EEXIST means that the very same alias, protocol included, is there already.
        if error.errno != errno.EEXIST or request.flags & EXCL:
            update.fail(error)
    removed = [(update, request) for update, request in removed if update.failure is None]
    for index, error in sock.transact([request for _, request in removed]).items():
        if error.errno != errno.ESRCH:
            removed[index][0].fail(error)


def _aliases(
    sock: NetlinkSocket, names: LinkNames, updates: Sequence[Update]
) -> dict[bytes, list[Alias]]:
    tables: dict[int, set[bytes]] = defaultdict(set)
    for update in updates:
        tables[update.new.table].add(update.key)
    reader = Reader(names.names)
    found: dict[bytes, list[Alias]] = defaultdict(list)
    for table, keys in tables.items():
        for body in select(dump_routes(sock, 4, table=table), 4, keys):
            shared, key = reader.read(body)
            if not (isinstance(shared, OddTemplate) and shared.tos):
                found[scope(shared) + key].append(Alias(body, shared))
    return found


def _place(update: Update, aliases: Sequence[Alias]) -> int | None:
    """Where the route that was observed stands; None where it is gone."""
    wanted = expand(update.old, update.key).fields
    for place, (body, shared) in enumerate(aliases):
        seen = expand(shared, update.key).fields
        same = all(seen[name] == wanted[name] for name in ROUTE.fields)
        if same and protocol_of(body) == update.protocol:
            return place
    return None


def _delete_would_match(old: RouteTemplate, new: RouteTemplate) -> bool:
    """Would a delete of the old one take the new one too?

    It can't ask for `no MTU` or `no preferred source`, and compares no more legs than both have.
    """
    return (
        old.type == new.type
        and all(map(same_leg, old.nexthops, new.nexthops))
        and old.prefsrc in ("", new.prefsrc)
        and old.mtu in (0, new.mtu)
    )


def _swap(sock: NetlinkSocket, update: Update, delete: Request, new: bytes, old: bytes) -> None:
    """In front of others' aliases, where a delete could not tell the old from the new."""
    failed = sock.transact([delete, Request(RTM_NEWROUTE, CREATE, new)])
    if 1 in failed and failed[1].errno != errno.EEXIST:
        update.fail(failed[1])
        sock.transact([Request(RTM_NEWROUTE, CREATE, old)])
