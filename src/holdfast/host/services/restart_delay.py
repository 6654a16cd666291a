"""How long to wait before a program that ended is started again."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_S = 0.5
FACTOR = 2.0
LONGEST_S = 30.0
# A program that ran for this long was all right: what ended it is news, not the old trouble.
STABLE_S = 60.0


class RestartDelay:
    """Doubles from one end to the next. A random share is taken off, so that programs that fall
    together (their interface went) do not come back in step."""

    def __init__(self, share: Callable[[], float] = random.random) -> None:
        self._share = share
        self._next = FIRST_S

    def after(self, ran: float) -> float:
        """Seconds to wait, for a program that ran for this many."""
        if ran >= STABLE_S:
            self._next = FIRST_S
        wait = self._next * (1 - 0.25 * self._share())
        self._next = min(self._next * FACTOR, LONGEST_S)
        return wait
