"""The events in the ledger for readers on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import suppress

from holdfast.dataclass import dataclass, field
from holdfast.paths import Paths
from holdfast.runtime.event_log import POLL_S, Filter, Mark, Missed, Page, read_last, read_page
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger


@dataclass(slots=True)
class EventStream:
    """The ledger is read in threads."""

    paths: Paths
    threads: Executor | None = None
    missed: int = 0  # events that readers were told they missed, of all of them
    readers: set[object] = field(default_factory=set)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def read(
        self, wanted: Filter, after: int = 0, last: int = 0, *, follow: bool = False
    ) -> AsyncGenerator[StoredEvent | Missed, None]:
        """`last`: without `after`, only so many of the newest before those to come."""
        me = object()
        self.readers.add(me)
        mark = Mark(self.paths)
        try:
            mark.changed()
            if last and not after:
                page = await self._thread(lambda: read_last(self.paths, last, wanted))
            else:
                page = await self._thread(lambda: read_page(self.paths, after, wanted))
            while True:
                if page.missed is not None:
                    self.missed += page.missed.count
                    yield page.missed
                for event in page.events:
                    yield event
                if not page.full:
                    if not follow:
                        return
                    while not mark.changed():
                        await self._pause()
                at = page.cursor
                page = await self._thread(lambda at=at: read_page(self.paths, at, wanted))  # type: ignore[misc]
        finally:
            self.readers.discard(me)

    async def newest(self) -> int:
        """The number of the newest event there ever was; 0: there was none."""

        def look() -> int:
            with Ledger.read(self.paths) as ledger:
                return ledger.last_event()

        return await asyncio.get_running_loop().run_in_executor(self.threads, look)

    def written(self) -> None:
        """This process wrote events: readers need not wait until they look again by themselves."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def _pause(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await asyncio.wait((waiting,), timeout=POLL_S)
        waiting.cancel()
        with suppress(ValueError):  # `written` has taken it out
            self._waiting.remove(waiting)

    async def _thread(self, work: Callable[[], Page]) -> Page:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)
