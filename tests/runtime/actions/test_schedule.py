"""Actions beside the passes of a daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from holdfast.agent.action_schedule import RUN_S, ActionSchedule
from holdfast.errors import Refused
from holdfast.state.actions import RUNNING, SUCCEEDED
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import WORKS, Scene

pytestmark = pytest.mark.programs


@asynccontextmanager
async def at_work(actions: ActionSchedule) -> AsyncIterator[None]:
    task = asyncio.create_task(actions.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(true: Callable[[], Any], what: str) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)
    assert true(), what


def state(scene: Scene, key: str) -> str:
    with Ledger.read(scene.paths) as ledger:
        found = ledger.action(key)
    return found.state if found else ""


def test_a_merge_leads_to_a_run(scene: Scene) -> None:
    said: list[str] = []
    told: list[Event] = []
    scene.parts = [part(plan())]

    async def main() -> None:
        actions = ActionSchedule(scene.engine, said.append, told.extend)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: said, "something said")

    asyncio.run(main())
    assert said == ["Action/k1 succeeded"]
    assert state(scene, "k1") == SUCCEEDED
    assert [one.kind for one in told] == ["action-proposed", "action-approved", "action-succeeded"]


def test_nothing_waits_for_an_executor(scene: Scene) -> None:
    """Merges go on while one hangs; and what is cut short is found again after a restart."""
    scene.executor(f"time.sleep(60) if asked == 1 else {WORKS}")
    scene.parts = [part(plan())]

    async def first() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: scene.asked, "an executor at work")
            for generation in range(2, 100):
                scene.parts = [part(plan(), generation=generation)]
                actions.changed(scene.view())

    asyncio.run(first())
    assert state(scene, "k1") == RUNNING

    async def restarted() -> None:
        scene.now = scene.action().deadline + 1
        actions = ActionSchedule(scene.engine, lambda _line: None)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: state(scene, "k1") == SUCCEEDED, "its outcome")

    asyncio.run(restarted())


def test_no_policy_is_widened_by_many_merges(scene: Scene) -> None:
    scene.policy(maxActionsPerRun=1)
    scene.parts = [part(plan("k1"), plan("k2"))]

    async def main() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None, run_s=RUN_S)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: state(scene, "k1") == SUCCEEDED, "the first")
            for generation in range(2, 20):
                scene.parts = [part(plan("k1"), plan("k2"), generation=generation)]
                actions.changed(scene.view())
                await asyncio.sleep(0.05)
            assert len(scene.asked) == 1

    asyncio.run(main())


def test_what_is_left_comes_with_a_later_run(scene: Scene) -> None:
    scene.policy(maxActionsPerRun=1)
    scene.parts = [part(plan("k1"), plan("k2"))]

    async def main() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None, run_s=0.1)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: state(scene, "k2") == SUCCEEDED, "the second")

    asyncio.run(main())


def test_an_approval_is_acted_on(scene: Scene) -> None:
    scene.policy(requireApproval=True)
    scene.parts = [part(plan())]

    async def main() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None)
        with pytest.raises(Refused, match="there is no valid startup file yet"):
            await actions.approve("k1", "user 0")
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: state(scene, "k1") == "pending", "the proposal")
            await actions.approve("k1", "user 0")
            await until(lambda: state(scene, "k1") == SUCCEEDED, "its execution")

    asyncio.run(main())


def test_undo_and_dry_run_by_hand(scene: Scene) -> None:
    scene.parts = [part(plan("k1"), plan("k2"))]

    async def main() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None)
        actions.changed(scene.view())
        assert (await actions.dry_run("k1")).outcome == SUCCEEDED
        assert not scene.paths.ledger.exists()
        assert [one.action.key for one in await actions.execute("k1")] == ["k1"]
        assert (await actions.rollback("k1", "user 0")).outcome == SUCCEEDED
        assert state(scene, "k1") == "rolledBack"

    asyncio.run(main())


def test_without_anything_to_do_the_ledger_is_not_held(scene: Scene) -> None:
    async def main() -> None:
        actions = ActionSchedule(scene.engine, lambda _line: None, run_s=0.05)
        async with at_work(actions):
            actions.changed(scene.view())
            await asyncio.sleep(1)

    asyncio.run(main())
    assert not scene.paths.ledger.exists()
    scene.parts = [part(plan())]
    assert not scene.engine.idle(scene.view())
    scene.run()
    assert scene.engine.idle(scene.view())


def test_what_goes_wrong_is_said_once_and_tried_again(scene: Scene) -> None:
    said: list[str] = []
    scene.parts = [part(plan())]
    scene.paths.ledger.parent.mkdir(parents=True, mode=0o700)
    scene.paths.ledger.write_bytes(b"no database" * 100)
    scene.paths.ledger.chmod(0o600)

    async def main() -> None:
        actions = ActionSchedule(scene.engine, said.append, run_s=0.05)
        async with at_work(actions):
            actions.changed(scene.view())
            await until(lambda: said, "the first run")
            await asyncio.sleep(1)
            scene.paths.ledger.unlink()
            await until(lambda: len(said) > 1, "the next run")

    asyncio.run(main())
    assert len(said) == 2
    assert said[0].startswith("actions were not looked at: ")
    assert said[1] == "Action/k1 succeeded"
