"""`holdfast serve` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.agent.street import until
from tests.firewall.hosts import LONG


@dataclass(slots=True)
class Daemon:
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str, times: int = 1) -> None:
        def there() -> bool:
            assert self.process.poll() is None, self.said()
            return self.said().count(text) >= times

        until(there, f"{text!r} in the log:\n{self.said()}")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> int:
        """As a service manager would."""
        self.signal(signal.SIGTERM)
        return self.process.wait(LONG)


@contextmanager
def serve(root: Path, file: Path, environment: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """In the network namespace of the caller."""
    log = root / f"serve-{len(list(root.glob('serve-*')))}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "--root", str(root), "serve", str(file)],
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
