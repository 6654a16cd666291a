"""Work that may hang, in a thread that nobody has to wait for.

A file of a network file system whose server is gone is read for ever. Whoever waits for it in a
pass repairs nothing meanwhile, and a process that waits for its threads does not end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.dataclass import dataclass, field

# Reading and checking a million routes takes seconds on a small machine.
PATIENCE_S = 60.0

T = TypeVar("T")


class Hangs(Exception):  # noqa: N818 (no error of ours)
    """It has not come to an end yet."""


@dataclass(slots=True)
class Apart(Generic[T]):
    patience: float = PATIENCE_S
    _stopped: threading.Event = field(default_factory=threading.Event)
    _running: threading.Thread | None = None

    def stop(self) -> None:
        """From any thread: whoever waits goes on at once."""
        self._stopped.set()

    def run(self, work: Callable[[], T]) -> T:
        """What it answers or raises. Hangs where that takes too long, where what was begun before
        hangs still, or where nobody wants to know any more."""
        if self._running is not None and self._running.is_alive():
            raise Hangs
        answers: list[T] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def answer() -> None:
            try:
                answers.append(work())
            except BaseException as error:  # for whoever waits
                errors.append(error)
            done.set()

        self._running = threading.Thread(target=answer, name="read", daemon=True)
        self._running.start()
        left = self.patience
        while not done.wait(min(left, 0.1)):
            left -= 0.1
            if left <= 0 or self._stopped.is_set():
                raise Hangs
        for error in errors:
            raise error
        return answers[0]
