"""Whoever keeps a deadline keeps it, whatever else goes wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent import background, deadline_task
from holdfast.agent.deadline_task import DeadlineTask
from holdfast.config.document import SourceFile
from holdfast.engine import snapshot_form
from holdfast.engine.snapshot import Snapshot
from holdfast.errors import LedgerError
from holdfast.host.facts.clock import boot_id
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.runtime.confirm import deadline_process, lifeline_probes, lifelines
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.confirm.deadline import boot_clock
from holdfast.runtime.confirm.lifelines import Lifeline
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.namespace import Namespace
from tests.safety.router_scene import document

LONG_S = 20.0
TAG = 72


def wait_within(paths: Paths, within: float) -> None:
    """A generation that waits, and that changed nothing."""
    with drivers.of_machine(paths, TAG) as host:
        before = snapshot_form.pack(Snapshot(host.epoch, TAG, (), (), ()))
    now, lines = time.time(), lifelines.plain([Lifeline("target", 4, "192.0.2.9")])
    with Ledger.open(paths, command="test") as ledger:
        number = ledger.begin_generation([SourceFile("/etc/c.yaml", b"candidate\n")])
        ends = now + within, boot_id(), boot_clock() + within
        given = Confirmation(
            number, now, *ends, 0, "/etc/c.yaml", "", "d" * 64, before, lines
        )  # fmt: skip
        ledger.begin_confirmation(given)


def waits(paths: Paths) -> bool:
    with Ledger.read(paths) as ledger:
        return ledger.waiting() is not None


@pytest.fixture
def paths(netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:  # noqa: ARG001 (where it runs)
    root.mkdir()
    for place in (deadline_process, deadline_task):
        monkeypatch.setattr(place, "_LOOK_S", 0.05)
        monkeypatch.setattr(place, "PAUSE_S", (0.01,) * 5)
    monkeypatch.setattr(lifeline_probes, "EVERY_S", 0.05)
    return Paths(root)


def by_the_daemon(paths: Paths, said: list[str]) -> None:
    async def keep() -> None:
        keeping = DeadlineTask(paths, said.append, lambda _why: None)
        await keeping.start()
        task = asyncio.create_task(keeping.run())
        async with asyncio.timeout(LONG_S):
            while waits(paths):
                await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(keep())


def by_a_keeper(paths: Paths, said: list[str]) -> None:
    with Ledger.read(paths) as ledger:
        waiting = ledger.waiting()
    assert waiting is not None
    deadline_process.keep(paths, waiting.generation, said.append)
    assert not waits(paths)


@pytest.mark.parametrize("keep", [by_the_daemon, by_a_keeper])
def test_a_fault_in_asking_stops_no_clock(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, keep: Callable[[Paths, list[str]], None]
) -> None:
    def fault(*_: object) -> Any:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr(lifeline_probes.LifelineProbes, "failing", fault)
    wait_within(paths, 1.0)
    said: list[str] = []
    keep(paths, said)
    faults = [line for line in said if "nobody thought of this" in line]
    assert faults, said
    assert "fault of Holdfast's" in faults[0]


@pytest.mark.parametrize("keep", [by_the_daemon, by_a_keeper])
def test_a_fault_in_the_revert_is_not_the_end(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, keep: Callable[[Paths, list[str]], None]
) -> None:
    """Also where it is overdue when the daemon starts."""
    settle, faults, said = confirm.settle, [ZeroDivisionError("once")], list[str]()

    def tried(*arguments: Any, last: bool) -> Any:
        if faults:
            raise faults.pop()
        return settle(*arguments, last=last)

    monkeypatch.setattr(confirm, "settle", tried)
    wait_within(paths, -1.0)
    keep(paths, said)
    assert any("a fault of Holdfast's: ZeroDivisionError('once')" in line for line in said)


@pytest.mark.parametrize("keep", [by_the_daemon, by_a_keeper])
def test_a_ledger_that_could_not_be_read_is_no_try_to_revert(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, keep: Callable[[Paths, list[str]], None]
) -> None:
    """After the last try, what is left is left: it takes as many as ever."""
    wait_within(paths, -1.0)
    tries: list[bool] = []
    settle, opened, left = confirm.settle, Ledger.open, [True] * 8

    def tried(*arguments: Any, last: bool) -> Any:
        tries.append(last)
        return settle(*arguments, last=last)

    def held(*arguments: Any, **more: Any) -> Ledger:
        if left and left.pop():
            raise LedgerError("held by somebody")
        return opened(*arguments, **more)

    monkeypatch.setattr(confirm, "settle", tried)
    monkeypatch.setattr(Ledger, "open", held)
    keep(paths, [])
    assert tries == [False]


def test_the_next_deadline_is_kept_in_time(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a ledger that could not be read for a while."""
    keeping = DeadlineTask(paths, lambda _line: None, lambda _why: None)

    def unreadable(_paths: Paths) -> Any:
        raise LedgerError("no such device")

    async def steps() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(deadline_task, "stamp", unreadable)
            for _ in range(6):
                await keeping.start()
        assert keeping.pause() == 0.01
        await keeping.start()
        assert keeping.pause() == deadline_task._LOOK_S

    asyncio.run(steps())


def test_a_revert_that_cannot_be_done_is_said_for_as_long(
    paths: Paths, netns: Namespace, root: Path
) -> None:
    """Nothing else is done until it is, so that silence would pass for a router that is kept."""
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    address = "{interface: wan, address: 192.0.2.1/24}"
    file.write_text(document({"Interface/wan": "{ifname: wan0}", "IPv4StaticAddress/wan": address}))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        with Ledger.open(paths, command="test", wait=LONG_S) as ledger:
            number = ledger.begin_generation([SourceFile(str(file), file.read_bytes())])
            ends = time.time(), boot_id(), 0.0
            digest, broken = "d" * 64, b"cannot be read"
            given = Confirmation(number, 0.0, *ends, 0, str(file), "", digest, broken)
            ledger.begin_confirmation(given)
        daemon.wait_for("the way back cannot be read")
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        daemon.wait_for(f"nothing is done meanwhile: generation {number} is being reverted")
        asked = [sys.executable, "-m", "holdfast", "--root", str(root), "status", "-o", "json"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        assert any("nothing is done" in one for one in json.loads(done.stdout)["troubles"])


def test_a_task_that_ends_of_a_fault_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_AGAIN_S", 0.0)
    said: list[str] = []
    ways = iter(("the same", "the same", "another", ""))

    async def run() -> None:
        if way := next(ways):
            raise KeyError(way)

    asyncio.run(background.keep_running(run, said.append))
    assert [line.partition("fault of Holdfast's: ")[2].partition(" in ")[0] for line in said] == [
        "KeyError('the same')",
        "KeyError('another')",
    ]


def test_what_a_callback_missed_is_looked_for(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    missed: list[None] = []

    def fault() -> None:
        raise KeyError("a message that nobody thought of")

    async def scene() -> None:
        background.hear_faults(said.append, lambda: missed.append(None))
        for _ in range(2):
            asyncio.get_running_loop().call_soon(fault)
        while len(missed) < 2:
            await asyncio.sleep(0)

    asyncio.run(scene())
    assert len(said) == 1
    assert "a fault of Holdfast's: KeyError('a message that nobody thought of') in fault" in said[0]
    assert capfd.readouterr() == ("", ""), "in the form of the log, and not beside it"
