"""`holdfast serve` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.agent.two_providers import until
from tests.firewall.hosts import LONG


@dataclass(slots=True)
class Daemon:
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str, times: int = 1) -> None:
        def there() -> bool:
            assert self.process.poll() is None, "it ended"
            return self.said().count(text) >= times

        try:
            until(there, f"{text!r} in the log")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.said()}") from None

    def rest(self) -> None:
        """Waits until it has nothing more to do; how long that takes is the machine's business. For
        half a second no thread of it wants to run, or has run for longer than the looks take that
        it has at settings now and then."""
        since, before = time.monotonic(), -1

        def rests() -> bool:
            nonlocal since, before
            running, used = _running(self.process.pid)
            if running or used > before + 1:
                since, before = time.monotonic(), used
            return time.monotonic() > since + 0.5

        until(rests, "it has nothing more to do")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> int:
        """As a service manager would."""
        self.signal(signal.SIGTERM)
        return self.process.wait(LONG)


def _running(pid: int) -> tuple[bool, int]:
    """Whether a thread of it runs or waits for a core or a disk; and what all of them have used,
    in ticks (proc(5): the name in parentheses may hold anything)."""
    running, used = False, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            words = (task / "stat").read_bytes().rpartition(b")")[2].split()
            running |= words[0] != b"S"
            used += int(words[11]) + int(words[12])
    return running, used


@contextmanager
def serve(
    root: Path,
    file: Path,
    environment: Mapping[str, str] | None = None,
    program: str = "holdfast",
    logs: Path | None = None,
) -> Iterator[Daemon]:
    """In the network namespace of the caller. program: a module that is run. logs: the folder for
    its log, where that is not the root."""
    folder = root if logs is None else logs
    log = folder / f"serve-{len(list(folder.glob('serve-*')))}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", program, "--root", str(root), "serve", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield Daemon(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
