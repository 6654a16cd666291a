"""Where routing control keeps what it must: notes and events in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from holdfast.agent.event_stream import EventStream
from holdfast.agent.services.backend import Backend
from holdfast.dataclass import dataclass, field
from holdfast.engine.event_kinds import EventKind
from holdfast.errors import LedgerError
from holdfast.runtime import event_rate
from holdfast.runtime.routes import event_types
from holdfast.runtime.routes.tally import Tally
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

# What is told within so long of the first is written at once: a flood of calls that are refused is
# a few writes.
_TOGETHER_S = 0.02
# More than are kept of all sources in a minute cannot wait: who floods is told of by a count.
_MOST_WAITING = 10_000
_COMMAND = "holdfast serve (routes)"


@dataclass(frozen=True, slots=True)
class LedgerNotes:
    backend: Backend

    def read(self, name: str) -> JSON:
        with Ledger.read(self.backend.paths) as ledger:
            return ledger.note(name)

    async def write(self, name: str, value: JSON) -> None:
        def work() -> None:
            with self.backend.ledger(_COMMAND) as ledger:
                ledger.put_note(name, value)

        await self.backend.in_thread(work)


@dataclass(slots=True)
class LedgerJournal:
    """Events are told on the event loop and written in a thread; each source has its share of what
    is caused by calls, and all that FRR is seen to do is kept."""

    backend: Backend
    stream: EventStream
    tally: Tally
    _waiting: list[tuple[str, Event]] = field(default_factory=list)
    _some: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, kind: EventKind, source: str, message: str, data: Mapping[str, str]) -> None:
        if kind in event_types.TYPES:
            self.tally.events[event_types.name(kind)] += 1
        if len(self._waiting) >= _MOST_WAITING:
            self.tally.dropped += 1
            return
        causes = source if kind in event_types.CAUSED else ""
        self._waiting.append((causes, Event(kind, source, message, data=dict(data))))
        self._some.set()

    async def write(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            told, self._waiting = self._waiting, []
            try:
                await self.backend.in_thread(lambda: self._keep(told))  # noqa: B023 - awaited here
            except LedgerError:
                self._waiting = (told + self._waiting)[:_MOST_WAITING]
                self._some.set()
                await asyncio.sleep(1.0)
            else:
                self.stream.written()
            await asyncio.sleep(_TOGETHER_S)

    def _keep(self, told: list[tuple[str, Event]]) -> None:
        with self.backend.ledger(_COMMAND) as ledger:
            ledger.append_events(event_rate.kept(ledger, told, time.time()))
