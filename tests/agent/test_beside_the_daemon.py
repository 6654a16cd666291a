"""A daemon, and every other command of Holdfast beside it: none of them is ever told as somebody
who changed what is declared, and whoever really does is told by name."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.cli import confirm_scene as scene
from tests.cli.conftest import COMMAND, Holdfast
from tests.namespace import Namespace

# Kinds that say that somebody else did something to what is ours.
ACCUSING = {"repaired", "drift", "fight", "conflict"}
TOLD = re.compile(r" (repaired|drift|conflict|fight)\b|(deleted|changed|added) by ")
ROUTE = "10.5.0.0/16"
SAME = f"net IPv4Route same {{destination: {ROUTE}, gateway: 192.0.2.254}}"
# Kills the command when it is about to make its changes for the third last time.
KILLED = """\
import itertools, os, signal
from holdfast.engine.drivers import Drivers
real, made = Drivers.apply, itertools.count()
def apply(host, *arguments):
    if next(made) == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(host, *arguments)
Drivers.apply = apply
"""


@dataclass(slots=True)
class Beside:
    holdfast: Holdfast
    netns: Namespace
    daemon: Daemon
    foreign: list[int] = field(default_factory=list)  # processes of others that changed something
    logs: list[Daemon] = field(default_factory=list)

    def events(self) -> list[StoredEvent]:
        with Ledger.read(Paths(self.holdfast.root)) as ledger:
            return ledger.events()

    def reverted(self) -> None:
        scene.until(lambda: any(e.kind == "reverted" for e in self.events()), "it is reverted")
        self.daemon.wait_for("was reverted")

    def delete_route(self) -> None:
        """As somebody else does, who lives until the daemon has had time to ask for its name."""
        self.daemon.rest()
        before = self.daemon.said().count(f"repaired route {ROUTE}")
        with subprocess.Popen(["ip", "-batch", "-"], stdin=subprocess.PIPE) as other:
            self.foreign.append(other.pid)
            assert other.stdin is not None
            other.stdin.write(f"route del {ROUTE}\n".encode())
            other.stdin.flush()
            self.daemon.wait_for(f"repaired route {ROUTE}", before + 1)

    def said(self) -> str:
        return "".join(one.said() for one in self.logs)


@pytest.fixture
def beside(root: Path, tmp_path: Path, netns: Namespace) -> Iterator[Beside]:
    folder = tmp_path / "work"
    folder.mkdir()
    holdfast = Holdfast(folder, root)
    with scene.router(holdfast, netns):
        (folder / "router.yaml").write_text(scene.document((*scene.BEFORE, SAME)))
        (folder / "candidate.yaml").write_text(scene.document((*scene.AFTER, SAME)))
        holdfast.set_up("apply", "router.yaml", "--yes")
        with started(holdfast) as daemon:
            yield Beside(holdfast, netns, daemon, logs=[daemon])


@contextmanager
def started(holdfast: Holdfast) -> Iterator[Daemon]:
    with serve(holdfast.root, holdfast.folder / "router.yaml") as daemon:
        daemon.wait_for("read: ")
        daemon.rest()
        yield daemon


def _other_file(beside: Beside) -> None:
    assert beside.holdfast.run("apply", "candidate.yaml", "--yes").code == 4


def _by_environment(beside: Beside) -> None:
    holdfast = beside.holdfast
    words = [COMMAND, "reconcile", "--once", "candidate.yaml"]
    environment = holdfast.environment(HOLDFAST_ROOT=str(holdfast.root))
    done = subprocess.run(words, cwd=holdfast.folder, env=environment, check=False)
    assert done.returncode == 4


def _edited_and_gone_back(beside: Beside) -> None:
    candidate = (beside.holdfast.folder / "candidate.yaml").read_text()
    (beside.holdfast.folder / "router.yaml").write_text(candidate)
    beside.holdfast.ok("apply", "router.yaml", "--yes")
    beside.delete_route()
    beside.holdfast.ok("rollback", "--yes")


def _cleanup(beside: Beside) -> None:
    assert beside.holdfast.run("cleanup", "--yes").code == 4


def _forgotten(beside: Beside) -> None:
    beside.holdfast.ok("forget", "neighbour 192.0.2.9 dev wan0", "--yes")
    beside.holdfast.ok("forget", "nft inet holdfast_filter", "--yes")


def _trial_that_the_daemon_takes_back(beside: Beside) -> None:
    _on_trial(beside)
    scene.kill(scene.keepers(beside.holdfast.root))
    beside.delete_route()
    beside.reverted()


def _trial_that_its_deadline_takes_back(beside: Beside) -> None:
    """While the daemon is too busy to hear of anything until all is over."""
    _on_trial(beside)
    beside.daemon.signal(signal.SIGSTOP)
    scene.until(lambda: not scene.waiting(beside.holdfast.root), "it is over")
    beside.daemon.signal(signal.SIGCONT)
    beside.reverted()


def _trial_that_is_taken_back_on_request(beside: Beside) -> None:
    _on_trial(beside, "1h")
    beside.holdfast.ok("rollback")
    beside.reverted()


def _on_trial(beside: Beside, within: str = "6s") -> None:
    beside.holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", within)


def _killed_in_the_middle(beside: Beside) -> None:
    """And nobody hears of it before it is dead."""
    site = beside.holdfast.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(KILLED)
    words = ("apply", "candidate.yaml", "--yes", "--confirm-within", "8s")
    with subprocess.Popen(
        beside.holdfast.arguments(*words),
        cwd=beside.holdfast.folder,
        env=beside.holdfast.environment(PYTHONPATH=str(site)),
    ) as command:
        scene.until(lambda: scene.waiting(beside.holdfast.root), "the way back is stored")
        beside.daemon.signal(signal.SIGSTOP)
        assert command.wait(scene.LONG_S) == -signal.SIGKILL
    beside.daemon.signal(signal.SIGCONT)
    beside.reverted()


def _daemon_started_anew_in_the_middle(beside: Beside) -> None:
    _on_trial(beside)
    assert beside.daemon.end() == 0
    with started(beside.holdfast) as daemon:
        beside.logs.append(daemon)
        beside.daemon = daemon
        scene.until(lambda: not scene.waiting(beside.holdfast.root), "it is over")
        daemon.rest()
        beside.delete_route()
        assert daemon.end() == 0


SCENES: list[Callable[[Beside], None]] = [
    _other_file,
    _by_environment,
    _edited_and_gone_back,
    _cleanup,
    _forgotten,
    _trial_that_the_daemon_takes_back,
    _trial_that_its_deadline_takes_back,
    _trial_that_is_taken_back_on_request,
    _killed_in_the_middle,
    _daemon_started_anew_in_the_middle,
]


@pytest.mark.parametrize("what", SCENES)
def test_nobody_is_accused_but_who_did_it(beside: Beside, what: Callable[[Beside], None]) -> None:
    what(beside)
    if beside.daemon.process.poll() is None:
        beside.delete_route()
        beside.daemon.rest()
        assert " by " not in beside.holdfast.ok("status").out
    _only_the_foreign(beside)


def _only_the_foreign(beside: Beside) -> None:
    accusing = [event for event in beside.events() if event.kind in ACCUSING]
    assert {(event.kind, event.subject) for event in accusing} == {("repaired", f"route {ROUTE}")}
    assert [event.data["writer"]["pid"] for event in accusing] == beside.foreign  # type: ignore[index,call-overload]
    assert all(" by ip (process " in event.message for event in accusing)
    told = [line for line in beside.said().splitlines() if TOLD.search(line)]
    assert all(f"repaired route {ROUTE}" in line and " by ip " in line for line in told), told
    assert len(told) == len(beside.foreign)
    listed = beside.holdfast.ok("events", "--last", "1000", "-o", "json").json["events"]
    assert sum(one["kind"] in ACCUSING for one in listed) == len(beside.foreign)


@contextmanager
def asked(holdfast: Holdfast, *words: str) -> Iterator[Callable[[], int]]:
    """A command that waits for an answer at its terminal; says yes, and how it ended."""
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = holdfast.arguments(*words)
        os.chdir(holdfast.folder)
        os.execve(arguments[0], arguments, holdfast.environment())  # noqa: S606 (as meant)
    said = b""

    def heard(text: bytes) -> bool:
        nonlocal said
        with suppress(OSError):  # it has ended
            if select.select([terminal], [], [], 0.1)[0]:
                said += os.read(terminal, 1 << 16)
        return text in said

    def answer() -> int:
        os.write(terminal, b"yes\n")
        end = time.monotonic() + scene.LONG_S
        while time.monotonic() < end:
            heard(b"")
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it does not end: {said.decode()}")

    try:
        scene.until(lambda: heard(b"Only `yes` is taken"), "it asks")
        yield answer
    finally:
        os.close(terminal)


@pytest.mark.parametrize("command", ["apply candidate.yaml", "cleanup"])
def test_a_daemon_that_came_while_somebody_thought(
    root: Path, tmp_path: Path, netns: Namespace, command: str
) -> None:
    """It would undo all of it, and who it did it to would be Holdfast."""
    holdfast = Holdfast(tmp_path, root)
    with (
        scene.router(holdfast, netns),
        asked(holdfast, *command.split()) as answer,
        started(holdfast) as daemon,
    ):
        beside = Beside(holdfast, netns, daemon, logs=[daemon])
        before = len(beside.events())
        assert answer() == 4
        daemon.rest()
        assert len(beside.events()) == before
