"""Routes that others had and have no more."""

from __future__ import annotations

import errno
from collections import defaultdict
from contextlib import suppress

from holdfast.engine.artifact import Key
from holdfast.host.foreign_state import aliases, routes
from holdfast.host.foreign_state.comparing import dump_recorded_routes, follows_mtu, link_mtus
from holdfast.host.foreign_state.record import Kind, Record
from holdfast.host.foreign_state.replay import Indexes, Unmapped
from holdfast.host.netlink.routes.route_decode import keys_of
from holdfast.host.netlink.socket import (
    APPEND,
    CREATE,
    EXCL,
    REPLACE,
    NetlinkError,
    NetlinkSocket,
    Request,
)

_Missing = tuple[bytes, bytes]  # as told, and the message that makes it


class MissingRoutes:
    """Those that are not there as they were, tried for as long as more of them can be made: some
    lead over gateways that others of them lead to. Ours too, where they stood beside others': what
    is ours is made exclusively, and only here it is known who stood there before."""

    def __init__(
        self, sock: NetlinkSocket, record: Record, indexes: Indexes, elapsed: float
    ) -> None:
        self._sock = sock
        self._failed: list[str] = []
        self._errors: dict[bytes, NetlinkError] = {}
        self._left: list[_Missing] = []
        self._now = Indexes(indexes.names, indexes.today)
        self._there: dict[routes.Identity, list[bytes]] = defaultdict(list)
        self._following: set[bytes] = set()  # those whose MTU the kernel may have set
        others = record.others.get(Kind.ROUTE, ())
        if others:
            mtus = link_mtus(sock)
            for body in dump_recorded_routes(sock, record):
                message = routes.again(body, self._now)
                self._there[routes.identity(body)].append(message)
                if follows_mtu(body, mtus):
                    self._following.add(message)
        self._aliased = keys_of(record.aliases, 4)
        self._there.update(self._equal())
        there = {message for messages in self._there.values() for message in messages}
        self._places: dict[bytes, int] = {}  # of messages, in the order of the record
        for body in record.aliases:
            with suppress(Unmapped):
                self._places[routes.again(body, indexes)] = len(self._places)
        ours = (body for body in record.aliases if body[5] == record.tag)
        for body in (*others, *ours):
            self._sort(body, indexes, there, elapsed)

    def _equal(self) -> dict[routes.Identity, list[bytes]]:
        """What is at the places of routes that had equals, in the kernel's order."""
        found = aliases.there(self._sock, self._aliased)
        return {
            identity: [routes.again(body, self._now) for body in bodies]
            for identity, bodies in found.items()
        }

    def _sort(self, body: bytes, indexes: Indexes, there: set[bytes], elapsed: float) -> None:
        left = routes.lifetime(body, elapsed)
        if left is not None and left <= 0:
            return  # it would be over by now
        try:
            message = routes.again(body, indexes)
        except Unmapped as missing:
            self._failed.append(f"{routes.key(body)}: {missing}")
            return
        self._places.setdefault(message, len(self._places))
        if message not in there:
            timed = message if left is None else routes.with_lifetime(message, left)
            self._left.append((body, timed))

    def make(self) -> tuple[list[tuple[Key, int]], bool]:
        """What was made, with its protocol; and whether more could be later."""
        made: list[tuple[Key, int]] = []
        vain: set[bytes] = set()  # tried since the last one that could be made
        while turn := self._turn(vain):
            errors = self._sock.transact([self._request(*one) for one in turn])
            self._errors |= {turn[at][1]: error for at, error in errors.items()}
            done = [one for at, one in enumerate(turn) if at not in errors]
            vain = set() if done else vain | {message for _, message in turn}
            for body, message in done:
                made.append((routes.key(body), body[5]))
                self._there[routes.identity(body)].append(message)
            gone = {message for _, message in done}
            self._left = [one for one in self._left if one[1] not in gone]
        waits = any(self._errors[message].errno != errno.EEXIST for _, message in self._left)
        return made, waits

    @property
    def failed(self) -> list[str]:
        left = (_problem(body, self._errors[message]) for body, message in self._left)
        return [*self._failed, *left]

    def misplaced(self) -> list[str]:
        """Equal routes in another order than before. Between two that are there none can be made,
        and what the kernel makes of an address comes last: others' would have to go for that."""
        found = []
        for messages in self._equal().values():
            places = [self._places[message] for message in messages if message in self._places]
            if places != sorted(places):
                found.append(f"{routes.key(messages[0])}: equal routes stand in another order")
        return found

    def _turn(self, vain: set[bytes]) -> list[_Missing]:
        """The next of each identity. Straight to a link first: others' gateways are reached that
        way."""
        waiting: dict[routes.Identity, list[_Missing]] = defaultdict(list)
        for one in self._left:
            if one[1] not in vain:
                waiting[routes.identity(one[0])].append(one)
        turn = [self._next(identity, ones) for identity, ones in waiting.items()]
        return sorted(turn, key=lambda one: not routes.is_direct(one[0]))

    def _next(self, identity: routes.Identity, ones: list[_Missing]) -> _Missing:
        """From the last to the first of those that stood before what is there, then those behind
        it: a route can only be made the first or the last of its equals."""
        first = self._first(self._there.get(identity, []))
        before = [one for one in ones if first is not None and self._place(one[1], first) < first]
        if before:
            return max(before, key=lambda one: self._place(one[1], 0))
        return min(ones, key=lambda one: self._place(one[1], len(self._places)))

    def _first(self, beside: list[bytes]) -> int | None:
        """The place of the first of them; None where they are not all from the record."""
        if not beside or not self._places.keys() >= set(beside):
            return None
        return min(self._places[other] for other in beside)

    def _place(self, message: bytes, unknown: int) -> int:
        return self._places.get(message, unknown)

    def _request(self, body: bytes, message: bytes) -> Request:
        """Exclusive, but where those in its place are the ones that it stood beside before: then
        before or behind them, as it was."""
        beside = self._there.get(routes.identity(body), [])
        if len(beside) == 1 and self._differs_in_mtu(message, beside[0]):
            return Request(routes.RTM_NEWROUTE, REPLACE, message)
        for other in beside:
            legs = routes.without_legs(message, other)
            if legs is not None:
                return Request(routes.RTM_NEWROUTE, CREATE | APPEND, legs)
        flags = CREATE | EXCL
        first = self._first(beside)
        if first is not None:
            flags = CREATE if self._place(message, first) < first else CREATE | APPEND
        return Request(routes.RTM_NEWROUTE, flags, message)

    def _differs_in_mtu(self, message: bytes, there: bytes) -> bool:
        if there not in self._following:
            return False
        return routes.without_mtu(message) == routes.without_mtu(there)


def _problem(body: bytes, error: NetlinkError) -> str:
    taken = error.errno == errno.EEXIST
    return f"{routes.key(body)}: {'another is in its place by now' if taken else error}"
