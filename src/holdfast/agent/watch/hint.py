"""What a watch tells: a hint that something changed outside, as precisely as it came cheap.

A hint is a reason to look, and the look is the truth. A change that we made ourselves may be told
of, too, where nothing outside says whose it was; the look then finds nothing to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.characters import escaped
from holdfast.engine.artifact import Key

# Kinds of hints that are not about artifacts. Their keys: what the fact is about, and the file.
FACT, CONFIG = "fact", "config"

# Numbers above are none of processes (PID_MAX_LIMIT).
LARGEST_PID = 1 << 22
# How long a name of a process is at most (TASK_COMM_LEN).
_NAME = 15
# A process that lives longer speaks for itself.
_JUST_BEGUN_S = 2.0


class Writer(NamedTuple):
    """Who made a change."""

    pid: int  # 0: it has no number here, but a name
    name: str = ""  # "" where the process was gone before it could be asked
    of: str = ""  # who ran it, of a command that was only just begun: "undo.sh (process 7)"
    own: bool = False  # Holdfast itself: this process, or a command of it beside it

    def __str__(self) -> str:
        if not self.pid:
            return self.name
        if self.pid > LARGEST_PID:
            return "a process that has ended"
        if not self.name:
            return f"process {self.pid}"
        return f"{self.name} (process {self.pid}){f' of {self.of}' if self.of else ''}"


class Hint(NamedTuple):
    """kind "": anything may have changed, because hints were lost."""

    kind: str = ""
    key: Key | None = None  # None: some artifact of that kind; for routes, see `identity`
    identity: bytes | None = None  # of a route: scope + key, as `Batch` has it
    writer: Writer | None = None  # None: the kernel itself, or it does not say
    gone: bool = False  # it was deleted
    body: bytes | None = None  # of a route: as the kernel tells it; in a dump it says the same
    replaced: bool = False  # of a route: it took the place of another
    whole: bool = False  # of a file: it was renamed into place


def named(pid: int, name: str) -> Writer:
    """By its number here. `ip` in a script has another one each time: the script says more."""
    return Writer(pid, name, _run_by(pid) if name else "", is_holdfast(pid))


def is_holdfast(pid: int) -> bool:
    """Whether it runs our interpreter, with our program: a command that takes a trial back, say.
    A name alone is anybody's."""
    if pid == os.getpid():
        return True
    try:
        if os.readlink(f"/proc/{pid}/exe") != os.readlink("/proc/self/exe"):  # noqa: PTH115 (no paths)
            return False
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return runs_holdfast(words)


def runs_holdfast(words: Sequence[bytes]) -> bool:
    """Of the arguments of an interpreter."""
    run = next((word for word in words[1:] if not word.startswith(b"-")), b"")
    return run.partition(b".")[0] == b"holdfast" or run.rpartition(b"/")[2] == b"holdfast"


def name_of(pid: int) -> str:
    """Of a process in our network namespace."""
    name = command_of(pid) if pid <= LARGEST_PID else ""
    with suppress(OSError):  # it is just ending, and has none any more
        # A process in a container has another number there: in our list it may be somebody else's.
        if os.stat(f"/proc/{pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino:  # noqa: PTH116
            return ""
    return name


def command_of(pid: int) -> str:
    try:
        return printable(Path(f"/proc/{pid}/comm").read_bytes())
    except OSError:
        return ""


def _run_by(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # proc(5): the name in parentheses may hold anything. Its parent and its start come after it.
    words = text[text.rindex(b")") + 2 :].split()
    parent, start = int(words[1]), int(words[19]) / os.sysconf("SC_CLK_TCK")
    if parent <= 1 or time.clock_gettime(time.CLOCK_BOOTTIME) - start > _JUST_BEGUN_S:
        return ""
    name = command_of(parent)
    return f"{name} (process {parent})" if name else ""


def printable(name: bytes) -> str:
    """Any program may call itself anything, and it ends up in logs and events."""
    text = name.rstrip(b"\n\0")[:_NAME].decode(errors="replace")
    return escaped(text)
