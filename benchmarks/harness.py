"""Passes and whole processes timed in private namespaces, ours and its peers in turn."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.namespace import Namespace, private_namespaces

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
# A process that takes longer hangs; the slowest here needs well under a minute.
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    rss_mb: float = 0.0


# One measurement: makes what it needs, times only what it is about.
Contender = Callable[[], Run]


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark prints; a bar is the largest ratio that is good enough, or in `bar_s` the
    longest time.

    `ours` is the pass. `command` is the whole process that a shell starts for it: the pass, and
    before it the start of the interpreter and the imports, which a running program pays once.
    """

    name: str
    ours: Run
    peers: Mapping[str, float]
    bars: Mapping[str, float]
    notes: Mapping[str, str]
    rss_bar_mb: float | None = None
    command: float | None = None
    bar_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "name": self.name,
            "ours_s": round(self.ours.seconds, 4),
            "peers_s": {peer: round(seconds, 4) for peer, seconds in self.peers.items()},
            "ratio": {
                peer: round(self.ours.seconds / seconds, 4) for peer, seconds in self.peers.items()
            },
            "rss_mb": round(self.ours.rss_mb, 1),
        }
        if self.command is not None:
            document["command_s"] = round(self.command, 4)
            document["command_ratio"] = {
                peer: round(self.command / seconds, 4) for peer, seconds in self.peers.items()
            }
        if self.bar_s is not None:
            document["bar_s"] = self.bar_s
        if self.notes:
            document["notes"] = dict(self.notes)
        return document


def timed(
    command: Sequence[str], *, cwd: Path | None = None, stdout: IO[bytes] | None = None
) -> Run:
    """One process from start to end, with the most memory it held.

    The kernel counts this process's own memory (about 15 MB) into the child's until it executes
    its program, so no smaller figure can appear.
    """
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout or said, stderr=said
        )
        watchdog = threading.Timer(TIMEOUT_S, os.kill, (process.pid, signal.SIGKILL))
        watchdog.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(
                f"{' '.join(command)} exited with {process.returncode}: "
                + said.read().decode(errors="replace")[-2000:]
            )
    return Run(seconds, usage.ru_maxrss / 1024)


def apply(root: Path, file: Path) -> Run:
    """The whole command."""
    return timed([HOLDFAST, "--root", str(root), "apply", str(file), "--yes"])


def one_pass(root: Path, file: Path) -> Run:
    """The pass alone, timed by the process that ran it."""
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-m", "benchmarks.one_pass", str(root), str(file)]
        run = timed(command, cwd=Path(__file__).parent.parent, stdout=said)
        said.seek(0)
        return Run(float(said.read()), run.rss_mb)


def compare(
    name: str,
    repeat: int,
    ours: Contender,
    peers: Mapping[str, Contender],
    *,
    command: Contender | None = None,
    bars: Mapping[str, float],
    notes: Mapping[str, str] | None = None,
    rss_bar_mb: float | None = None,
) -> Result:
    """Run all in turn, so that a slow spell of the machine meets each of them; take medians."""
    own: list[Run] = []
    commands: list[float] = []
    others: dict[str, list[float]] = {peer: [] for peer in peers}
    for _ in range(repeat):
        own.append(ours())
        if command is not None:
            commands.append(command().seconds)
        for peer, contender in peers.items():
            others[peer].append(contender().seconds)
    return Result(
        name,
        Run(
            statistics.median(run.seconds for run in own),
            max(run.rss_mb for run in own),
        ),
        {peer: statistics.median(seconds) for peer, seconds in others.items()},
        bars,
        notes or {},
        rss_bar_mb,
        statistics.median(commands) if commands else None,
    )


@contextmanager
def router(*, address: bool) -> Iterator[Namespace]:
    """A network namespace with the link `wan`, up, its other end inside too.

    With an address where the program measured does not set it itself.
    """
    with private_namespaces() as namespace:
        namespace.veth("wan", "far", *(["192.0.2.1/24"] if address else []))
        try:
            yield namespace
        finally:
            # Its routes go with the link, here and now. Left to the end of the namespace they
            # would go in the background, into the next measurement.
            namespace.ip("link del wan")
