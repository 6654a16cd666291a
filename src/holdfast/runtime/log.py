"""The daemon's log: a line for each thing said, in the form that whoever reads it wants."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path

from holdfast.characters import escaped

FORMS = ("text", "json", "journal")
# Lines that wait to be read: as many as a busy hour says.
_MOST_WAITING = 10_000
# How long the end of the daemon waits for them to be read.
_LAST_S = 1.0


class Level(IntEnum):
    """As syslog numbers them; the journal reads the number off the start of a line."""

    ERROR = 3  # something was tried and not done, or could not be seen
    WARNING = 4  # something stands in the way, or somebody should look at it
    INFO = 6


class Line(str):
    """A line for the log, with the level that its speaker gives it. Any other text is INFO.

    It is a text so that it can be kept, compared and told over the API like one.
    """

    __slots__ = ("level", "of_resource")

    level: Level
    of_resource: bool  # the status of a resource tells the same

    def __new__(cls, text: str, level: Level, *, of_resource: bool = False) -> Line:
        line = super().__new__(cls, text)
        line.level, line.of_resource = level, of_resource
        return line


def _text(line: str, _level: Level) -> str:
    now = time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    return f"{clock}.{int(now % 1 * 1000):03d} {line}"


def _json(line: str, level: Level) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "level": level.name.lower(), "message": line})


def _journal(line: str, level: Level) -> str:
    return f"<{level.value}>{line}"


def fault(what: str, error: Exception) -> Line:
    """A line about what nobody thought of."""
    import traceback  # most of the time nothing is at fault

    said = f"{what}, which is a fault of Holdfast's: {error!r}"
    for where in traceback.extract_tb(error.__traceback__)[-1:]:
        said += f" in {where.name} ({Path(where.filename).name}:{where.lineno})"
    return Line(said, Level.ERROR)


class Lines:
    """Lines on their way to stderr, written by a thread of their own: whoever should read them may
    stop doing so for good, and a write to a full pipe waits for as long as that.

    No Python file is written to: a thread that waits in one holds its lock, and the interpreter
    would not end.
    """

    def __init__(self, most: int = _MOST_WAITING) -> None:
        self._most = most
        self._waiting: deque[str] = deque()
        self._lost = 0
        self._changed = threading.Condition()
        self._writing = False
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def put(self, line: str) -> None:
        with self._changed:
            if len(self._waiting) < self._most:
                self._waiting.append(line)
            else:
                self._lost += 1
            self._changed.notify_all()

    def finish(self, seconds: float = _LAST_S) -> None:
        """Until all is written, but no longer than that."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._writing), seconds)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                lines, lost = list(self._waiting), self._lost
                self._waiting.clear()
                self._lost, self._writing = 0, True
            if lost:
                lines.append(f"{lost} lines of the log were lost: nobody read them in time")
            for line in lines:
                _put_out(f"{line}\n".encode(errors="replace"))


def _put_out(data: bytes) -> None:
    """What cannot be written is lost: a full disk, or a reader that is gone, is no reason to leave
    the router alone."""
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


@contextmanager
def log(form: str) -> Iterator[Callable[[str], None]]:
    """What says lines on stderr. A line is one line, whatever stands in it."""
    shape = {"text": _text, "json": _json, "journal": _journal}[form]
    lines = Lines()

    def say(line: str) -> None:
        level = line.level if isinstance(line, Line) else Level.INFO
        lines.put(shape(escaped(" ".join(line.splitlines())), level))

    try:
        yield say
    finally:
        lines.finish()
