"""What runs beside the passes and goes by the same configuration: checks and lookups, log sinks,
plugins and actions, deadlines, the watchdog, the API and the console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from holdfast.agent.background import keep_running
from holdfast.agent.configuration import Read
from holdfast.agent.contributors import Contributors
from holdfast.agent.deadline_task import DeadlineTask
from holdfast.agent.fact_tracker import FactTracker
from holdfast.agent.log_sink_queue import LogSinkQueue
from holdfast.agent.sd_notify import notify
from holdfast.agent.services import backend, serving
from holdfast.agent.watchdog import Watchdog
from holdfast.agent.web import view
from holdfast.agent.web.console import Console
from holdfast.api.inherited import Inherited
from holdfast.api.refusals import Refusals
from holdfast.dataclass import dataclass, field
from holdfast.resources.router import Router
from holdfast.runtime.log import Level, Line
from holdfast.state.events import Event


class Loop(backend.Loop, view.Loop, Protocol):
    """What is served tells of it, and asks it for passes."""


@dataclass(slots=True)
class BackgroundTasks:
    """On the event loop."""

    say: Callable[[str], None]
    facts: FactTracker
    log_sinks: LogSinkQueue
    contributors: Contributors
    deadline: DeadlineTask
    console: Console | None  # and the metrics
    inherited: Inherited
    watchdog: Watchdog = field(default_factory=Watchdog)
    refusals: Refusals = field(init=False)  # of calls

    def __post_init__(self) -> None:
        self.refusals = Refusals(lambda line: self.say(Line(line, Level.WARNING)))

    @asynccontextmanager
    async def running(
        self, loop: Loop, others: Iterable[Callable[[], Awaitable[None]]]
    ) -> AsyncIterator[None]:
        """All of it, and these others, while the body runs."""
        mine = (self.facts.names, self.log_sinks, self.deadline, self.watchdog)
        runs = (*(task.run for task in mine), self.contributors.actions.run, *others)
        tasks = [asyncio.create_task(keep_running(run, self.say)) for run in runs]
        try:
            async with (
                serving.api(loop, self.say, self.inherited, self.refusals),
                serving.web(loop, self.console, self.say),
            ):
                yield
        finally:
            await self._end(tasks)

    def follow(self, read: Read, accepted: Router | None) -> None:
        """Goes by what was read from now on. accepted: what passes went by before."""
        if read.effective is None:
            return
        self.log_sinks.put(read.effective.router, read.events)
        self.facts.want(read.effective.router, accepted)
        self.contributors.follow(read.effective)
        self.contributors.hear(read.events)

    def tell(self, router: Router | None, events: Sequence[Event]) -> None:
        if router is not None:
            self.log_sinks.put(router, events)
        self.contributors.hear(events)

    async def _end(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        notify("STOPPING=1")
        await self.facts.stop()
        await self.log_sinks.last()
        await self.contributors.plugins.stop()
        for task in tasks:
            task.cancel()
