"""Passes that want services and nothing else, and what becomes of the programs."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.service import Unit, service
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.host.services import processes
from holdfast.host.services.client import Client
from holdfast.host.services.folder import LOGS, Folder, Running
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.safety.router_scene import Watched

SLEEP = ("/usr/bin/sleep", "1000")


def python(code: str) -> tuple[str, ...]:
    # A unit may hold no line breaks.
    return (os.path.realpath(sys.executable), "-u", "-c", f"exec({code!r})")


def unit(name: str, argv: tuple[str, ...] = SLEEP, **more: object) -> Unit:
    return Unit(name, f"{name} for a test", argv, **more)  # type: ignore[arg-type]


def until(condition: Callable[[], object], what: str, limit: float = 60.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit:g} s for: {what}"
        time.sleep(0.02)


@dataclass(slots=True)
class ServicePasses:
    root: Path
    # By path: all units need them.
    files: dict[str, bytes] = field(default_factory=dict)
    _nonces: Iterator[int] = field(default_factory=lambda: itertools.count(50_001))

    @property
    def folder(self) -> Folder:
        return Folder(self.root)

    def work(self, *units: Unit, watched: Watched | None = None) -> Report:
        watched = watched or Watched()
        desired = self._desired(units)
        with (
            Ledger.open(Paths(self.root), command="test") as opened,
            drivers.of_machine(Paths(self.root), 72) as host,
        ):
            ledger = watched.ledger(opened)
            policy = Policy(host.epoch, allow_mass_delete=True)
            work = Pass(desired, host, ledger, policy, nonce=lambda: str(next(self._nonces)))
            return work.run(lambda _plan: None)

    def apply(self, *units: Unit) -> Report:
        report = self.work(*units)
        assert report.converged, words(report)
        return report

    def changes(self, *units: Unit) -> list[str]:
        """What a pass would do now: `verb name reason`."""
        desired = self._desired(units)
        with (
            Ledger.open(Paths(self.root), command="test") as ledger,
            drivers.of_machine(Paths(self.root), 72) as host,
        ):
            found = Pass(desired, host, ledger, Policy(host.epoch, allow_mass_delete=True)).plan()
            return [f"{op.verb} {op.subject.key.name} {op.reason}" for op in found.changes]  # type: ignore[union-attr]

    def _desired(self, units: Iterable[Unit]) -> Desired:
        files = [file(path, content) for path, content in self.files.items()]
        needed = tuple(one.key for one in files)
        first = [Intent("Test/it", one, "test.yaml:1:1") for one in files]
        services = [
            Intent("Test/it", service(one), "test.yaml:1:1", requires=needed) for one in units
        ]
        return Desired((*first, *services))

    def strays(self, name: str) -> list[int]:
        found = self.folder.running(name)
        assert found is not None
        return processes.strays(f"{self.root}:{name}:{found.mark}", found.process)

    def running(self, name: str) -> Running | None:
        found = self.folder.running(name)
        return found if found is not None and processes.alive(found.process) else None

    def pid(self, name: str) -> int:
        found = self.running(name)
        assert found is not None, f"{name} does not run"
        return found.process.pid

    def runs_as(self, name: str, pid: int) -> bool:
        found = self.running(name)
        return found is not None and found.process.pid == pid

    def restarted(self, name: str, before: int) -> bool:
        found = self.running(name)
        return found is not None and found.process.pid != before

    def argv(self, name: str) -> bytes:
        """Of the process that runs; empty where there is none just now."""
        found = self.running(name)
        try:
            return Path(f"/proc/{found.process.pid}/cmdline").read_bytes() if found else b""
        except (FileNotFoundError, ProcessLookupError):
            return b""

    def log(self, name: str) -> str:
        return (self.root / LOGS.lstrip("/") / f"{name}.log").read_text()

    def supervisors(self) -> list[int]:
        script = "host/services/supervise.py"
        return [
            pid
            for pid, words in command_lines()
            if len(words) > 4 and words[3].endswith(script) and words[4] == str(self.root)
        ]

    def kill_supervisor(self) -> None:
        found = self.supervisors()
        # A child that is about to become a program has the words of the supervisor still.
        (pid,) = (one for one in found if parent(one) not in found)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Client(self.root).there(), "the supervisor is gone")

    def end(self) -> None:
        Client(self.root).remove_all()
        for pid in self.supervisors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def command_lines() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            text = (folder / "cmdline").read_bytes().decode(errors="replace")
            yield int(folder.name), text.split("\0")


def parent(pid: int) -> int:
    """0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def over(pid: int) -> bool:
    found = processes.stat(pid)
    return found is None or found.state in "ZX"


def words(report: Report) -> str:
    return "; ".join(
        [*(f"{failure.key}: {failure.error}" for _, failure in report.failures)]
        + [f"still to do: {op.verb} {op.reason}" for op in report.after.changes]
        + [str(held) for held in (*report.after.blocked, *report.after.conflicts)]
    )


@contextmanager
def stage(root: Path) -> Iterator[ServicePasses]:
    made = ServicePasses(root)
    try:
        yield made
    finally:
        made.end()
