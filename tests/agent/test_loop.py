"""A daemon goes on, whatever goes wrong in a pass, and says a thing once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.configuration import Configuration, Read
from holdfast.agent.health.checks import HealthChecks
from holdfast.agent.loop import Agent
from holdfast.agent.reconciler import Done, Reconciler
from holdfast.paths import Paths
from holdfast.resources.facts import Verdict
from holdfast.resources.resource import Resource
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.health_target import Target
from holdfast.runtime.unfinished_files import QUIET_S
from tests.namespace import Namespace
from tests.safety.router_scene import document

ROUNDS = 5
ROUTER = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
}
CHECK = "{target: 192.0.2.254, interface: wan, interval: 60s}"


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text(document(ROUTER))
    return file


def run(
    root: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[..., Done],
    count: Callable[[pytest.MonkeyPatch, Callable[[], None]], None] | None = None,
) -> list[str]:
    """Some rounds of the timer with this for a pass, and then SIGTERM."""
    said: list[str] = []
    rounds = 0

    def told() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == ROUNDS:
            os.kill(os.getpid(), signal.SIGTERM)

    def counted(*arguments: Any, **options: Any) -> Done:
        if count is None:
            told()
        return work(rounds, *arguments, **options)

    monkeypatch.setattr(Reconciler, "full", counted)
    if count is not None:
        count(monkeypatch, told)
    asyncio.run(asyncio.wait_for(Agent(Paths(root), file, said.append, interval=0.02).run(), 30))
    assert rounds == ROUNDS
    return said


def apply(root: Path, file: Path) -> None:
    command = ["--root", str(root), "apply", str(file), "--yes"]
    subprocess.run([sys.executable, "-m", "holdfast", *command], check=True, capture_output=True)


def test_exception_in_a_pass(
    file: Path, root: Path, netns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Reconciler.full

    def broken(number: int, *arguments: Any, **options: Any) -> Done:
        if number in (1, 2):
            raise ValueError("a mistake")
        return real(*arguments, **options)

    said = run(root, file, monkeypatch, broken)
    assert [line for line in said if "a mistake" in line] == [
        "the pass failed, which is a fault of Holdfast's: ValueError('a mistake') in broken"
        f" (test_loop.py:{broken.__code__.co_firstlineno + 2})"
    ]
    assert "192.0.2.1/24" in netns.ip("addr show dev wan0")


def test_troubles_are_said_once(file: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder where a lease should be cannot be read."""
    file.write_text(document({"Interface/wan": "{ifname: wan0}", "HealthCheck/wan": CHECK}))
    (root / "run/holdfast/leases/wan0.4.lease").mkdir(parents=True)
    real = Reconciler.full
    said = run(
        root, file, monkeypatch, lambda _number, *arguments, **options: real(*arguments, **options)
    )
    assert len([line for line in said if "could not be read" in line]) == 1


def test_refusal_is_said_once(file: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working copy of the ledger is of no use, and stays so."""
    ledger = root / "run/holdfast/ledger/state.db"
    ledger.parent.mkdir(parents=True, mode=0o700)
    ledger.touch(mode=0o600)
    said = run(root, file, monkeypatch, _never, _read_alone)
    refused = [line for line in said if line.startswith("the pass was not carried out")]
    assert len(refused) == 1
    assert "the ledger is empty" in refused[0]


def _never(*_arguments: Any, **_options: Any) -> Done:
    raise AssertionError("a pass without a ledger")


def _read_alone(monkeypatch: pytest.MonkeyPatch, told: Callable[[], None]) -> None:
    """Rounds are counted by how often the configuration is read: no pass comes of it."""
    real = Configuration.read

    def counted(*arguments: Any, **options: Any) -> Read:
        told()
        return real(*arguments, **options)

    monkeypatch.setattr(Configuration, "read", counted)


def test_file_that_is_old_enough_when_its_refusal_is_settled(
    file: Path, root: Path, netns: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that starts refuses what was written just now, and takes so long to find what stays
    in force that the file is old enough by then. It reads the file again all the same."""
    kept = file.read_text()
    route = "{destination: 10.9.0.0/24, gateway: 192.0.2.254, interface: wan}"
    file.write_text(document({**ROUTER, "IPv4Route/gone": route}))
    apply(root, file)
    file.write_text(kept)
    time.sleep(QUIET_S)  # long enough to be read, and too short for something to be deleted
    last_good = Configuration.last_good
    said: list[str] = []

    def slow(configuration: Configuration) -> Any:
        while configuration.read(again=False).delay() > 0:
            time.sleep(0.1)
        return last_good(configuration)

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("deleted route 10.9.0.0/24"):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Configuration, "last_good", slow)
    asyncio.run(asyncio.wait_for(Agent(Paths(root), file, say).run(), 30))
    assert [line for line in said if "was written a moment ago" in line], said
    assert "10.9.0.0/24" not in netns.ip("route show")


@pytest.mark.usefixtures("files_are_whole")
def test_never_two_passes_at_once(file: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Reconciler.full
    under_way: list[int] = []

    def watched(number: int, *arguments: Any, **options: Any) -> Done:
        assert not under_way
        under_way.append(number)
        os.kill(os.getpid(), signal.SIGHUP)
        done = real(*arguments, **options)
        under_way.clear()
        return done

    said = run(root, file, monkeypatch, watched)
    assert not [line for line in said if "fault" in line]
    assert len([line for line in said if "read again" in line]) == ROUNDS - 1


def check(**fields: Any) -> Resource:
    spec = HealthCheck.read(
        {"target": "192.0.2.1", "interval": "100ms", "timeout": "100ms", **fields}
    )
    return Resource("HealthCheck", "wan", spec, "x:1:1", 0)


def test_check_that_fails_by_itself_says_nothing_of_its_target() -> None:
    said: list[str] = []
    changed: list[Verdict] = []

    def target(_check: Resource) -> Target | str:
        if said:
            return "no gateway"
        raise KeyError("wan0")

    async def probing() -> None:
        checks = HealthChecks(target, lambda _c, _n, verdict: changed.append(verdict), said.append)
        checks.watch([check(unhealthyThreshold=1)])
        async with asyncio.timeout(60):
            while not changed:
                await asyncio.sleep(0.01)
        await checks.stop()

    asyncio.run(probing())
    assert said == ["HealthCheck/wan could not probe, a fault of Holdfast's: KeyError('wan0')"]
    assert changed == [Verdict(False, "once: no gateway")]


def test_verdicts_stand_until_there_are_others() -> None:
    async def probing() -> None:
        old = {"wan": Verdict(False, "before"), "gone": Verdict(False, "before")}
        checks = HealthChecks(lambda _: "no gateway", lambda *_: None, print, old)
        checks.watch([check()])
        assert checks.verdicts == {"wan": Verdict(False, "before")}
        checks.watch([check(interval="200ms")])
        assert checks.verdicts == {"wan": Verdict(False, "before")}
        checks.watch([])
        checks.watch([check()])
        assert checks.verdicts == {}
        await checks.stop()

    asyncio.run(probing())
