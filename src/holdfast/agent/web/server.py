"""The web server beside the loop: without it, the router is kept as declared all the same."""

from __future__ import annotations

import asyncio
import logging
import socket
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
    try:
        sock = _bound(listen)
    except OSError as error:
        say(f"{listen.shown} cannot be listened on ({error.strerror}): no console, no metrics")
        yield
        return
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
        sock.close()


def _bound(listen: Listen) -> socket.socket:
    """Here and not in uvicorn, which ends the process where it cannot."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((listen.host, listen.port))
    except OSError:
        sock.close()
        raise
    return sock
