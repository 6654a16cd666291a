"""Actions past every gate, with real executors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from holdfast.errors import Refused
from holdfast.render import action_documents
from holdfast.state.actions import (
    APPROVED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
)
from holdfast.state.confirmations import Confirmation
from holdfast.state.events import Event
from tests.runtime.actions.plans import NOW, part, plan
from tests.runtime.actions.scene import Scene

pytestmark = pytest.mark.programs


def test_what_everything_allows_is_executed_once(scene: Scene) -> None:
    scene.parts = [part(plan(providerRef="prod", parameters={"region": "eu"}), generation=12)]
    (done,) = scene.run()
    assert (done.outcome, done.reason) == (SUCCEEDED, "done")
    action = scene.action()
    assert (action.state, action.epoch, action.approved_by) == (
        SUCCEEDED,
        1,
        "ProviderActionPolicy",
    )
    (asked,) = scene.asked
    assert asked == {
        "apiVersion": "provideraction.holdfast.dev/v1alpha1",
        "kind": "ExecuteActionRequest",
        "metadata": {"name": "app"},
        "spec": {
            "action": "assign-secondary-ip",
            "provider": "aws",
            "providerRef": "prod",
            "target": {"address": "10.0.1.123", "nicRef": "eni-1"},
            "parameters": {"region": "eu"},
            "mode": "execute",
            "idempotencyKey": "k1",
            "context": {
                "now": "2025-11-24T16:00:00Z",
                "source": "Owner/ci",
                "generation": 12,
                "resources": [],
            },
        },
    }
    kinds = [event.kind for event in scene.events()]
    assert kinds == ["action-proposed", "action-approved", "action-succeeded"]
    assert scene.run() == []
    scene.parts = [part(plan(providerRef="prod", parameters={"region": "eu"}), generation=13)]
    assert scene.run() == []
    assert len(scene.asked) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"enabled": False}, "enabled is false"),
        ({"enabled": None}, "enabled is false"),
        ({"dryRunOnly": None}, "dryRunOnly is true"),
        ({"allowedProviders": None}, "allowedProviders does not have aws"),
        ({"allowedActions": ["unassign-secondary-ip"]}, "allowedActions does not have assign"),
        ({"allowedProviderRefs": ["prod"]}, "allowedProviderRefs does not have"),
        ({"allowedCIDRs": ["10.0.2.0/24"]}, "allowedCIDRs does not cover 10.0.1.123/32"),
        ({"maxActionsPerRun": None}, "maxActionsPerRun is 0"),
        ({"executionWindow": {"days": ["tue"]}}, "the execution window is closed"),
        ({"requireApproval": None}, "is not approved"),
        ({"plugin": "gcp-executor other"}, "more than one has it: gcp-executor, other"),
        ({"capabilities": "propose.providerAction"}, "has not the capability"),
    ],
)
def test_each_gate_holds_it_alone(scene: Scene, change: dict[str, Any], said: str) -> None:
    scene.parts = [part(plan())]
    scene.policy(**change)
    assert scene.run() == []
    with pytest.raises(Refused) as refused:
        scene.run("k1")
    assert said in str(refused.value) or "is not approved" in str(refused.value)
    held = action_documents.list_document(scene.paths, scene.view(), scene.now)["actions"][0][
        "held"
    ]
    assert said in str(held)
    assert scene.asked == []
    scene.policy()
    assert [done.outcome for done in scene.run()] == [SUCCEEDED], "it was that gate alone"


def test_an_executor_that_others_could_change_is_not_run(scene: Scene) -> None:
    scene.parts = [part(plan())]
    (scene.root / "opt/executor").chmod(0o777)
    assert scene.run() == []
    held = action_documents.list_document(scene.paths, scene.view(), scene.now)["actions"][0][
        "held"
    ]
    assert "others than its owner may write" in str(held)
    assert scene.asked == []


def test_a_single_executor_serves_every_provider(scene: Scene) -> None:
    scene.parts = [part(plan())]
    scene.policy(plugin="cloud")
    assert [done.outcome for done in scene.run()] == [SUCCEEDED]


def test_plans_are_no_part_of_the_effective_config(scene: Scene) -> None:
    scene.parts = [part(plan())]
    effective = scene.view()
    assert effective.router.resources == effective.startup.resources
    assert "10.0.1.123" not in str([file.content for file in effective.router.files])


def test_approval(scene: Scene) -> None:
    scene.parts = [part(plan())]
    scene.policy(requireApproval=True)
    assert scene.run() == []
    assert scene.action().state == PENDING
    with pytest.raises(Refused, match="k1 is not approved: `holdfast action approve k1`"):
        scene.run("k1")
    approved = scene.engine.approve(scene.view, "k1", "user 0 (ops)")
    assert (approved.state, approved.approved_by) == (APPROVED, "user 0 (ops)")
    assert scene.events("action-approved")[0].message == "approved by user 0 (ops)"
    with pytest.raises(Refused, match="k1 is approved: there is nothing to approve"):
        scene.engine.approve(scene.view, "k1", "user 0")
    assert [done.outcome for done in scene.run()] == [SUCCEEDED]
    with pytest.raises(Refused, match="k1 is succeeded: there is nothing to approve"):
        scene.engine.approve(scene.view, "k1", "user 0")


def test_what_the_policy_does_not_allow_cannot_be_approved(scene: Scene) -> None:
    scene.parts = [part(plan())]
    scene.policy(requireApproval=True, allowedCIDRs=["10.0.2.0/24"], dryRunOnly=True)
    with pytest.raises(Refused, match="cannot be approved:\n  allowedCIDRs does not cover"):
        scene.engine.approve(scene.view, "k1", "user 0")
    # What only keeps it for now does not stand in the way.
    scene.policy(requireApproval=True, dryRunOnly=True, executionWindow={"days": ["tue"]})
    assert scene.engine.approve(scene.view, "k1", "user 0").state == APPROVED
    assert scene.run() == []
    with pytest.raises(Refused, match="there is no action k9"):
        scene.engine.approve(scene.view, "k9", "user 0")


def test_an_approval_of_the_policy_ends_where_people_are_to_approve(scene: Scene) -> None:
    scene.parts = [part(plan("k1"), plan("k2"))]
    scene.policy(maxActionsPerRun=1)
    assert len(scene.run()) == 1
    assert scene.action("k2").state == APPROVED
    scene.policy(requireApproval=True)
    assert scene.run() == []
    assert scene.action("k2").state == PENDING


def test_no_more_in_a_run_than_the_policy_says(scene: Scene) -> None:
    scene.parts = [part(*(plan(f"k{number}") for number in range(5)))]
    scene.policy(maxActionsPerRun=2)
    ran = [[done.action.key for done in scene.run()] for _ in range(4)]
    assert ran == [["k0", "k1"], ["k2", "k3"], ["k4"], []]


def test_the_window_opens_and_closes(scene: Scene) -> None:
    """At 16:00 of a Monday."""
    scene.policy(executionWindow={"days": ["mon"], "from": "23:30", "to": "00:30"})
    scene.parts = [part(plan("k1"), plan("k2"), lasts=None)]
    ran = []
    for hours in (0, 7.49, 7.5, 8.49, 8.5):
        scene.now = NOW + hours * 3600
        keys = [done.action.key for done in scene.run()]
        ran.append(keys)
        if keys == ["k1", "k2"]:
            scene.parts = [part(plan("k3"), lasts=None, generation=2)]
    assert ran == [[], [], ["k1", "k2"], ["k3"], []]


def test_while_a_generation_waits_to_be_confirmed_nothing_is_begun(scene: Scene) -> None:
    scene.parts = [part(plan())]
    trial = Confirmation(3, NOW, NOW + 60, "boot", 60.0, 2, "f", "", "digest", b"reverse")
    with scene.ledger() as ledger:
        ledger.begin_confirmation(trial)
    assert scene.run() == []
    with pytest.raises(Refused, match="generation 3 waits to be confirmed"):
        scene.run("k1")
    with scene.ledger() as ledger:
        ledger.confirm(3)
    assert len(scene.run()) == 1


def test_a_part_that_is_over_executes_nothing(scene: Scene) -> None:
    scene.policy(requireApproval=True)
    scene.parts = [part(plan(), lasts=60.0)]
    scene.engine.approve(scene.view, "k1", "user 0")
    scene.policy()
    scene.now += 60
    assert scene.run() == []
    assert scene.action().state == SKIPPED
    assert scene.asked == []
    assert scene.events("action-skipped")[0].message == "no part in force proposes it any more"


def test_a_part_that_ends_during_a_run_ends_what_is_left_of_it(scene: Scene) -> None:
    scene.parts = [part(plan("k1"), plan("k2"), lasts=60.0)]
    loaded = scene.view()

    def view() -> Any:
        scene.now += 30  # each look is half a minute later
        return loaded

    done = asyncio.run(scene.engine.run(view))
    assert [one.action.key for one in done] == ["k1"]
    assert scene.action("k2").state == SKIPPED


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('no JSON')", "its answer is not JSON"),
        ("answer('done')", "status.status: must be one of succeeded, failed, skipped"),
        ("answer('succeeded', error='no')", "status.error: is there, and status.status says"),
        ("answer('succeeded', undoAvailable='yes')", "status.undoAvailable: must be true"),
        ("answer('succeeded', observed=[1])", "status.observed: must be an object"),
        ("answer('succeeded', observed={'x': 'y' * 20000})", "is more than 16 KiB"),
        ("answer('succeeded', approved=True)", "status.approved: unknown field"),
        ('print(\'{"status": 1, "status": 2}\')', "is there twice"),
        ("answer('succeeded'); sys.exit(3)", "ended with exit status 3"),
        ("sys.exit('no credentials')", "ended with exit status 1: no credentials"),
        ("answer('succeeded'); time.sleep(60)", "did not end within 1 s"),
        ("print('x' * (5 << 20))", "wrote more than 4096 KiB"),
        ("pass", "its answer is not JSON"),
        ("answer('succeeded', observed={'a': json.loads('[' * 90 + ']' * 90)})", "64 levels deep"),
        ("sys.exit('\\x1b[2Jgone')", "exit status 1: [2Jgone"),
    ],
)
def test_an_executor_that_misbehaves_has_failed(scene: Scene, program: str, said: str) -> None:
    # Only one of them is to be waited for in vain; the others end by themselves, some day.
    scene.timeout = 1.0 if "sleep" in program else 30.0
    scene.executor(program)
    scene.parts = [part(plan())]
    (done,) = scene.run()
    assert done.outcome == FAILED
    action = scene.action()
    assert action.state == FAILED
    assert said in action.reason
    assert action.reason.startswith("Plugin/aws-executor: ")
    assert action.reason.endswith("whether it was done is not known")
    assert action.result == {"unknown": True}


def test_what_the_executor_says_of_itself(scene: Scene) -> None:
    scene.executor(
        "answer('failed', error='no quota') if asked == 1"
        " else answer('skipped', message='it is there already')"
    )
    scene.parts = [part(plan("k1"), plan("k2"))]
    first, second = scene.run()
    assert (first.outcome, first.reason) == (FAILED, "no quota")
    assert (second.outcome, second.reason) == (SKIPPED, "it is there already")
    assert [event.kind for event in scene.events()][-2:] == ["action-failed", "action-skipped"]
    assert scene.run() == []


def test_what_failed_is_tried_again_for_a_newer_generation(scene: Scene) -> None:
    scene.executor("answer('failed', error='no quota') if asked == 1 else answer('succeeded')")
    scene.parts = [part(plan())]
    scene.run()
    scene.parts = [part(plan(), generation=2)]
    assert scene.run() == []
    scene.now += 60
    (done,) = scene.run()
    assert done.outcome == SUCCEEDED, done.reason
    assert scene.action().epoch == 2


def test_secrets_reach_the_executor_and_nobody_else(scene: Scene) -> None:
    scene.executor(
        "answer('failed', error='token ' + spec['parameters']['token'] + ' is not valid\\n!',"
        " observed={'sessionToken': 'hunter3', 'said': ['with ' + spec['parameters']['token'],"
        " spec['parameters']['pinSecret']]})"
    )
    scene.parts = [part(plan(parameters={"token": "hunter2-and-more", "pinSecret": 4711471}))]
    (done,) = scene.run()
    observed = scene.action().result["observed"]
    assert observed["said"] == ["with (not shown)", "(not shown)"], "it would be shown in an undo"
    assert scene.asked[0]["spec"]["parameters"]["token"] == "hunter2-and-more"  # noqa: S105
    assert done.reason == "token (not shown) is not valid !"
    documents = [
        action_documents.list_document(scene.paths, scene.view(), scene.now),
        action_documents.show_document(scene.paths, scene.view(), "k1", scene.now),
        action_documents.journal_document(scene.paths),
        action_documents.done_document([done], dry_run=False),
    ]
    told = json.dumps(documents) + str(scene.events()) + repr(done) + repr(scene.action())
    assert "hunter" not in told
    assert "4711471" not in told


def test_bad_plans_are_said_once(scene: Scene) -> None:
    scene.parts = [part(plan("k1", mode="execute"), plan("k2"))]
    scene.run()
    scene.parts = [part(plan("k1", mode="execute"), plan("k2"), generation=2)]
    scene.run()
    (event,) = scene.events("action-rejected")
    assert (event.subject, event.message) == (
        "Owner/ci",
        "app: mode: a plan cannot ask to be executed; that is for ProviderActionPolicy",
    )
    document = action_documents.list_document(scene.paths, scene.view(), scene.now)
    assert [one["source"] for one in document["rejected"]] == ["Owner/ci#2"]
    scene.parts = [part(plan("k2"), generation=3)]
    scene.run()
    scene.parts = [part(plan("k1", mode="execute"), generation=4)]
    scene.run()
    assert len(scene.events("action-rejected")) == 2


def test_events_are_heard_as_they_are_recorded(scene: Scene) -> None:
    scene.parts = [part(plan())]
    heard: list[Event] = []
    engine = scene.engine.__class__(
        scene.paths, scene.ledger, scene.clock, scene.timeout, heard.extend
    )
    asyncio.run(engine.run(scene.view))
    assert [one.kind for one in heard] == [one.kind for one in scene.events()]


def test_a_dry_run_changes_nothing(scene: Scene) -> None:
    scene.executor("answer('succeeded', message='would do it in mode ' + spec['mode'])")
    scene.policy(
        dryRunOnly=True,
        requireApproval=True,
        maxActionsPerRun=0,
        executionWindow={"days": ["tue"]},
    )
    scene.parts = [part(plan(mode="dry-run"))]
    done = asyncio.run(scene.engine.dry_run(scene.view, "k1"))
    assert (done.outcome, done.reason) == (SUCCEEDED, "would do it in mode dry-run")
    assert not scene.paths.ledger.exists(), "nothing was written"
    for change in ({"enabled": False}, {"allowedProviders": ["gcp"]}, {"plugin": "a b"}):
        scene.policy(dryRunOnly=True, **change)
        with pytest.raises(Refused, match="k1 is not tried"):
            asyncio.run(scene.engine.dry_run(scene.view, "k1"))
    assert len(scene.asked) == 1
    scene.policy(dryRunOnly=True)
    scene.executor("sys.exit('no credentials')")
    done = asyncio.run(scene.engine.dry_run(scene.view, "k1"))
    assert (done.outcome, done.reason) == (FAILED, "ended with exit status 1: no credentials")
