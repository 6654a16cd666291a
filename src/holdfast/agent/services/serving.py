"""The API and the console beside the loop: without them, the router is kept as declared all the
same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from holdfast.agent.background import keep_running
from holdfast.agent.event_stream import EventStream
from holdfast.agent.services.actions import Actions
from holdfast.agent.services.backend import Backend, Loop
from holdfast.agent.services.dynamic import Dynamic
from holdfast.agent.services.events import Events
from holdfast.agent.services.plugins import Plugins
from holdfast.agent.services.route_control import RouteControl
from holdfast.agent.services.router import Router
from holdfast.agent.services.routes import Routes
from holdfast.agent.services.routing import Routing
from holdfast.agent.web import view
from holdfast.agent.web.console import Console
from holdfast.api.inherited import Inherited
from holdfast.api.refusals import Refusals
from holdfast.api.services import Services
from holdfast.errors import HoldfastError
from holdfast.runtime.log import Level, Line
from holdfast.runtime.unserved import Unserved

_AGAIN_S = 5.0
_API = "the API"


@asynccontextmanager
async def api(
    loop: Loop, say: Callable[[str], None], inherited: Inherited, refusals: Refusals
) -> AsyncIterator[None]:
    """Answers while the body runs; what keeps it from that is told, and tried again."""
    # These take a while to import; tests of the loop do without.
    from holdfast.agent.services.speakers import SpeakerTask
    from holdfast.api.server import Server

    def failed(line: str) -> None:
        say(Line(line, Level.ERROR))

    backend = Backend(loop)
    events = EventStream(backend.paths, backend.threads)
    routing = Routing(backend, events, refusals.counts)
    loop.route_numbers = routing.numbers
    services = services_of(backend, events, routing)
    server = Server(services, failed, refusals, inherited)
    unserved = Unserved(loop.paths)

    async def start() -> bool:
        nonlocal server
        try:
            await server.start(loop.paths)
        except (OSError, HoldfastError) as error:
            await server.stop()
            server = Server(services, failed, refusals, inherited)
            loop.tell_beside(_API, Line(f"the API is not served: {error}", Level.ERROR))
            unserved.say()
            return False
        loop.tell_beside(_API, "")
        unserved.close()
        return True

    ready = await start()

    async def run() -> None:
        nonlocal ready
        while not ready:
            await asyncio.sleep(_AGAIN_S)
            ready = await start()
        await SpeakerTask(loop, server).run()

    tasks = [asyncio.create_task(keep_running(each, say)) for each in (run, *routing.tasks())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.stop()
        backend.close()
        unserved.close()


def services_of(backend: Backend, events: EventStream, routing: Routing) -> Services:
    return Services(
        Router(backend),
        Dynamic(backend),
        Plugins(backend),
        Actions(backend),
        Events(events),
        RouteControl(routing.desk),
        Routes(routing.desk),
    )


def web(
    loop: view.Loop, console: Console | None, say: Callable[[str], None]
) -> AbstractAsyncContextManager[None]:
    """The console and the metrics, on the address given, or nowhere."""
    if console is None:
        return nullcontext()
    from holdfast.agent.web.server import web as served  # as above

    return served(loop, console, say)
