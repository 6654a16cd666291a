"""`holdfast serve` with a plugin that proposes and an executor, killed at the worst moment."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable

import pytest

from holdfast.state.actions import RUNNING, SUCCEEDED
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.firewall.hosts import LONG
from tests.namespace import Namespace
from tests.runtime.actions.scene import WORKS, Scene

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run plugins as nobody")

PROPOSER = """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: inventory}
      spec:
        executable: /opt/inventory
        capabilities: [propose.providerAction]
        triggers: [{type: interval, every: 1s}]
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {name: inventory}
      spec: {pluginRef: inventory, ttl: 10m}
"""
PROPOSES = """#!/usr/bin/python3 -IS
import json
plan = {"name": "app", "provider": "aws", "action": "assign-secondary-ip", "idempotencyKey": "k1",
        "target": {"address": "10.0.1.123", "nicRef": "eni-1"},
        "undo": {"action": "unassign-secondary-ip"}}
print(json.dumps({"status": {"ttl": "5m", "actionPlans": [plan]}}))
"""


@pytest.fixture
def proposing(scene: Scene, netns: Namespace) -> Scene:
    assert not netns.ip("route show")
    place = scene.root / "opt/inventory"
    place.write_text(PROPOSES)
    place.chmod(0o755)
    return scene


def declare(scene: Scene, **changes: object) -> None:
    scene.policy(**changes)  # type: ignore[arg-type]  # values of mixed types by name
    scene.file.write_text(scene.file.read_text() + PROPOSER)


def is_(scene: Scene, state: str) -> Callable[[], bool]:
    def there() -> bool:
        if not scene.paths.ledger.exists():
            return False
        with Ledger.read(scene.paths) as ledger:
            found = ledger.action("k1")
        return found is not None and found.state == state

    return there


def generation(scene: Scene) -> int:
    with Ledger.read(scene.paths) as ledger:
        index = {source: number for source, number, _ in ledger.part_index()}
    return index["Plugin/inventory"]


def holdfast(scene: Scene, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--root", str(scene.root), "action", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_plugin_through_an_approval_to_the_provider(proposing: Scene) -> None:
    scene = proposing
    declare(scene, requireApproval=True)
    with serve(scene.root, scene.file) as daemon:
        until(is_(scene, "pending"), "a proposal")
        assert "held: it is not approved" in holdfast(scene, "list")
        holdfast(scene, "approve", "k1")
        until(is_(scene, SUCCEEDED), "its execution")
        daemon.wait_for("Action/k1 succeeded")
        assert scene.asked[0]["spec"]["context"]["source"] == "Plugin/inventory"
        tried = holdfast(scene, "rollback", "k1", "--dry-run")
        assert tried.startswith("k1:undo succeeded (dry run)")
        assert is_(scene, SUCCEEDED)(), "nothing was undone"
        holdfast(scene, "rollback", "k1")
        until(is_(scene, "rolledBack"), "its undo")
        assert daemon.end() == 0
    assert [one["spec"]["mode"] for one in scene.asked] == ["execute", "dry-run", "execute"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ended_between_claim_and_result(proposing: Scene, how: signal.Signals) -> None:
    scene = proposing
    declare(scene)
    scene.executor(f"time.sleep(60) if asked == 1 else {WORKS}")
    with serve(scene.root, scene.file) as daemon:
        until(lambda: len(scene.asked) == 1, "an executor at work")
        assert is_(scene, RUNNING)()
        daemon.signal(how)
        daemon.process.wait(LONG)  # no executor holds it up
    assert is_(scene, RUNNING)()
    before = generation(scene)
    with serve(scene.root, scene.file) as daemon:
        until(lambda: generation(scene) > before + 2, "a daemon at work")
        assert is_(scene, RUNNING)(), "within its time it is another's"
        assert daemon.end() == 0
    # Its time goes by.
    with sqlite3.connect(scene.paths.ledger) as raw:
        raw.execute("UPDATE actions SET deadline=changed")
    raw.close()
    with serve(scene.root, scene.file):
        until(is_(scene, SUCCEEDED), "its outcome")
    assert [asked["spec"]["idempotencyKey"] for asked in scene.asked] == ["k1", "k1"]
    assert scene.action().epoch == 2
    assert len(scene.events("action-resumed")) == 1
