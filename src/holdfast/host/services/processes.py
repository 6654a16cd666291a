"""Processes told apart beyond their number, which the kernel gives to others after them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# In the environment of every program and of what it starts: how its strays are found.
LABEL = "HOLDFAST_SERVICE"


class Process(NamedTuple):
    pid: int
    start: int  # clock ticks after the boot
    boot: str


class Stat(NamedTuple):
    state: str
    session: int
    start: int


def this_boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def stat(pid: int) -> Stat | None:
    """None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc(5): the name in parentheses may hold anything, parentheses too.
    words = text[text.rindex(b")") + 2 :].split()
    return Stat(words[0].decode(), int(words[3]), int(words[19]))


def of(pid: int) -> Process | None:
    found = stat(pid)
    return Process(pid, found.start, this_boot()) if found is not None else None


def alive(process: Process) -> bool:
    if process.boot != this_boot():
        return False
    found = stat(process.pid)
    return found is not None and found.start == process.start and found.state not in "ZX"


def descriptor(process: Process) -> int | None:
    """A pidfd of exactly this process; None where it is over."""
    try:
        found = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    # The number may have gone to another before it was opened, and cannot after that.
    if not alive(process):
        os.close(found)
        return None
    return found


def network(pid: int | str = "self") -> int:
    """The network namespace of a process, as a number to compare."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def strays(label: str, leader: Process | None = None) -> list[int]:
    """Processes that a program started and that did not end with it.

    Told by the environment they inherited, and by the session its first process made; either may
    be lacking where a program writes over the one (setproctitle) or leaves the other.
    """
    wanted = f"\0{LABEL}={label}\0".encode()
    session = 0
    if leader is not None and leader.boot == this_boot():
        first = stat(leader.pid)
        # The number is not given away while a process of the session lives.
        if first is None or first.start == leader.start:
            session = leader.pid
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        seen = stat(pid)
        if seen is None or seen.state in "ZX" or (leader is not None and pid == leader.pid):
            continue
        if (session and seen.session == session) or wanted in _environment(pid):
            found.append(pid)
    return found


def end_strays(label: str, leader: Process | None = None) -> list[int]:
    """Ends them; a program that starts others while it is ended is looked for again."""
    ended: list[int] = []
    for _ in range(3):
        found = strays(label, leader)
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended += found
    return ended


def _environment(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def how(code: int) -> str:
    """An exit code in words: "status 1"; "SIGKILL" for one below zero."""
    if code >= 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
