"""What all services work with: the loop, threads of their own, and documents in pieces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from holdfast.agent.contributors import Contributors
from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.declare_requests import DeclareRequest
from holdfast.agent.services.pass_requests import PassRequest
from holdfast.agent.web.console import Console
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.dataclass import dataclass, field
from holdfast.errors import HoldfastError, Refused
from holdfast.paths import Paths
from holdfast.render.documents import Members, json_text
from holdfast.render.style import Style
from holdfast.resources.dynamic.effective import Effective
from holdfast.runtime import sources
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.routes.metrics import RouteNumbers
from holdfast.state.ledger import Ledger

T = TypeVar("T")


class Loop(Protocol):
    """What the services need of the loop."""

    @property
    def paths(self) -> Paths: ...
    @property
    def file(self) -> Path: ...
    @property
    def status(self) -> DaemonStatus: ...
    @property
    def proposers(self) -> Contributors: ...
    @property
    def console(self) -> Console | None: ...

    route_numbers: Callable[[], RouteNumbers] | None

    def ask(self, question: PassRequest) -> None:
        """For a pass as soon as may be; its outcome is the answer."""

    def declare(self, request: DeclareRequest) -> None:
        """A batch of increments."""

    def wake(self, cause: str) -> None:
        """There is a reason for a pass."""

    def tell_beside(self, what: str, trouble: str) -> None:
        """What is wrong with it; "" where nothing is any more."""


@dataclass(frozen=True, slots=True)
class Backend:
    loop: Loop
    started: float = field(default_factory=time.time)
    # Of its own: calls must not take the threads that passes run in.
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(limits.MAX_LOOKS + 2, "api")
    )
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(limits.MAX_LOOKS))

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)

    @property
    def paths(self) -> Paths:
        return self.loop.paths

    def in_force(self, daemon: DaemonStatus) -> Effective:
        """Raises where nothing is."""
        if daemon.effective is None:
            why = "; ".join(daemon.troubles) or "there was no pass yet: ask again in a moment"
            raise Refused(f"{self.loop.file} is not in force: {why}")
        return daemon.effective

    def effective_now(self) -> Effective:
        """What the startup file in force and the parts in the ledger come to at this moment."""
        startup = self.in_force(self.loop.status).startup
        with Ledger.read(self.paths) as ledger:
            return sources.stored(ledger).merge(startup, time.time())

    def ledger(self, command: str) -> Ledger:
        """To write, for as long as the write takes."""
        return Ledger.open(self.paths, command=command, wait=LEDGER_WAIT_S)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def pieces(
        self, form: pb.Form, members: Callable[[], Members], lines: Callable[[Style], Iterator[str]]
    ) -> AsyncGenerator[bytes, None]:
        text: Iterator[str] = (
            (f"{line}\n" for line in lines(Style(form.colour)))
            if form.text
            else json_text(members())
        )
        while piece := await self.in_thread(lambda: _piece(text)):
            yield piece

    async def document(
        self, form: pb.Form, members: Callable[[], Members], lines: Callable[[Style], Iterator[str]]
    ) -> AsyncGenerator[pb.Document, None]:
        async for data in self.pieces(form, members, lines):
            yield pb.Document(data=data)


def whole(document: Mapping[str, Any], code: int = 0) -> pb.Document:
    data = "".join(json_text(document.items())).encode(errors="replace")
    if len(data) > limits.MAX_REPLY_BYTES - 1024:
        raise HoldfastError(f"the answer takes {len(data)} bytes, more than may be sent at once")
    return pb.Document(data=data, exit_code=code)


def _piece(text: Iterator[str]) -> bytes:
    gathered, size = [], 0
    for part in text:
        gathered.append(part)
        size += len(part)
        if size >= limits.PIECE_BYTES:
            break
    return "".join(gathered).encode(errors="replace")
