"""When plugins run, with a stand-in for the runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from holdfast.agent.plugin_schedule import PluginSchedule
from holdfast.engine import event_kinds
from holdfast.resources.dynamic.effective import Effective, merge
from holdfast.resources.resource import Resource
from holdfast.runtime.plugins.run import FinishedRun, PluginRunner
from holdfast.runtime.plugins.sandbox import Outcome
from holdfast.state.events import Event
from tests.resources.routers import load

EVENT = Event(event_kinds.PLUGIN_SAID, "Plugin/lab", "moved: away")


class Runs:
    """Each takes until it is let go."""

    def __init__(self) -> None:
        self.at_once = self.most = self.count = 0
        self.go = asyncio.Event()
        self.fault: Exception | None = None

    async def run(self, plugin: Resource, *_: Any, **__: Any) -> FinishedRun:
        self.count += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await self.go.wait()
            if self.fault is not None:
                raise self.fault
        finally:
            self.at_once -= 1
        return FinishedRun(plugin.name, Outcome(0, b"", "", 0.1), "", None, None, events=(EVENT,))


def declared(folder: Path, **spec: Any) -> Effective:
    return merge(load(folder, ("Plugin", "lab", {"executable": "/bin/lab", **spec})), [], 0.0)


class Scene:
    def __init__(self, folder: Path, **spec: Any) -> None:
        self.runs, self.folder = Runs(), folder
        self.effective = declared(folder, **spec)
        self.ran: list[str] = []
        self.said: list[str] = []
        self.told: list[Event] = []
        self.plugins = PluginSchedule(
            cast(PluginRunner, self.runs),  # as much of one as is needed
            lambda: self.effective,
            lambda: 1,
            self.ran.append,
            lambda _cause: None,
            self.said.append,
            self._tell,
        )
        self.plugins.watch(self.effective.startup.resources)

    def _tell(self, events: Sequence[Event]) -> None:
        self.told += events


def test_never_twice_at_once_whatever_is_declared_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> Scene:
        scene = Scene(tmp_path)
        first = asyncio.create_task(scene.plugins.run("lab"))
        await asyncio.sleep(0)
        scene.effective = declared(tmp_path, timeout="3s")
        scene.plugins.watch(scene.effective.startup.resources)
        second = asyncio.create_task(scene.plugins.run("lab"))
        for _ in range(10):
            await asyncio.sleep(0)
        scene.runs.go.set()
        await asyncio.gather(first, second)
        return scene

    scene = asyncio.run(scenario())
    assert (scene.runs.count, scene.runs.most) == (2, 1)


def test_what_was_recorded_is_told(tmp_path: Path) -> None:
    async def scenario() -> Scene:
        scene = Scene(tmp_path)
        scene.runs.go.set()
        await scene.plugins.run("lab", dry_run=True)
        assert scene.told == []
        await scene.plugins.run("lab")
        return scene

    scene = asyncio.run(scenario())
    assert scene.told == [EVENT]
    assert scene.ran == ["Plugin/lab"]


def test_nothing_waits_for_one_that_cannot_be_run(tmp_path: Path) -> None:
    """No deletes until every source has loaded: but not for ever."""

    async def scenario() -> Scene:
        scene = Scene(tmp_path, triggers=[{"type": "interval", "every": "1h"}])
        scene.runs.fault = OSError("a fault")
        scene.runs.go.set()
        while not scene.said:
            await asyncio.sleep(0)
        await scene.plugins.stop()
        return scene

    scene = asyncio.run(scenario())
    assert scene.said == ["Plugin/lab was not run: a fault"]
    assert scene.ran == ["Plugin/lab"]


def test_a_dry_run_takes_no_event_away(tmp_path: Path) -> None:
    """One that comes while the plugin rests after the last."""
    event = Event(event_kinds.FIGHT, "route 10.0.0.0/8", "undone again")

    async def scenario() -> None:
        scene = Scene(tmp_path, triggers=[{"type": "event", "topic": "fight"}])
        scene.runs.go.set()
        async with asyncio.timeout(20):
            await asyncio.sleep(0)
            scene.plugins.hear([event])
            while len(scene.ran) < 1:
                await asyncio.sleep(0.01)
            scene.plugins.hear([event])
            await scene.plugins.run("lab", dry_run=True)
            while len(scene.ran) < 2:
                await asyncio.sleep(0.01)
        await scene.plugins.stop()

    asyncio.run(scenario())
