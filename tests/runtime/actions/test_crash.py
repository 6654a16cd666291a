"""A claim without a result: whoever made it is gone, or comes too late."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.errors import Refused
from holdfast.state.actions import FAILED, RUNNING, SUCCEEDED
from tests.agent.two_providers import until
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import WORKS, Scene

pytestmark = pytest.mark.programs

HANGS_FIRST = f"time.sleep(60) if asked == 1 else {WORKS}"


def start(scene: Scene, *words: str) -> subprocess.Popen[bytes]:
    """A process of its own that executes what the ledger of the scene holds."""
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "--root", str(scene.root), "action", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.fixture
def crashed(scene: Scene) -> Scene:
    """Killed between the claim and the result, with the executor at work."""
    scene.now = time.time()  # as the other process has it
    scene.parts = [part(plan(), observed=scene.now)]
    with scene.ledger() as ledger:
        ledger.put_part(scene.parts[0])
    scene.executor(HANGS_FIRST)
    process = start(scene, "execute", "k1")
    try:
        until(lambda: len(scene.asked) == 1 or process.poll() is not None, "an executor at work")
        assert process.poll() is None
        assert scene.action().state == RUNNING, "the journal comes first"
        workers = _children(process.pid)
        assert workers
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "no executor left")
    return scene


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (task / "children").read_text().split())
    return [*found, *(below for one in found for below in _children(one))]


def test_within_its_time_nobody_takes_it_over(crashed: Scene) -> None:
    assert crashed.run() == []
    with pytest.raises(Refused, match="k1 is under way"):
        crashed.run("k1")
    assert crashed.action().state == RUNNING


def test_after_it_the_executor_is_asked_again_with_the_same_key(crashed: Scene) -> None:
    before = crashed.action()
    crashed.now = before.deadline + 0.1
    (done,) = crashed.run()
    assert done.outcome == SUCCEEDED, done.reason
    assert [asked["spec"]["idempotencyKey"] for asked in crashed.asked] == ["k1", "k1"]
    after = crashed.action()
    assert (after.state, after.epoch) == (SUCCEEDED, before.epoch + 1)
    assert len(crashed.events("action-resumed")) == 1
    assert crashed.run() == []


def test_a_clock_that_was_set_back_does_not_keep_it(crashed: Scene) -> None:
    crashed.now -= 1000
    (done,) = crashed.run()
    assert done.outcome == SUCCEEDED, done.reason


def test_where_the_policy_has_changed_its_outcome_is_not_known(crashed: Scene) -> None:
    crashed.now = crashed.action().deadline + 0.1
    crashed.policy(enabled=False)
    assert crashed.run() == []
    action = crashed.action()
    assert (action.state, action.result) == (FAILED, {"unknown": True})
    assert action.reason == (
        "its outcome is not known: nobody brought its result, and now ProviderActionPolicy:"
        " enabled is false"
    )
    assert len(crashed.asked) == 1
    assert len(crashed.events("action-failed")) == 1
    crashed.policy()
    assert crashed.run() == [], "the same proposal is not taken for a new one"


def test_where_its_part_is_over_it_is_not_asked_again(crashed: Scene) -> None:
    crashed.now += 10_000
    assert crashed.run() == []
    action = crashed.action()
    assert action.state == FAILED
    assert action.reason.endswith("and now no part in force proposes it any more")
    assert len(crashed.asked) == 1


def test_a_closed_window_is_waited_for(crashed: Scene) -> None:
    crashed.now = crashed.action().deadline + 0.1
    today = time.strftime("%a", time.gmtime(crashed.now)).lower()
    other = "mon" if today != "mon" else "tue"
    crashed.policy(executionWindow={"days": [other]})
    assert crashed.run() == []
    assert crashed.action().state == RUNNING
    crashed.policy(executionWindow={"days": [today]})
    assert [done.outcome for done in crashed.run()] == [SUCCEEDED]


def test_an_undo_that_was_cut_short_is_gone_on_with(scene: Scene) -> None:
    scene.now = time.time()
    scene.parts = [part(plan(), observed=scene.now)]
    scene.run()
    scene.executor(f"time.sleep(60) if asked == 2 else {WORKS}")
    process = start(scene, "rollback", "k1")
    try:
        until(lambda: len(scene.asked) == 2 or process.poll() is not None, "an executor at work")
        assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    scene.now = scene.action("k1:undo").deadline + 0.1
    (done,) = scene.run()
    assert (done.action.key, done.outcome) == ("k1:undo", SUCCEEDED)
    assert scene.action().state == "rolledBack"


def test_an_answer_after_somebody_took_over_does_not_count(scene: Scene) -> None:
    """The first executor answers only once the second is done; it says that it failed."""
    scene.timeout = 30.0
    scene.executor(
        "if asked == 1:\n"
        "    while len(open(os.environ['LOG']).readlines()) < 3: time.sleep(0.02)\n"
        "    answer('failed', error='late')\n"
        f"else:\n    {WORKS}"
    )
    scene.parts = [part(plan())]

    async def both() -> None:
        first = asyncio.create_task(scene.engine.run(scene.view))
        while len(scene.asked) < 1:
            await asyncio.sleep(0.01)
        scene.now = scene.action().deadline + 1
        (second,) = await scene.engine.run(scene.view)
        assert second.outcome == SUCCEEDED
        with scene.log.open("a") as log:
            log.write("{}\n")  # lets the first one answer
        (late,) = await first
        assert late.outcome == "late"

    asyncio.run(both())
    action = scene.action()
    assert (action.state, action.epoch, action.reason) == (SUCCEEDED, 2, "done")
    (event,) = scene.events("action-late")
    assert "failed came too late, and does not count" in event.message


def test_of_two_processes_one_gets_it(scene: Scene) -> None:
    scene.now = time.time()
    scene.parts = [part(plan(), observed=scene.now)]
    with scene.ledger() as ledger:
        ledger.put_part(scene.parts[0])
    scene.executor(f"time.sleep(1); {WORKS}")
    processes = [start(scene, "execute", "k1") for _ in range(4)]
    said = [process.communicate(timeout=60)[0].decode() for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert codes == [0, 4, 4, 4], said
    assert len(scene.asked) == 1
    assert sum("k1 succeeded: done" in out for out in said) == 1
