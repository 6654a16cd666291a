"""When the file is to be read again."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from holdfast.agent.pass_schedule import PassSchedule
from holdfast.agent.watch.hint import CONFIG, Hint
from holdfast.dataclass import dataclass
from holdfast.runtime.unfinished_files import QUIET_S, Unfinished


@dataclass(slots=True)
class FileReload:
    """On the event loop."""

    file: Path
    unfinished: Unfinished
    wakeups: PassSchedule
    _at: float = -math.inf  # by the clock of the loop

    @property
    def due(self) -> bool:
        return asyncio.get_running_loop().time() >= self._at

    def take(self) -> bool:
        """Whether it is to be read by the pass that begins."""
        left = self._at - asyncio.get_running_loop().time()
        if left <= 0:
            self._at = math.inf
            return True
        # This pass took the wakeup for it along.
        self.later(left)
        return False

    def now(self, cause: str) -> None:
        self.mark()
        self.wakeups.tell(cause)

    def mark(self) -> None:
        """By the next pass, whenever that is."""
        self._at = -math.inf

    def later(self, seconds: float, cause: str = "") -> None:
        """Where that is any time at all; passes meanwhile go by what is known."""
        if 0 < seconds < math.inf:
            self._at = min(self._at, asyncio.get_running_loop().time() + seconds)
            self.wakeups.tell(cause or str(self.file), seconds)

    def hear(self, hint: Hint) -> None:
        """What was renamed into place is whole; what is written waits until it was left alone."""
        if hint.kind != CONFIG or hint.key is None:
            self.wakeups.hear(hint)
        elif hint.whole:
            self.unfinished.came_whole(Path(hint.key.name))
            self.now(hint.key.name)
        else:
            self.later(QUIET_S, hint.key.name)
