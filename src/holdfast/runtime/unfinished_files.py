"""Files that somebody may still be writing.

Half of a configuration is often a valid one, which declares half of the router. A file is taken
when nobody has it open for writing and it was left alone for a moment: who appends line by line
opens it for each. How long a moment is depends on how long the writer paused before. One that was
renamed into place is whole as it comes.
"""

from __future__ import annotations

import fcntl
import math
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.config import regular_file
from holdfast.dataclass import dataclass, field

# How long a file must have been as it is. A shell loop writes a line in less, and a person who
# saved a file hardly notices.
QUIET_S = 0.25
# The same where something would be deleted for it: slow writers pause, and what is gone is missed.
QUIET_BEFORE_DELETES_S = 1.0
# Who appended a piece after a pause may do so again: it must have been quiet for so many of them.
_PAUSES = 3
# One that lasted longer was between two edits.
_LONGEST_PAUSE_S = 1.5
# So many bytes of a file tell whether it was appended to, or written anew.
_LOOKED_AT = 1 << 16
# A writer who takes longer is told of.
TOLD_AFTER_S = 5.0
# How often a file is looked at that somebody has open; that it was closed is told as well.
_OPEN_AGAIN_S = 1.0

REMEDY = "try again once it is closed"


class Version(NamedTuple):
    """What a file is told by: another after each change."""

    device: int
    inode: int
    size: int
    changed_ns: int  # content, name or rights, since 1970: nobody but the kernel sets it

    @property
    def changed(self) -> float:
        return self.changed_ns / 1e9


def version(path: Path) -> Version | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Version(found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Youngest:
    """The file that changed last."""

    path: Path
    age: float  # seconds since; without end where it came whole
    at: float  # when that was so, by the clock that is never set
    opened: bool = False  # somebody has it open for writing
    pause: float = 0.0  # the longest between two pieces that were appended to it

    def missing(self, quiet: float) -> float:
        """How long to wait until it has been quiet for so long; 0 where it has been."""
        if self.opened:
            return _OPEN_AGAIN_S
        return max(0.0, quiet - self.age, _PAUSES * self.pause - self.age)

    @property
    def doubt(self) -> str:
        return f"{self.path} is open for writing, so it may not be whole" if self.opened else ""


class _Seen(NamedTuple):
    version: Version
    since: float
    content: bytes  # as far as it is looked at
    pause: float = 0.0

    def then(self, path: Path, found: Version, now: float) -> _Seen:
        """After another look at the file."""
        if found == self.version:
            return self
        before, pause, content = self.version, now - self.since, _beginning(path)
        longer = found.inode == before.inode and found.size > before.size
        appended = longer and content.startswith(self.content)
        if not appended or pause > _LONGEST_PAUSE_S:
            return _Seen(found, now, content)
        return _Seen(found, now, content, max(self.pause, pause))


def _beginning(path: Path) -> bytes:
    try:
        with regular_file.opened(path) as descriptor:
            return os.pread(descriptor, _LOOKED_AT, 0)
    except OSError:
        return b""


@dataclass(slots=True)
class Unfinished:
    """Belongs to one thread, but for `came_whole`."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _seen: dict[Path, _Seen] = field(default_factory=dict)
    _whole: dict[Path, Version] = field(default_factory=dict)

    def came_whole(self, path: Path) -> None:
        """It was renamed into place, just now."""
        found = version(path)
        if found is not None:
            self._whole[path] = found

    def youngest(self, paths: Iterable[Path]) -> Youngest | None:
        """None where there is no file of them, or they are no files at all."""
        looked = [one for one in map(self._look, dict.fromkeys(paths)) if one is not None]
        return min(looked, key=lambda one: (not one.opened, one.age), default=None)

    def _look(self, path: Path) -> Youngest | None:
        found = version(path)
        if found is None:
            return None
        now = self.clock()
        known = self._seen.get(path)
        seen = known.then(path, found, now) if known else _Seen(found, now, _beginning(path))
        self._seen[path] = seen
        # By the other clock it may be known to be older; where that was set back, it is not.
        age = max(now - seen.since, self.wall() - found.changed)
        if self._whole.get(path) == found:
            age = math.inf
        return Youngest(path, age, now, is_open_for_writing(path), seen.pause)


def doubt(paths: Iterable[Path]) -> str:
    """Why files may not be whole at this moment; empty where nothing says so."""
    looked = (Unfinished().youngest([path]) for path in paths)
    return next((one.doubt for one in looked if one is not None and one.opened), "")


def is_open_for_writing(path: Path) -> bool:
    """As far as the kernel can tell: it knows of no writer on another machine.

    It gives a lease for reading only on what nobody has open for writing. Whoever opens the file
    in the moment that we have it waits for that moment; we are sent a signal then, which by default
    ends a process if it is not another one than SIGIO.
    """
    try:
        with regular_file.opened(path) as descriptor:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # not every file system has leases, and not every file is ours
    return False
