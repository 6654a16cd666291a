"""For every resource kind, on real things: it is made, a second pass is empty, what is undone by
hand comes back, it goes with its declaration, and a pass that is killed leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.claim import ClaimState
from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.ospf import OSPF_PREFIX
from holdfast.engine.plan import Plan
from holdfast.engine.reconcile import Report
from holdfast.frr.commands import Line
from holdfast.frr.vty import Answer, Vty
from holdfast.host.nft import driver
from holdfast.host.services import driver as services
from holdfast.host.services.client import Client
from holdfast.resources import registry
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.lanes import needs, needs_link_type
from tests.resources.spec.test_reference import OTHERWISE
from tests.router.kind_scene import KindScene, ServicePasses, State, kind_scene
from tests.router.undoing import WAYS, ways
from tests.safety import killing
from tests.safety.router_scene import Watched
from tests.wan.concentrator import needs_pppoe

_LEFTOVER = re.compile(r"\.[^/]*\.holdfast-[0-9a-f]+$")
# What a kernel may lack, and the lane whose kernel has it.
_LINK_TYPES = {"DSLiteTunnel": "ip6tnl", "WireGuardInterface": "wireguard"}
# A chronyd would set the clock of the machine. So it must not be there, which has to be said; all
# else of the client is made, repaired and removed. It runs in the systemd lane.
_CHRONYD = "/usr/sbin/chronyd"
_LACKING = f"{_CHRONYD}: No such file or directory: install the Debian package chrony"
_EXCUSED = {"NTPClient": {"service chrony": _LACKING}}
# No driver tells prefixes to OSPF yet: such a resource is blocked, as the README says.
_UNDRIVEN = frozenset({"OSPFPrefix"})
_KILLS = 4  # of the pass that makes it, and half as many of the one that removes it


def _cases() -> Iterator[Any]:
    """The example of every kind, and other specs of it that lead to other artifacts."""
    for kind in registry.names():
        if kind in _UNDRIVEN:
            continue
        specs = [spec for spec in OTHERWISE.get(kind, ()) if _makes_something(spec)]
        for number, spec in enumerate([None, *specs]):
            lane = pytest.mark.qemu if _lacked(kind, spec) == "wireguard" else pytest.mark.uml
            marks = [lane] if _lacked(kind, spec) else []
            yield pytest.param(kind, spec, id=f"{kind}-{number}" if number else kind, marks=marks)


def _makes_something(spec: dict[str, Any]) -> bool:
    return spec.get("managed", True) and spec.get("state") != "absent"


def _lacked(kind: str, spec: dict[str, Any] | None) -> str:
    """What it needs that some kernels lack."""
    if kind == "PPPoEInterface":
        return "PPPoE"
    if spec is not None and spec.get("type") == "ip6tnl":
        return "ip6tnl"
    return _LINK_TYPES.get(kind, "")


CASES = list(_cases())


def test_every_kind_is_tried() -> None:
    assert {case.values[0] for case in CASES} == set(registry.names()) - _UNDRIVEN


def test_every_artifact_kind_can_be_undone() -> None:
    undriven = {OSPF_PREFIX.name}  # which is said wherever one is declared
    assert set(WAYS) == {name for name, kind in KINDS.items() if not kind.imported} - undriven
    assert all(WAYS.values())


@pytest.fixture
def scene(
    kind: str, spec: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KindScene]:
    # Otherwise each start takes as long as a program has to show that it does not.
    monkeypatch.setattr(services, "SETTLE_S", 0.05)
    with kind_scene(kind, spec) as made:
        lacked = _lacked(kind, spec)
        if lacked == "PPPoE":
            needs_pppoe()
        elif lacked:
            needs_link_type(made.namespace, lacked)
        if kind == "NTPClient":
            needs(not Path(_CHRONYD).exists(), "a machine without chronyd, which sets the clock")
        yield made


@pytest.mark.parametrize(("kind", "spec"), CASES)
def test_it_is_made_and_repaired(scene: KindScene) -> None:
    first = _converge(scene, scene.full)
    wanted = {None, *(artifact.key for artifact in _artifacts(scene))}
    waits = [held for held in first.after.pending if held.owner == scene.owner]
    assert not [held for held in waits if held.key in wanted]  # not for what it only observes
    for artifact in _artifacts(scene):
        for undo in ways(artifact):
            before = scene.look()
            undo(artifact, scene.paths)
            told = f"{artifact.key}, {undo.__name__}"
            assert scene.look() != before, f"{told}: nothing was undone"
            report = _converge(scene, scene.full)
            assert str(artifact.key) in _changed(report.before), told
            assert _differences(before, scene.look()) == [], told


@pytest.mark.parametrize(("kind", "spec"), CASES)
def test_it_goes_with_its_declaration(scene: KindScene) -> None:
    ground = scene.look()
    _converge(scene, scene.without)
    before = scene.look()
    _converge(scene, scene.full)
    made = scene.look()
    _converge(scene, scene.without)
    assert _differences(_after_removal(scene, before, made), scene.look()) == []
    _converge(scene, scene.empty)
    left = {name: made[name] for name in scene.full.kept if name in made}
    assert _differences(ground | left, scene.look()) == []
    assert scene.running() == set()


@pytest.mark.parametrize(("kind", "spec"), CASES)
def test_a_pass_that_is_killed_is_finished_by_the_next(scene: KindScene) -> None:
    _converge(scene, scene.without)
    before = scene.look()
    _converge(scene, scene.full)
    made = scene.look()
    removed = _after_removal(scene, before, made)

    def take_back() -> None:
        _converge(scene, scene.without, where)
        assert _differences(removed, scene.look()) == [], where
        _set_back(scene, before)

    where = "not killed"
    take_back()
    # Not those of the first time, which makes folders as well.
    points = _count_points(scene, scene.full)
    assert points > 1 or not scene.intents, "the pass must have had something to do"
    points_of_removal = _count_points(scene, scene.without)
    take_back()
    for point in _spread(points, _KILLS):
        where = _killed_at(point, scene, scene.full)
        _converge(scene, scene.full, where)
        assert _differences(made, scene.look()) == [], where
        take_back()
    for point in _spread(points_of_removal, _KILLS // 2):
        _converge(scene, scene.full, where)
        where = _killed_at(point, scene, scene.without)
        take_back()
    _converge(scene, scene.empty)
    assert scene.running() == set()


def _converge(scene: KindScene, stage: ServicePasses, told: str = "") -> Report:
    """One pass that does all there is to do, and leaves nothing to the next."""
    report = scene.apply(stage)
    excused = _EXCUSED.get(scene.kind, {})
    for _, failure in report.failures:
        assert failure.error == excused.get(str(failure.key)), f"{told}: {_words(report)}"
    assert _settled(report, excused), f"{told}: {_words(report)}"
    with Ledger.read(scene.paths) as ledger:
        assert ledger.check() == []
        claims = ledger.claims()
    unsettled = [
        f"{claim.key} {claim.state} {claim.nonce}"
        for claim in claims.values()
        if claim.state is not ClaimState.OWNED or claim.nonce
    ]
    assert not unsettled, told
    left = [path for path in scene.paths.root.rglob(".*") if _LEFTOVER.search(path.name)]
    assert not left, told
    again = scene.apply(stage)
    assert set(_changed(again.before)) <= excused.keys(), f"{told}: a second pass does something"
    assert not [result for result in again.results if result.done], told
    with Ledger.read(scene.paths) as ledger:
        assert ledger.claims() == claims, told
    return report


def _settled(report: Report, excused: Collection[str]) -> bool:
    """Whether it converged, but for what cannot be here."""
    if not report.converged and set(_changed(report.after)) <= set(excused):
        report = replace(report, after=replace(report.after, operations=()))
    return report.converged


def _artifacts(scene: KindScene) -> list[Artifact]:
    """What the example asks for, one by one."""
    found = []
    for one in scene.intents:
        if isinstance(one, BulkIntent):
            found += [one.batch.artifact(key) for key in one.batch.keys]
        else:
            found.append(one.artifact)
    return found


def _changed(plan: Plan) -> list[str]:
    """The keys of all that is to be changed."""
    found = []
    for operation in plan.changes:
        subject = operation.subject
        if isinstance(subject, Artifact):
            found.append(str(subject.key))
        else:
            found += [str(subject.artifact(key).key) for key in subject.keys]
    return found


def _after_removal(scene: KindScene, before: State, made: State) -> State:
    """All as it was before, but what stays by the rules of cleanup."""
    kept = scene.full.kept - scene.without.kept
    return before | {name: made[name] for name in kept if name in made}


def _set_back(scene: KindScene, before: State) -> None:
    """What was deliberately kept, by hand."""
    for name in scene.full.kept - scene.without.kept:
        kind, _, rest = name.partition(" ")
        if kind == "sysctl":
            Path("/proc/sys", rest.replace(".", "/")).write_text(before[name])
        elif kind == "hostname":
            socket.sethostname(before[name])
        elif kind == "file":
            scene.paths.under(rest).unlink(missing_ok=True)
        elif name not in before:
            scene.namespace.ip(f"link del {rest}")
    assert _differences(before, scene.look()) == []


def _spread(last: int, number: int) -> list[int]:
    """The first point, the last one, and some between them."""
    steps = max(number - 1, 1)
    return sorted({1 + (last - 1) * step // steps for step in range(number)}) if last else []


def _count_points(scene: KindScene, stage: ServicePasses) -> int:
    told, tell = os.pipe()

    def count() -> None:
        points = killing.Points(0, tell)
        report = scene.apply(stage, _watch(points))
        assert _settled(report, _EXCUSED.get(scene.kind, {})), _words(report)
        os.write(tell, str(-points._left).encode())

    answer, status = _wait_for(in_child(count), told, tell)
    assert status == 0
    return int(answer)


def _killed_at(point: int, scene: KindScene, stage: ServicePasses) -> str:
    """Where a pass was killed."""
    told, tell = os.pipe()
    points = killing.Points(point, tell)

    def die() -> None:
        scene.apply(stage, _watch(points))

    where, status = _wait_for(in_child(die), told, tell)
    assert status == -signal.SIGKILL, f"the child ended with {status} before point {point}"
    return f"killed at point {point}, {where}"


def _wait_for(pid: int, told: int, tell: int) -> tuple[str, int]:
    os.close(tell)
    with os.fdopen(told) as stream:
        said = stream.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _watch(points: killing.Points) -> Watched:
    """Only ever in a child that is about to end, so nothing is put back."""
    for name in ("ensure", "remove"):
        setattr(Client, name, points.after(f"Client.{name}", getattr(Client, name)))
    Vty.ask_all = _telling(points)  # type: ignore[method-assign]  # in a child
    driver._nft = points.after("a transaction of nft", driver._nft)
    return killing._watch(points)


def _telling(points: killing.Points) -> Callable[..., list[Answer]]:
    """After lines to FRR that may change something: how often it is asked goes by the clock."""
    ask, tell = Vty.ask_all, points.after("lines to FRR", Vty.ask_all)

    def counted(vty: Vty, commands: Sequence[str | Line], *rest: float) -> list[Answer]:
        reads = str(commands[0]).startswith(("show ", "write ", "enable", "end"))
        answers: list[Answer] = (ask if reads else tell)(vty, commands, *rest)
        return answers

    return counted


def _differences(wanted: State, found: State) -> list[str]:
    return [
        f"{name}: {wanted.get(name, 'not there')} -> {found.get(name, 'not there')}"
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]


def _words(report: Report) -> str:
    after = report.after
    lines = [f"{failure.key}: {failure.error}" for _, failure in report.failures]
    lines += [f"{op.verb} {op.subject}: {op.reason}" for op in after.changes]
    lines += [str(one) for one in (*after.conflicts, *after.blocked, *after.pending)]
    return "\n".join([*lines, str(after.unknown)])
