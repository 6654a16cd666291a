"""One run of a program: a request in, an answer out, and never more than it may have.

What comes back is untrusted: whoever reads it checks it.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.host import confined_program
from holdfast.host.process import PATH

MOST_OUT = 4 << 20
MOST_ERR = 64 << 10
_READ_AT_ONCE = 1 << 16
_LAST_S = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int  # -1: it did not end by itself
    out: bytes
    err: str
    seconds: float
    problem: str = ""  # why what it said does not count; empty where it does


async def run(
    executable: Path, request: bytes, *, timeout: float, environment: Mapping[str, str]
) -> Outcome:
    """Never raises for what the program did."""
    started = time.monotonic()
    try:
        process = await _start(executable, timeout, environment)
    except Refused as refused:
        return Outcome(-1, b"", "", 0.0, str(refused))
    except OSError as error:  # no more processes or files
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


async def _start(
    executable: Path, timeout: float, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    with confined_program.command(executable, timeout, environment) as command:
        return await asyncio.create_subprocess_exec(
            *command.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=command.descriptors,
            # Nothing that a plugin is given: the launcher is root.
            env={"PATH": PATH},
            start_new_session=True,
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
