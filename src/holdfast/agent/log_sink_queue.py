"""Events on their way to the sinks, beside the passes.

A sink may be slow, and one behind a provider that is down is so just when there is something to do
about that provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.dataclass import dataclass, field
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.router import Router
from holdfast.runtime import log_sinks
from holdfast.runtime.log import Level, Line
from holdfast.state.events import Event

# Passes whose events wait; what is more than that is in the ledger all the same.
_MOST = 100
# How long a daemon that ends waits for what is on its way.
_LAST_S = 3.0

_Batch = tuple[Router, Sequence[Event]]


@dataclass(slots=True)
class LogSinkQueue:
    paths: Paths
    say: Callable[[str], None]
    _waiting: asyncio.Queue[_Batch] = field(default_factory=lambda: asyncio.Queue(_MOST))
    _said: frozenset[str] = frozenset()

    def put(self, router: Router, events: Sequence[Event]) -> None:
        if not events or not registry.having(router.resources, lambda kind: kind.receives_events):
            return
        try:
            self._waiting.put_nowait((router, events))
        except asyncio.QueueFull:
            told = f"{len(events)} events were not delivered: others wait still"
            self.say(Line(told, Level.ERROR))

    async def run(self) -> None:
        while True:
            router, events = await self._waiting.get()
            try:
                problems = await asyncio.to_thread(self._forward, router, events)
            except Exception as error:
                problems = frozenset({f"{len(events)} events were not delivered: {error!r}"})
            for problem in sorted(problems - self._said):
                self.say(Line(problem, Level.ERROR))
            self._said = problems
            self._waiting.task_done()

    async def last(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await self._waiting.join()

    def _forward(self, router: Router, events: Sequence[Event]) -> frozenset[str]:
        return frozenset(log_sinks.deliver(self.paths, router, "serve", events))
