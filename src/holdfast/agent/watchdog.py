"""Whether the loop gets round, for the service manager's watchdog and for whoever asks."""

from __future__ import annotations

import asyncio
import os
import time

from holdfast.agent.sd_notify import notify
from holdfast.dataclass import dataclass

# A round that takes longer than this hangs: a million routes are written in ten seconds, and the
# slowest program a pass waits for is given a minute.
LONGEST_ROUND_S = 180.0


@dataclass(slots=True)
class Watchdog:
    """Beats only while rounds of the loop come to their end: a task that merely runs on the same
    event loop would go on for ever beside a pass that hangs."""

    _since: float = 0.0  # when the round under way began; 0: none is

    def begin(self) -> None:
        self._since = time.monotonic()

    def end(self) -> None:
        self._since = 0.0

    def alive(self) -> bool:
        return not self._since or time.monotonic() - self._since < LONGEST_ROUND_S

    async def run(self) -> None:
        """Feeds the watchdog of the service manager, where it set one for this process."""
        period = _watchdog_seconds()
        while period:
            if self.alive():
                notify("WATCHDOG=1")
            await asyncio.sleep(period / 3)


def _watchdog_seconds() -> float:
    meant = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    text = os.environ.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if meant and text.isdecimal() else 0.0
