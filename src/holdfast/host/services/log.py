"""What programs print: one file for each, kept short.

A program writes to its file itself, without the supervisor in between: it goes on writing while
there is none. It is opened to append, so that cutting it short moves the next line to the front.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.host import rooted
from holdfast.host.services.folder import LOGS

LARGEST = 1 << 20  # bytes; as much again in NAME.log.1
_FLAGS = os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_log(root: Path, name: str) -> int:
    """A descriptor that appends. What programs say is for root alone: names, addresses, leases."""
    with rooted.parent(root, f"{LOGS}/{name}.log", create=True) as (folder, file):
        found = os.open(file, os.O_WRONLY | _FLAGS, 0o600, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise ValueError(f"{LOGS}/{name}.log is not a regular file")
        os.fchmod(found, 0o600)
        return found


def open_or_nothing(root: Path, name: str) -> int:
    """As open_log; /dev/null where that cannot be: a log that cannot be kept stops no program."""
    try:
        return open_log(root, name)
    except (OSError, ValueError):
        return os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)


def shorten(root: Path, name: str, largest: int = LARGEST) -> bool:
    """Moves what a log holds to NAME.log.1 once it is too long. What is written between the two
    steps is lost."""
    with suppress(FileNotFoundError), rooted.parent(root, f"{LOGS}/{name}.log") as (folder, file):
        found = os.stat(file, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= largest:
            return False
        opened = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            size = os.fstat(opened).st_size
            kept = os.pread(opened, largest, max(0, size - largest))
            rooted.sweep(folder, f"{file}.1")
            rooted.replace(folder, f"{file}.1", kept, 0o600, None)
            os.ftruncate(opened, 0)
        finally:
            os.close(opened)
        return True
    return False


def shorten_removed(root: Path, name: str, pid: int, largest: int = LARGEST) -> None:
    """Empties a log that somebody deleted and the program still writes to: nobody can read it, but
    it would take the disk all the same."""
    stream = f"/proc/{pid}/fd/2"
    removed = f"{root.resolve()}{LOGS}/{name}.log (deleted)"
    if os.readlink(stream) == removed and os.stat(stream).st_size > largest:  # noqa: PTH115, PTH116
        os.truncate(stream, 0)


def last_lines(root: Path, name: str, since: int = 0, count: int = 4) -> str:
    """The end of a log, for an error text."""
    try:
        with rooted.parent(root, f"{LOGS}/{name}.log") as (folder, file):
            text = rooted.read(folder, file)[since:].decode(errors="replace")
    except (OSError, ValueError):
        return ""
    return joined(text, count)


def joined(text: str, count: int) -> str:
    """The last lines of what a program said, as one. It is told to all who may read the status, so
    that what looks like a secret is struck out, line by line."""
    from holdfast.config.redaction import redact_lines  # the supervisor needs none of it

    lines = [line.strip() for line in redact_lines(text).splitlines() if line.strip()]
    return "; ".join(lines[-count:])[-1000:]


def size(root: Path, name: str) -> int:
    try:
        with rooted.parent(root, f"{LOGS}/{name}.log") as (folder, file):
            return os.stat(file, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0
