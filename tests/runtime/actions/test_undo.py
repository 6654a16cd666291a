"""Actions undone, behind gates of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import Refused
from holdfast.render import action_documents
from holdfast.state.actions import FAILED, ROLLED_BACK, SUCCEEDED
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import Scene

pytestmark = pytest.mark.programs


def undoable(scene: Scene, key: str) -> bool:
    shown = action_documents.show_document(scene.paths, scene.view(), key, scene.now)
    return bool(shown["undoAvailable"])


def test_undo(scene: Scene) -> None:
    undo = {"action": "unassign-secondary-ip", "parameters": {"force": True}}
    scene.parts = [part(plan(undo=undo))]
    scene.run()
    assert undoable(scene, "k1")
    scene.parts = []  # that it was proposed long ago does not matter
    scene.now += 10_000
    done = asyncio.run(scene.engine.rollback(scene.view, "k1", "user 0"))
    assert done.outcome == SUCCEEDED
    assert scene.action().state == ROLLED_BACK
    assert not undoable(scene, "k1"), "not a second time"
    assert not undoable(scene, "k1:undo")
    asked = scene.asked[1]["spec"]
    assert (asked["action"], asked["idempotencyKey"], asked["mode"]) == (
        "unassign-secondary-ip",
        "k1:undo",
        "execute",
    )
    assert asked["parameters"] == {"force": True, "observed": {"id": 7}}
    assert asked["target"] == {"address": "10.0.1.123", "nicRef": "eni-1"}
    assert scene.events("action-rolled-back")[0].subject == "Action/k1"
    with pytest.raises(Refused, match="k1 is rolledBack: only an action that succeeded is undone"):
        asyncio.run(scene.engine.rollback(scene.view, "k1", "user 0"))
    with pytest.raises(Refused, match="k1:undo is an undo"):
        asyncio.run(scene.engine.rollback(scene.view, "k1:undo", "user 0"))
    # It is not done again by itself.
    scene.parts = [part(plan(undo=undo), generation=9, observed=scene.now)]
    assert scene.run() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"allowUndo": None}, "allowUndo is false"),
        ({"enabled": False}, "enabled is false"),
        ({"dryRunOnly": True}, "dryRunOnly is true"),
        ({"allowedActions": ["assign-secondary-ip"]}, "allowedActions does not have unassign"),
        ({"allowedCIDRs": ["10.0.2.0/24"]}, "allowedCIDRs does not cover"),
        ({"executionWindow": {"days": ["tue"]}}, "the execution window is closed"),
        ({"plugin": "a b"}, "more than one has it"),
    ],
)
def test_each_gate_holds_an_undo(scene: Scene, change: dict[str, Any], said: str) -> None:
    scene.parts = [part(plan())]
    scene.run()
    scene.policy(**change)
    with pytest.raises(Refused) as refused:
        asyncio.run(scene.engine.rollback(scene.view, "k1", "user 0"))
    assert said in str(refused.value)
    assert len(scene.asked) == 1
    assert scene.action().state == SUCCEEDED


def test_a_dry_run_asks_and_records_nothing(scene: Scene) -> None:
    scene.parts = [part(plan())]
    scene.run()
    before = action_documents.journal_document(scene.paths), scene.events()
    scene.policy(executionWindow={"days": ["tue"]})
    done = asyncio.run(scene.engine.dry_run(scene.view, "k1", undoes=True))
    assert done.outcome == SUCCEEDED
    (told,) = action_documents.done_document([done], dry_run=True)["results"]
    assert (told["key"], told["undoes"]) == ("k1:undo", "k1")
    assert told["asked"]["action"] == "unassign-secondary-ip"
    assert told["asked"]["parameters"]["observed"] == {"id": 7}
    assert "the execution window is closed" in told["held"][0]["why"]
    asked = scene.asked[1]["spec"]
    assert (asked["idempotencyKey"], asked["mode"]) == ("k1:undo", "dry-run")
    assert (action_documents.journal_document(scene.paths), scene.events()) == before
    scene.policy(allowUndo=None)
    with pytest.raises(Refused, match="k1 would not be undone:\n  ProviderActionPolicy: allowUndo"):
        asyncio.run(scene.engine.dry_run(scene.view, "k1", undoes=True))
    with pytest.raises(Refused, match="there is no action k9"):
        asyncio.run(scene.engine.dry_run(scene.view, "k9", undoes=True))


def test_what_cannot_be_undone(scene: Scene) -> None:
    scene.executor("answer('succeeded')")
    scene.parts = [part(plan("k1"), plan("k2", undo=None))]
    scene.run()
    for key, said in (("k1", "its executor said so"), ("k2", "its plan does not say how")):
        with pytest.raises(Refused, match=said):
            asyncio.run(scene.engine.rollback(scene.view, key, "user 0"))


def test_an_undo_that_failed_may_be_asked_for_again(scene: Scene) -> None:
    scene.executor(
        "answer('failed', error='busy') if asked == 2 else answer('succeeded', undoAvailable=True)"
    )
    scene.parts = [part(plan())]
    scene.run()
    done = asyncio.run(scene.engine.rollback(scene.view, "k1", "user 0"))
    assert (done.outcome, done.reason) == (FAILED, "busy")
    assert scene.action().state == SUCCEEDED
    assert scene.run() == []
    done = asyncio.run(scene.engine.rollback(scene.view, "k1", "user 0"))
    assert done.outcome == SUCCEEDED
    assert scene.action("k1:undo").epoch == 2
    assert scene.action().state == ROLLED_BACK
