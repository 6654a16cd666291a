"""The ledger while its file takes no writes: tried again now and then, beside the passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.agent.status import DaemonStatus
from holdfast.errors import LedgerError
from holdfast.state.defaults import WRITE_BACK_S

AGAIN = "a ledger that can be written again"


class Loop(Protocol):
    @property
    def status(self) -> DaemonStatus: ...

    def wake(self, cause: str) -> None: ...


async def write_back(loop: Loop, write: Callable[[], Awaitable[bool]]) -> None:
    """write: tries it, and answers whether all is written. A pass comes after that: it makes what
    was held back, and says that the trouble is over."""
    while True:
        await asyncio.sleep(WRITE_BACK_S)
        if not loop.status.unwritten:
            continue
        try:
            if await write():
                loop.wake(AGAIN)
        except LedgerError:
            continue  # the pass says it
