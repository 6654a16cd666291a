"""What happens beside the passes and must not wait for one: sessions that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.agent import log_lines
from holdfast.agent.pass_thread import PassThread
from holdfast.agent.reconciler import Reconciler
from holdfast.dataclass import dataclass, field
from holdfast.errors import LedgerError
from holdfast.state.events import Event

# Hundreds of sessions end together.
_TOGETHER_S = 0.01


@dataclass(slots=True)
class SessionEvents:
    """On the event loop."""

    say: Callable[[str], None]
    thread: PassThread
    reconciler: Reconciler
    tell: Callable[[Sequence[Event]], None]  # whoever listens
    _writing: asyncio.Task[None] | None = field(default=None)

    def hear(self, event: Event) -> None:
        self.say(log_lines.line(event))
        self.reconciler.beside.append(event)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        await asyncio.sleep(_TOGETHER_S)
        while self.reconciler.beside:
            try:
                self.tell(await self.thread.work(self.reconciler.keep_beside))
            except LedgerError:
                return  # they are kept with the next pass
