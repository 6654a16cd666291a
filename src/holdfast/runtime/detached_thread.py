"""Work that may take long, or hang, in a thread that nobody has to wait for.

A file of tens of megabytes is read for many seconds, and one of a network file system whose server
is gone for ever. Whoever waits for it in a pass repairs nothing meanwhile, and a process that waits
for its threads does not end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.dataclass import dataclass, field

# Reading and checking a million routes takes seconds on a small machine.
PATIENCE_S = 60.0

T = TypeVar("T")


class StillRunning(Exception):  # noqa: N818 (no error of ours)
    """It has not come to an end yet; who asks again is given the answer."""


class TookTooLong(StillRunning):
    """It has not for so long that it may never."""


class _Work(Generic[T]):
    def __init__(self, work: Callable[[], T], finished: Callable[[], None]) -> None:
        self.began = time.monotonic()
        self.done = threading.Event()
        self._work, self._finished = work, finished
        self._lock, self._left = threading.Lock(), False
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        threading.Thread(target=self._run, name="read", daemon=True).start()

    def _run(self) -> None:
        try:
            self._answers.append(self._work())
        except BaseException as error:  # for whoever waits
            self._errors.append(error)
        with self._lock:
            self.done.set()
        if self._left:
            self._finished()

    def leave(self) -> bool:
        """Nobody waits for it any more, and it is to be told when it has ended; False where it has
        by now."""
        with self._lock:
            self._left = not self.done.is_set()
            return self._left

    def answer(self) -> T:
        for error in self._errors:
            raise error
        return self._answers[0]


@dataclass(slots=True)
class DetachedThread(Generic[T]):
    patience: float = PATIENCE_S
    # Told in the thread of the work, where nobody waits for it any more.
    finished: Callable[[], object] = lambda: None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _running: _Work[T] | None = None

    @property
    def busy(self) -> bool:
        """Is there something begun whose answer nobody has been given?"""
        return self._running is not None

    def stop(self) -> None:
        """From any thread: whoever waits goes on at once."""
        self._stopped.set()

    def run(self, work: Callable[[], T], within: float | None = None) -> T:
        """What it answers or raises; where something is busy, what that does. Raises Unready where
        it takes longer than `within`, and Hangs where it takes too long in all, or where nobody
        wants to know any more."""
        running = self._running = self._running or _Work(work, self._tell)
        asked = time.monotonic()
        while not running.done.wait(0.1):
            now = time.monotonic()
            hangs = now - running.began >= self.patience or self._stopped.is_set()
            if (hangs or (within is not None and now - asked >= within)) and running.leave():
                raise TookTooLong if hangs else StillRunning
        self._running = None
        return running.answer()

    def _tell(self) -> None:
        if not self._stopped.is_set():
            self.finished()
