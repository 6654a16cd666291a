"""Calls that were refused for who made them: counted, said now and then, and limited."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.api import limits
from holdfast.api.conditions import Busy, Denied, Unauthenticated
from holdfast.dataclass import dataclass, field

UNAUTHENTICATED, DENIED, TOO_MANY = "unauthenticated", "denied", "too-many"


@dataclass(slots=True)
class _Socket:
    room: float = limits.REFUSALS_AT_ONCE
    looked: float = 0.0
    said: float = -limits.REFUSALS_SAID_S
    unsaid: int = 0


@dataclass(slots=True)
class Refusals:
    """On the event loop. A call that is allowed never waits for those that are not."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # by socket and reason
    _sockets: dict[str, _Socket] = field(default_factory=dict)

    def count(self, socket: str, error: Unauthenticated | Denied, *, limited: bool) -> None:
        """limited: it was not root's or the group's of one of the two sockets, so that the log says
        it, and raises Busy for more than may fail at a time."""
        reason = UNAUTHENTICATED if isinstance(error, Unauthenticated) else DENIED
        if limited and not self._room(socket, error):
            self._add(socket, TOO_MANY)
            raise Busy(f"too many calls over {socket} were refused: try again in a second")
        self._add(socket, reason)

    def _room(self, socket: str, error: Unauthenticated | Denied) -> bool:
        now, known = self.clock(), self._sockets.setdefault(socket, _Socket())
        passed, known.looked = now - known.looked, now
        known.room = min(limits.REFUSALS_AT_ONCE, known.room + passed * limits.REFUSALS_EACH_SECOND)
        known.unsaid += 1
        if now - known.said >= limits.REFUSALS_SAID_S:
            times = f" ({known.unsaid} since this was said last)" if known.unsaid > 1 else ""
            self.say(f"a call over {socket} was refused: {error}{times}")
            known.said, known.unsaid = now, 0
        if known.room < 1:
            return False
        known.room -= 1
        return True

    def forget(self, socket: str) -> None:
        """It is closed for good."""
        self._sockets.pop(socket, None)
        for key in [key for key in self.counts if key[0] == socket]:
            del self.counts[key]

    def _add(self, socket: str, reason: str) -> None:
        self.counts[socket, reason] = self.counts.get((socket, reason), 0) + 1
