"""One run of a program: a request in, an answer out, and never more than it may have.

What comes back is untrusted: whoever reads it checks it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from holdfast.agent.plugins import launch
from holdfast.dataclass import dataclass
from holdfast.host.process import PATH

MOST_OUT = 4 << 20
MOST_ERR = 64 << 10
# `nobody` of Debian: owns nothing and belongs to no group of the system.
USER = GROUP = 65534
# Enough for an interpreter and its threads. A fork bomb meets it at once.
MOST_PROCESSES = 64
MOST_MEMORY = 1 << 30
_USERS = Path("/proc/self/uid_map")
_READ_AT_ONCE = 1 << 16
_LAST_S = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int  # -1: it did not end by itself
    out: bytes
    err: str
    seconds: float
    problem: str = ""  # why what it said does not count; empty where it does


def objection(executable: Path) -> str:
    """Why this file is not run; empty where it may be."""
    try:
        found = executable.stat()
    except OSError as error:
        return f"{executable}: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return f"{executable} is not a regular file"
    if not found.st_mode & stat.S_IXUSR:
        return f"{executable} is not executable: chmod 0755 {executable}"
    if _somebody_else(found.st_uid):
        return f"{executable} belongs to user {found.st_uid}: chown root {executable}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others than its owner may write {executable}: chmod go-w {executable}"
    if os.geteuid() == 0 and not found.st_mode & stat.S_IXOTH:
        return f"{executable} is run as nobody, who may not: chmod 0755 {executable}"
    return next(filter(None, map(_open_to_others, executable.resolve().parents)), "")


def _open_to_others(folder: Path) -> str:
    """Whoever can write a folder can put another file in the place of one that was looked at. In
    one that is sticky, as /tmp, that takes its owner."""
    found = folder.stat()
    if _somebody_else(found.st_uid):
        return f"the folder {folder} belongs to user {found.st_uid}: chown root {folder}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        return f"others than its owner may write the folder {folder}: chmod go-w {folder}"
    return ""


async def run(
    executable: Path, request: bytes, *, timeout: float, environment: Mapping[str, str]
) -> Outcome:
    """Never raises for what the program did."""
    refused = objection(executable)
    if refused:
        return Outcome(-1, b"", "", 0.0, refused)
    started = time.monotonic()
    limits = (USER, GROUP, MOST_PROCESSES, MOST_MEMORY, max(1, int(timeout) + 1))
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-ISE",
            launch.__file__,
            str(os.getpid()),
            *map(str, limits),
            str(executable),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, "PATH": PATH},
            start_new_session=True,
        )
    except OSError as error:  # a variable that is too long, no more processes or files
        return Outcome(-1, b"", "", 0.0, f"cannot be started: {error.strerror}")
    talk = _Talk(process)
    try:
        async with asyncio.timeout(timeout):
            problem = await talk.exchange(request)
    except TimeoutError:
        problem = f"did not end within {timeout:g} s"
    finally:
        # Whatever happened, also when this task was cancelled: nothing of it stays.
        await talk.end()
    status = process.returncode if process.returncode is not None else -1
    if not problem and status != 0:
        problem = f"ended with exit status {status}{_signal(status)}"
    seconds = time.monotonic() - started
    err = bytes(talk.err).decode(errors="replace")
    return Outcome(status, bytes(talk.out), err, seconds, problem)


def _somebody_else(user: int) -> bool:
    """In a user namespace, all whom it does not know are shown as one number: root among them."""
    if user in (0, os.geteuid()):
        return False
    return user != USER or any(
        int(first) <= USER < int(first) + int(count)
        for first, _, count in map(str.split, _USERS.read_text().splitlines())
    )


def _signal(status: int) -> str:
    """Which signal ended it, as the launcher tells it."""
    try:
        return f" ({signal.Signals(status - 128).name})" if status > 128 else ""
    except ValueError:
        return ""


class _Talk:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise TypeError("a plugin without pipes")
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._writing: asyncio.Task[None] | None = None
        self.out = bytearray()
        self.err = bytearray()

    async def exchange(self, request: bytes) -> str:
        self._writing = asyncio.create_task(_give(self._stdin, request))
        problems = await asyncio.gather(
            self._take(self._stdout, self.out, MOST_OUT, "standard output"),
            self._take(self._stderr, self.err, MOST_ERR, "standard error"),
        )
        await self._process.wait()
        return "; ".join(filter(None, problems))

    async def end(self) -> None:
        self._kill()
        # What is left in the pipes is read: asyncio does not see the end of one that is full.
        # Without a PID namespace something may hold them open still, which is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await asyncio.gather(
                    self._take(self._stdout, bytearray(), 0, ""),
                    self._take(self._stderr, bytearray(), 0, ""),
                )
                await self._process.wait()
                if self._writing is not None:
                    # Whoever was to read it is gone: the pipe breaks, and this ends by itself.
                    await self._writing

    def _kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _take(
        self, stream: asyncio.StreamReader, into: bytearray, most: int, name: str
    ) -> str:
        """All of it until its end, however much that is, and no more of it than `most` kept."""
        problem = ""
        while data := await stream.read(_READ_AT_ONCE):
            into += data[: most - len(into)]
            if len(into) == most and not problem:
                problem = f"wrote more than {most >> 10} KiB to its {name}"
                self._kill()
        return problem


async def _give(stream: asyncio.StreamWriter, data: bytes) -> None:
    """A plugin need not read what it is told."""
    broken = suppress(BrokenPipeError, ConnectionResetError)
    with broken:
        stream.write(data)
        await stream.drain()
    stream.close()
    with broken:  # asked for in any case, or asyncio complains that nobody did
        await stream.wait_closed()
