"""Whose socket a change was asked for on: rtnetlink tells of changes by the port of a socket.

By custom the first socket of a process has the number of the process, and those after it have
numbers that are nobody's. A program may choose any port, too: the number of another process among
them. So a socket that is still open is asked for its holder; one that is closed by now was that of
a command that ran for a moment, and those have one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.agent.watch.hint import LARGEST_PID, Writer, name_of, named

# Looking through all processes takes milliseconds, on the event loop.
_BETWEEN_SEARCHES_S = 0.5
_MOST = 256


class Ports:
    """To be asked at once: a command is gone soon."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0  # when there may be another search
        self._holders: dict[str, Writer] = {}  # of sockets that are not their first ones

    def writer(self, port: int) -> Writer | None:
        if port <= 0:
            return None
        socket = _socket_of(port)
        if socket in self._holders:
            return self._holders[socket]
        if not socket or (port <= LARGEST_PID and socket in _sockets(Path(f"/proc/{port}"))):
            return named(port, name_of(port))
        now = self._clock()
        if now < self._next:
            return Writer(port)
        self._next = now + _BETWEEN_SEARCHES_S
        if len(self._holders) >= _MOST:
            self._holders.clear()
        found = self._holders[socket] = _holder(socket) or Writer(port)
        return found


def _holder(socket: str) -> Writer | None:
    for folder in Path("/proc").glob("[0-9]*"):
        if socket in _sockets(folder):
            return named(int(folder.name), name_of(int(folder.name)))
    return None


def _sockets(process: Path) -> list[str]:
    """What it holds open; nothing where it ended meanwhile, or is not ours to look into."""
    try:
        return [os.readlink(path) for path in (process / "fd").iterdir()]  # noqa: PTH115 (no paths)
    except OSError:
        return []


def _socket_of(port: int) -> str:
    """Of rtnetlink's sockets in this network namespace, as /proc/PID/fd names it; empty where it
    was closed since."""
    lines = Path("/proc/self/net/netlink").read_text().splitlines()[1:]
    # sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
    rows = [line.split() for line in lines]
    return next((f"socket:[{row[9]}]" for row in rows if row[1:3] == ["0", str(port)]), "")
