"""Routes that others had and have no more."""

from __future__ import annotations

import errno
from collections import defaultdict

from holdfast.engine.artifact import Key
from holdfast.host.netlink.socket import APPEND, CREATE, EXCL, NetlinkError, NetlinkSocket, Request
from holdfast.host.others import routes
from holdfast.host.others.comparing import dump_recorded_routes
from holdfast.host.others.record import Kind, Record
from holdfast.host.others.replay import Indexes, Unmapped

_Missing = tuple[bytes, bytes]  # as told, and the message that makes it


class MissingRoutes:
    """Those that are not there as they were, tried for as long as more of them can be made: some
    lead over gateways that others of them lead to."""

    def __init__(
        self, sock: NetlinkSocket, record: Record, indexes: Indexes, elapsed: float
    ) -> None:
        self._sock = sock
        self._record = record
        self._failed: list[str] = []
        self._problems: list[str] = []
        self._left: list[_Missing] = []
        now = Indexes({index: name for name, index in indexes.today.items()}, indexes.today)
        there = set()
        self._there: dict[routes.Identity, list[bytes]] = defaultdict(list)
        if record.others.get(Kind.ROUTE):
            for body in dump_recorded_routes(sock, record):
                there.add(message := routes.again(body, now))
                self._there[routes.identity(body)].append(message)
        self._places: dict[bytes, int] = {}  # of messages, in the order of the record
        for body in record.others.get(Kind.ROUTE, ()):
            self._sort(body, indexes, there, elapsed)

    def _sort(self, body: bytes, indexes: Indexes, there: set[bytes], elapsed: float) -> None:
        left = routes.lifetime(body, elapsed)
        if left is not None and left <= 0:
            return  # it would be over by now
        try:
            message = routes.again(body, indexes)
        except Unmapped as missing:
            self._failed.append(f"{routes.key(body)}: {missing}")
            return
        self._places[message] = len(self._places)
        if message not in there:
            timed = message if left is None else routes.with_lifetime(message, left)
            self._left.append((body, timed))

    def make(self) -> tuple[list[tuple[Key, int]], bool]:
        """What was made, with its protocol; and whether more could be later."""
        made: list[tuple[Key, int]] = []
        errors: list[NetlinkError | None] = []
        while self._left:
            # Straight to a link first: others' gateways are reached that way.
            self._left.sort(key=lambda one: not routes.is_direct(one[0]))
            turn, later = _one_each(self._left)
            answers = self._sock.transact([self._request(*one) for one in turn])
            errors = [answers.get(at) for at in range(len(turn))]
            for (body, message), error in zip(turn, errors, strict=True):
                if error is None:
                    made.append((routes.key(body), body[5]))
                    self._there[routes.identity(body)].append(message)
            failed = [one for one, error in zip(turn, errors, strict=True) if error is not None]
            self._left = failed + later
            if len(failed) == len(turn):
                self._problems = [
                    _problem(body, error) for (body, _), error in zip(turn, errors, strict=True)
                ]
                self._problems += [f"{routes.key(body)}: not tried" for body, _ in later]
                break
        waits = any(error is not None and error.errno != errno.EEXIST for error in errors)
        return made, bool(self._left) and waits

    @property
    def failed(self) -> list[str]:
        return [*self._failed, *(self._problems if self._left else ())]

    def _request(self, body: bytes, message: bytes) -> Request:
        """Exclusive, but where those in its place are the ones that it stood beside before: then
        before or behind them, as it was."""
        beside = self._there.get(routes.identity(body), [])
        for other in beside:
            legs = routes.without_legs(message, other)
            if legs is not None:
                return Request(routes.RTM_NEWROUTE, CREATE | APPEND, legs)
        flags = CREATE | EXCL
        if beside and self._places.keys() >= set(beside):
            first = min(self._places[other] for other in beside)
            flags = CREATE if self._places.get(message, first) < first else CREATE | APPEND
        return Request(routes.RTM_NEWROUTE, flags, message)


def _one_each(left: list[_Missing]) -> tuple[list[_Missing], list[_Missing]]:
    """The first of each identity, and the others, which are made beside it."""
    turn: dict[routes.Identity, _Missing] = {}
    later = []
    for one in left:
        if turn.setdefault(routes.identity(one[0]), one) is not one:
            later.append(one)
    return list(turn.values()), later


def _problem(body: bytes, error: NetlinkError | None) -> str:
    taken = error is not None and error.errno == errno.EEXIST
    return f"{routes.key(body)}: {'another is in its place by now' if taken else error}"
