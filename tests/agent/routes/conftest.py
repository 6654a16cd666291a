"""The services of routing control on their real socket, over memory and a real ledger."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from holdfast.agent.event_stream import EventStream
from holdfast.agent.services.backend import Backend
from holdfast.agent.services.route_control import RouteControl
from holdfast.agent.services.route_desk import RouteDesk
from holdfast.agent.services.route_store import LedgerJournal, LedgerNotes
from holdfast.agent.services.routes import Routes
from holdfast.api import sockets
from holdfast.api.callers import Caller, CallerKind, Speaker, Speakers
from holdfast.api.calls import CALLS
from holdfast.api.refusals import Refusals
from holdfast.api.server import Server
from holdfast.api.services import Services
from holdfast.api.tokens import digest_of
from holdfast.paths import Paths
from holdfast.runtime.routes.control import Control
from holdfast.runtime.routes.leases import Leases
from holdfast.runtime.routes.overrides import Overrides
from holdfast.runtime.routes.tally import Tally
from holdfast.state.ledger import Ledger
from tests.runtime.routes.memory import TOKENS, MemoryDeclarations, MemoryObserved, MemoryPolicies

LONG = 60.0


class _Loop:
    """What a backend needs of the daemon's loop here: where it is, and that passes are wanted."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.causes: list[str] = []

    def wake(self, cause: str) -> None:
        self.causes.append(cause)


@dataclass
class Served:
    paths: Paths
    desk: RouteDesk
    policies: MemoryPolicies
    declarations: MemoryDeclarations
    observed: MemoryObserved
    loop: asyncio.AbstractEventLoop
    channel: grpc.Channel
    clock: list[float]
    said: list[str]
    refusals: Refusals
    speakers: Speakers

    def ask(self, short: str, request: Any, metadata: Any = None) -> Any:
        call = CALLS[short]
        function = self.channel.unary_unary(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.reply.FromString,
        )
        return function(request, timeout=LONG, metadata=metadata)

    def code(self, short: str, request: Any, metadata: Any = None) -> str:
        """What a call is answered with: "OK", or the name of the code."""
        try:
            self.ask(short, request, metadata)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def stream(self, short: str, request: Any, metadata: Any = None) -> Any:
        call = CALLS[short]
        function = self.channel.unary_stream(
            call.path,
            request_serializer=call.request.SerializeToString,
            response_deserializer=call.reply.FromString,
        )
        return function(request, timeout=LONG, metadata=metadata)

    def on_loop(self, work: Any) -> Any:
        """What a callable answers, called where the services live."""

        async def call() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(LONG)


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    paths, clock = Paths(root), [1000.0]
    said: list[str] = []
    with Ledger.open(paths, command="test"):
        pass
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    wanted: Any = _Loop(paths)
    backend = Backend(wanted)
    stream = EventStream(paths, backend.threads)
    policies, declarations, observed = MemoryPolicies(), MemoryDeclarations(), MemoryObserved()
    notes = LedgerNotes(backend)
    tally = Tally()
    journal = LedgerJournal(backend, stream, tally)
    control = Control(policies, declarations, journal, Overrides(notes), tally)
    leases = Leases(notes, lambda: clock[0])
    desk = RouteDesk(control, leases, observed, stream, wanted.wake)
    nothing: Any = _Nothing()
    answering = Services(
        nothing, nothing, nothing, nothing, nothing, RouteControl(desk), Routes(desk)
    )
    speakers = Speakers(
        tuple(
            Speaker(Caller(CallerKind.OWNER, f"Owner/{name}"), (digest_of(token),))
            for name, token in TOKENS.items()
        )
    )
    refusals = Refusals(said.append)
    server = Server(answering, said.append, refusals, speakers=speakers)

    async def start() -> list[asyncio.Task[None]]:
        await server.start(paths)
        return [
            asyncio.create_task(journal.write()),
            asyncio.create_task(desk.keep_leases()),
        ]

    async def stop(tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await server.stop()

    tasks = asyncio.run_coroutine_threadsafe(start(), loop).result(LONG)
    try:
        with sockets.folder(paths) as folder:
            target = f"unix:{folder}/{sockets.ROUTES.name}"
            options = (("grpc.use_local_subchannel_pool", 1),)
            with grpc.insecure_channel(target, options=options) as channel:
                yield Served(
                    paths,
                    desk,
                    policies,
                    declarations,
                    observed,
                    loop,
                    channel,
                    clock,
                    said,
                    refusals,
                    speakers,
                )
    finally:
        asyncio.run_coroutine_threadsafe(stop(tasks), loop).result(LONG)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        backend.close()


class _Nothing:
    def __getattr__(self, name: str) -> Any:
        return None


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as found:
        yield found
