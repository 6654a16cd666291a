"""The ledger while its file cannot be written or used: passes go on with a working copy, and it is
tried again now and then, beside them. So is what a daemon makes below /run when it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.instance_lock import InstanceLock
from holdfast.errors import LedgerError, Refused
from holdfast.host.facts.leases import FOLDER as LEASES
from holdfast.paths import Paths
from holdfast.state.defaults import WRITE_BACK_S
from holdfast.state.faults import UnusableError

T = TypeVar("T")

AGAIN = "a ledger that can be written again"


class Loop(Protocol):
    @property
    def paths(self) -> Paths: ...
    @property
    def status(self) -> DaemonStatus: ...

    def wake(self, cause: str) -> None: ...
    def tell_beside(self, what: str, trouble: str) -> None: ...


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


async def despite_ledger(
    work: Callable[[], Awaitable[T]], go_on: Callable[[UnusableError], Awaitable[bool]]
) -> T:
    """go_on: makes a working copy where the ledger cannot be used, and the work is done by it."""
    try:
        return await work()
    except UnusableError as error:
        if not await go_on(error):
            raise
        return await work()


def make_places(loop: Loop, alone: InstanceLock | None) -> bool:
    """Where others write what they learn, and the lock that daemons of other network namespaces
    see. No pass needs either."""
    trouble = ""
    try:
        loop.paths.under(LEASES).mkdir(parents=True, exist_ok=True)
        if alone is not None:
            alone.lock()
    except (OSError, Refused) as error:
        trouble = f"what a daemon keeps below /run is not there: {error}"
    loop.tell_beside("what a daemon keeps below /run", trouble)
    return not trouble


async def making_places(loop: Loop, alone: InstanceLock | None) -> None:
    while not make_places(loop, alone):
        await asyncio.sleep(WRITE_BACK_S)
