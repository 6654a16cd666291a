"""The web server beside the loop: without it, the router is kept as declared all the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from holdfast.agent.events.stream import EventStream
from holdfast.agent.web.address import Listen
from holdfast.agent.web.app import make_app
from holdfast.agent.web.view import Loop, Seen

_MOST_CONNECTIONS = 64
_LAST_S = 1


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the daemon's."""
        yield


@asynccontextmanager
async def web(loop: Loop, listen: Listen, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Answers while the body runs; what keeps it from that is said once."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    app = make_app(Seen(loop, EventStream(loop.paths)), listen)
    server = _Server(
        uvicorn.Config(
            app,
            host=listen.host,
            port=listen.port,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_S,
            timeout_keep_alive=5,
        )
    )
    task = asyncio.create_task(_serve(server, listen, say))
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def _serve(server: uvicorn.Server, listen: Listen, say: Callable[[str], None]) -> None:
    try:
        await server.serve()
    except SystemExit:
        # How uvicorn says that the address cannot be had.
        say(f"{listen.shown} cannot be listened on (is it taken?): no console, no metrics")
    except OSError as error:
        say(f"{listen.shown} cannot be listened on: {error}")
