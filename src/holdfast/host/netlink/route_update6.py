"""Updates of IPv6 routes, leg by leg: the kernel merges legs of equal destination and metric into
one route whoever adds them, and refuses a second leg through the same gateway and link."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.engine.kinds.route import RouteTemplate, expand, scope
from holdfast.host.netlink.names import LinkNames
from holdfast.host.netlink.route_codec import (
    RTM_DELROUTE,
    RTM_NEWROUTE,
    Leg,
    appended,
    deleted,
)
from holdfast.host.netlink.route_delete import left_alone, legs_at
from holdfast.host.netlink.route_shared import FOREIGN_NEXTHOPS, among, same_leg
from holdfast.host.netlink.route_update import Update
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
    doomed = list(update.old_legs)
    if (old.type, old.prefsrc, old.mtu) == (new.type, new.prefsrc, new.mtu):
        rest = iter(update.old_legs)
        for leg in update.new_legs:
            match = next((have for have in rest if _equal(leg, have)), None)
            if match is None:
                break
            doomed.remove(match)
            kept += 1
    wanted = update.new_legs[kept:]
    first = 0
    while first < len(wanted) and not among(
        wanted[first].nexthop, [leg.nexthop for leg in update.old_legs]
    ):
        first += 1
    return Steps(wanted[:first], doomed, wanted[first:])


def _equal(one: Leg, other: Leg) -> bool:
    return same_leg(one.nexthop, other.nexthop) and (
        (one.nexthop.weight, one.nexthop.onlink) == (other.nexthop.weight, other.nexthop.onlink)
    )


def update_legs(sock: NetlinkSocket, tag: int, names: LinkNames, updates: Sequence[Update]) -> None:
    steps = [(update, plan_legs(update)) for update in updates]
    _append_first(sock, tag, steps)
    steps = [(update, step) for update, step in steps if update.failure is None]
    swapped: list[tuple[Update, Request]] = []
    for update, step in steps:
        swapped += [
            (update, _delete(update, update.old, leg, update.protocol)) for leg in step.doomed
        ]
        swapped += [(update, _append(update, update.new, leg, tag)) for leg in step.last]
    for index, error in sock.transact([request for _, request in swapped]).items():
        update, request = swapped[index]
        if request.kind == RTM_NEWROUTE or error.errno != errno.ESRCH:
            update.fail(error)
    restored = [
        _append(update, update.old, leg, update.protocol)
        for update, step in steps
        if update.failure is not None
        for leg in step.doomed
    ]
    sock.transact(restored)  # what was not deleted answers EEXIST
    _tell_others_legs(sock, names, [update for update in updates if update.failure is None])


def _append_first(sock: NetlinkSocket, tag: int, steps: Sequence[tuple[Update, Steps]]) -> None:
    """Where one leg of a route is refused, the others are taken back, and the old ones stay."""
    made = [(update, leg) for update, step in steps for leg in step.first]
    failed = sock.transact([_append(update, update.new, leg, tag) for update, leg in made])
    for index, error in failed.items():
        made[index][0].fail(error)
    sock.transact(
        [
            _delete(update, update.new, leg, tag)
            for index, (update, leg) in enumerate(made)
            if update.failure is not None and index not in failed
        ]
    )


def _append(update: Update, shared: RouteTemplate, leg: Leg, protocol: int) -> Request:
    body = appended(shared, leg, protocol).bodies([update.key])[0]
    return Request(RTM_NEWROUTE, CREATE | APPEND, body)


def _delete(update: Update, shared: RouteTemplate, leg: Leg, protocol: int) -> Request:
    body = deleted(shared, [leg], protocol)[0].bodies([update.key])[0]
    return Request(RTM_DELROUTE, 0, body)


def _tell_others_legs(sock: NetlinkSocket, names: LinkNames, updates: Sequence[Update]) -> None:
    """Legs that are still beside ours were refused to us by the kernel: they are others'."""
    there = legs_at(sock, names, [(update.new, update.key) for update in updates])
    for update in updates:
        own = [leg.nexthop for leg in update.new_legs]
        others = [
            leg
            for route in there[scope(update.new) + update.key]
            if any(among(leg, own) for leg in route)
            for leg in route
            if not among(leg, own)
        ]
        if others:
            update.notes += [left_alone(leg, update.key) for leg in others]
            update.remember = {
                **expand(update.new, update.key).fields,
                FOREIGN_NEXTHOPS: tuple(str(leg) for leg in others),
            }
