"""Which installations are at work in a network namespace, as the kernel knows it.

The file below /run that says who has a namespace may be lost beside a daemon that runs, by whoever
cleans up there. An abstract Unix socket is of a network namespace and of the process that bound it,
and goes with nothing but that process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_NAME = "holdfast/namespace"
_LONGEST = 107  # bytes of a name, besides the NUL that makes it an abstract one


class Presence(NamedTuple):
    root: str  # as a path; the beginning of a long one
    place: str  # device and inode of the root


class Taken(Exception):  # noqa: N818 (an answer)
    """By whom."""


def hold_alone(purpose: str, place: str) -> int | None:
    """Says that this process has `place` to itself, for as long as the descriptor is open. Raises
    Taken where another has: never two processes of one network namespace get it, for each says it
    before it looks at the others. Of two that begin at once, both may be refused. None where it
    cannot be said."""
    said = say(purpose, place)
    if said is None:
        return None
    holder = holder_of(purpose, place, besides=os.readlink(f"/proc/self/fd/{said}"))  # noqa: PTH115 (no path)
    if holder:
        os.close(said)
        raise Taken(f"process {holder}")
    return said


def say(purpose: str, place: str) -> int | None:
    """For others to see while the descriptor is open; None where it cannot be said."""
    name = f"holdfast/{purpose} {place} {os.getpid()} {os.urandom(8).hex()}"
    said = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        said.bind(b"\0" + name.encode())
    except OSError:
        said.close()
        return None
    return said.detach()


def holder_of(purpose: str, place: str, besides: str = "") -> str:
    """The process that says so; "" where none does. Anybody may bind any name: those of others than
    root and this user do not count. Who cannot be seen from this PID namespace may be one of ours.
    """
    beginning = f"@holdfast/{purpose} {place} "
    inodes = {
        f"socket:[{inode}]": name.removeprefix(beginning).partition(" ")[0]
        for inode, name in _names()
        if name.startswith(beginning)
    }
    inodes.pop(besides, None)
    seen = frozenset(inodes)
    strangers = _held(seen, trusted=False) - _held(seen, trusted=True)
    return next((pid for inode, pid in inodes.items() if inode not in strangers), "")


def announce(root: str, place: str) -> int | None:
    """Says that a process works here for as long as it has this descriptor open. None where it
    cannot be said, which is no reason not to work."""
    shown = root.encode("unicode_escape").decode("ascii")
    name = f"{_NAME} {place} {os.getpid()} {shown}".encode()[:_LONGEST]
    said = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        said.bind(b"\0" + name)
    except OSError:
        said.close()
        return None
    return said.detach()


def others(place: str) -> Presence | None:
    """One of another root. Anybody may bind any name: it counts where a process of root's, or of
    the same user's, has it."""
    inodes = {}
    for inode, name in _names():
        words = name.split(" ", 3)
        if words[0] == f"@{_NAME}" and len(words) == 4 and words[1] != place:
            inodes[f"socket:[{inode}]"] = Presence(words[3], words[1])
    return next((inodes[one] for one in _held(frozenset(inodes), trusted=True)), None)


def _names() -> Iterator[tuple[str, str]]:
    try:
        text = Path("/proc/self/net/unix").read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines()[1:]:
        # Num RefCount Protocol Flags Type St Inode Path
        words = line.split(None, 7)
        if len(words) == 8:
            yield words[6], words[7]


def _held(sockets: frozenset[str], *, trusted: bool) -> set[str]:
    """Those of them that a process has open; trusted: one of root's, or of the same user's."""
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        with suppress(OSError):  # it ended, or is not ours to look into
            if (process.stat().st_uid in (0, os.geteuid())) is trusted:
                held = {os.readlink(path) for path in (process / "fd").iterdir()}  # noqa: PTH115 (no paths)
                found |= sockets & held
    return found
