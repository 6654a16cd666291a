"""Holdfast beside Holdfast: what a trial changed and took back is told as that, with the reason,
and never as the doing of somebody else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agent.drift import Drift
from holdfast.agent.fights import Fights
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.watch import hint
from holdfast.agent.watch.hint import Hint, Writer
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.plan import Operation, Verb
from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.cli import confirm_scene as scene
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

ACCUSED = re.compile(r"\bby (holdfast|python[0-9.]*)\b")


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.fixture
def daemon(holdfast: Holdfast, netns: Namespace) -> Iterator[Daemon]:
    with (
        scene.router(holdfast, netns),
        serve(holdfast.root, holdfast.folder / "router.yaml") as running,
    ):
        running.wait_for("read: ")
        yield running


def _reverted(holdfast: Holdfast) -> StoredEvent:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return next(event for event in ledger.events() if event.kind == "reverted")


def _accused(holdfast: Holdfast, daemon: Daemon) -> list[str]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        told = [
            f"{event.kind} {event.message} {json.dumps(event.data)}" for event in ledger.events()
        ]
    pids = {str(daemon.process.pid), str(os.getpid())}
    return [
        line
        for line in (*told, *daemon.said().splitlines())
        if ACCUSED.search(line) or any(f"(process {pid})" in line for pid in pids)
    ]


@pytest.mark.parametrize(
    ("program", "own"),
    [
        (("python", "-P", "-m", "holdfast.runtime.confirm.deadline_process", "/"), True),
        (("python", "-m", "holdfast", "apply"), True),
        (("/usr/bin/python3", "/usr/bin/holdfast", "--root", "/r", "rollback"), True),
        (("python", "undo.py", "holdfast"), False),
        (("python", "-m", "holdfasting"), False),
        (("holdfast",), False),
    ],
)
def test_who_is_holdfast(program: tuple[str, ...], own: bool) -> None:
    assert hint.runs_holdfast([word.encode() for word in program]) == own
    assert hint.is_holdfast(os.getpid())
    assert not hint.is_holdfast(1)


@pytest.mark.parametrize("own", [True, False])
def test_what_holdfast_did_itself_is_no_drift(own: bool) -> None:
    rule = Artifact(Key("rule", "1: from all lookup 9"), {})
    gathered = PendingHints()
    gathered.add(Hint("rule", rule.key, writer=Writer(7, "holdfast", own=own), gone=True), 1.0)
    drift = Drift(gathered, Fights(lambda low, _high: low), lambda _operation: False)
    drift.find([Operation(Verb.CREATE, rule, ("RoutingRule/a",), "missing")], 1.0)
    assert len(drift.found) == (0 if own else 1)


@pytest.mark.parametrize(
    ("writer", "drifts"),
    [(None, False), (Writer(7), False), (Writer(7, "ip"), True), (Writer(7, "holdfast"), True)],
)
def test_what_a_command_did_that_has_ended_is_no_drift(writer: Writer | None, drifts: bool) -> None:
    """Nobody can be asked for its name any more; the ledger says that there was one."""
    rule = Artifact(Key("rule", "1: from all lookup 9"), {})
    gathered = PendingHints()
    gathered.add(Hint("rule", rule.key, writer=writer, gone=True), 1.0)
    fights = Fights(lambda low, _high: low)
    for beside in (True, False):
        drift = Drift(gathered, fights, lambda _operation: False, beside)
        drift.find([Operation(Verb.CREATE, rule, ("RoutingRule/a",), "missing")], 1.0)
        assert bool(drift.found) == (drifts or not beside)


@pytest.mark.parametrize("how", ["asked", "deadline"])
def test_a_trial_is_taken_back(
    holdfast: Holdfast, daemon: Daemon, netns: Namespace, how: str
) -> None:
    within = "1h" if how == "asked" else "6s"
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", within)
    daemon.wait_for("is on trial")
    if how == "asked":
        holdfast.ok("rollback")
        why = "it was taken back by `holdfast rollback`"
    else:
        why = "nobody confirmed it within 6s"
    daemon.wait_for(f"generation 2 was reverted: {why}")
    scene.until(lambda: "10.8.0.0/16" in netns.ip("route show"), "as it was")
    daemon.rest()
    assert daemon.said().count("generation 2 was reverted") == 1
    event = _reverted(holdfast)
    assert (event.subject, event.message, event.data["cause"]) == ("generation 2", why, how)
    assert not _accused(holdfast, daemon)
