"""SIGKILL at any point of a pass, and of the supervisor: nothing runs that nobody knows of."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.engine.claim import ClaimState
from holdfast.engine.kinds.service import Unit, service
from holdfast.host.services import driver, processes, program
from holdfast.host.services.client import Client
from holdfast.host.services.declared import definition_of
from holdfast.host.services.processes import Process
from holdfast.host.services.systemd_units import SystemdUnits
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.host.services.service_passes import ServicePasses, over, stage, unit, until
from tests.namespace import private_namespaces
from tests.safety import killing

_ONE, _TWO = unit("one"), unit("two")
_OTHER = unit("one", config="other")
# What was there, what the killed pass was about, what the next one is.
CASES: dict[str, tuple[list[Unit], list[Unit], list[Unit]]] = {
    "create": ([], [_ONE, _TWO], [_ONE, _TWO]),
    "create, taken back": ([], [_ONE], []),
    "change": ([_ONE, _TWO], [_OTHER, _TWO], [_OTHER, _TWO]),
    "change, taken back": ([_ONE], [_OTHER], [_ONE]),
    "delete": ([_ONE, _TWO], [_TWO], [_TWO]),
    "delete, taken back": ([_ONE], [], [_ONE]),
    "create alone": ([], [_ONE], [_ONE]),
    "change alone": ([_ONE], [_OTHER], [_OTHER]),
    "delete alone": ([_ONE], [], []),
}


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "SETTLE_S", 0.02)


def _killed_at(point: int, scene: ServicePasses, units: list[Unit]) -> str:
    told, tell = os.pipe()
    pid = in_child(lambda: _die(scene, units, killing.Points(point, tell)))
    os.close(tell)
    with os.fdopen(told) as stream:
        where = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (-signal.SIGKILL if where else 0), f"the child ended with {status}"
    return where


def _die(scene: ServicePasses, units: list[Unit], points: killing.Points) -> None:
    watched = killing._watch(points)
    for owner, name in (
        (Client, "ensure"),
        (Client, "remove"),
        (SystemdUnits, "job"),
    ):
        setattr(owner, name, points.after(f"{owner.__name__}.{name}", getattr(owner, name)))
    plain = SystemdUnits.ask
    counted = points.after("asking systemd for a change", plain)
    SystemdUnits.ask = (  # type: ignore[method-assign]  # in a child that is about to die
        lambda self, member, *rest: (plain if member == "LoadUnit" else counted)(
            self, member, *rest
        )
    )
    scene.work(*units, watched=watched)


def _kill_everywhere(name: str, scenes: Callable[[], Iterator[ServicePasses]]) -> None:
    before, during, then = CASES[name]
    point, where = 0, "at first"
    while where:
        point += 1
        with contextmanager(scenes)() as scene:
            scene.apply(*before)
            where = _killed_at(point, scene, during)
            try:
                scene.apply(*then)
                assert scene.changes(*then) == []
                records = map(scene.running, scene.folder.names())
                known = {record.process.pid for record in records if record is not None}
                assert _labelled(str(scene.root)) <= known
                _is_settled(scene, then)
            except AssertionError as error:
                raise AssertionError(f"killed at point {point}, {where}: {error}") from error
    assert point > 4, "the pass must have had something to do"


def _is_settled(scene: ServicePasses, then: list[Unit]) -> None:
    with Ledger.open(Paths(scene.root), command="test") as ledger:
        claims = ledger.claims()
    assert {key.name for key in claims} == {one.name for one in then}
    assert all(claim.state is ClaimState.OWNED for claim in claims.values())
    # What a write of it left behind is removed with the next one, or with the service.
    scene.apply()
    for folder in ("run/holdfast/services", "etc/systemd/system"):
        assert list((scene.root / folder).glob(".*.holdfast-*")) == []


def _below_a_root() -> Iterator[ServicePasses]:
    with (
        TemporaryDirectory(dir="/dev/shm") as folder,
        private_namespaces(),
        stage(Path(folder)) as made,
    ):
        yield made
        assert _labelled(folder) == set()


def _labelled(folder: str) -> set[int]:
    """Every process that was started as a service below a root."""
    found = set()
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{processes.LABEL}={folder}:".encode() in (one / "environ").read_bytes():
                found.add(int(one.name))
    return {pid for pid in found if not over(pid)}


@pytest.mark.programs
@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("alone")])
def test_the_next_pass_finishes_and_nothing_runs_unknown(name: str) -> None:
    _kill_everywhere(name, _below_a_root)


def _on_the_machine() -> Iterator[ServicePasses]:
    made = ServicePasses(Path("/"))
    yield made
    made.apply()


@pytest.mark.systemd
@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("alone")])
def test_the_same_with_systemd(name: str, machine: ServicePasses) -> None:  # noqa: ARG001 (cleans up)
    _kill_everywhere(name, _on_the_machine)


@pytest.mark.usefixtures("netns")
def test_a_program_does_not_begin_unless_its_start_was_recorded(tmp_path: Path) -> None:
    """The supervisor is killed after the fork and before the record is written."""
    told, tell = os.pipe()
    ran = tmp_path / "ran"
    definition = definition_of(service(unit("one", ("/usr/bin/touch", str(ran)))), "77")

    def record(process: Process) -> None:
        os.write(tell, str(process.pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)

    pid = in_child(lambda: program.start(definition, "label", 2, record) and None)
    os.close(tell)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    with os.fdopen(told) as stream:
        child = int(stream.read())  # ends with the child, too, which has the pipe
    until(lambda: over(child), "the child ends")
    assert not ran.exists()


def test_a_supervisor_killed_at_any_moment_costs_nothing(
    services: ServicePasses,
) -> None:
    """Random moments, the same at each run: between question, fork, record and answer."""
    chance = random.Random(72)  # noqa: S311 (no secret)
    wanted = [[_ONE], [_OTHER, _TWO], [_TWO], [_ONE, _TWO], []]
    for turn in range(15):
        delay = chance.uniform(0.0, 0.15)
        killer = in_child(lambda delay=delay: _kill_after(services, delay))  # type: ignore[misc]
        services.work(*wanted[turn % len(wanted)])
        os.waitpid(killer, 0)
    services.apply(_ONE, _TWO)
    assert _labelled(str(services.root)) == {services.pid("one"), services.pid("two")}
    services.apply()
    assert _labelled(str(services.root)) == set()


def _kill_after(scene: ServicePasses, delay: float) -> None:
    time.sleep(delay)
    for pid in scene.supervisors():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
