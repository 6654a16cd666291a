"""When there is to be another pass, and why."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, field

# One change outside brings several hints; a pass waits this long for the rest of them.
DEBOUNCE_S = 0.01
# Links and addresses may change without end: another program undoes what a pass did, containers
# come and go, and what a pass itself changed is a hint too. Passes that follow each other for that
# reason come further and further apart, up to this.
LONGEST_SPACING_S = 5.0
TIMER = "the timer"


@dataclass(slots=True)
class Wakeups:
    """What is told while a pass runs leads to the next one: nothing told is lost."""

    _causes: dict[str, None] = field(default_factory=dict)
    _due: float = math.inf
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _spacing: float = DEBOUNCE_S
    _crowded: bool = False  # told by something that may go on without end
    _last: float = -math.inf

    def tell(self, cause: str, patience: float = DEBOUNCE_S) -> None:
        """There is to be a pass within so many seconds."""
        self._causes[cause] = None
        self._due = min(self._due, _now() + patience)
        self._told.set()

    def tell_of_many(self, cause: str) -> None:
        """There is to be a pass, but not one for each time this is told."""
        self._crowded = True
        self.tell(cause, self._spacing)

    async def next(self, interval: float) -> tuple[str, ...]:
        """Waits until there is to be a pass, which is in `interval` seconds at the latest; answers
        why."""
        latest = _now() + interval
        while (left := min(self._due, latest) - _now()) > 0:
            self._told.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._told.wait()
        causes = tuple(self._causes) or (TIMER,)
        self._space()
        self._causes.clear()
        self._due, self._crowded = math.inf, False
        return causes

    def _space(self) -> None:
        now = _now()
        if now - self._last > max(1.0, 2 * self._spacing):
            self._spacing = DEBOUNCE_S
        if self._crowded:
            self._spacing = min(2 * self._spacing, LONGEST_SPACING_S)
            self._last = now


def _now() -> float:
    return asyncio.get_running_loop().time()
