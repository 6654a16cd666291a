"""The web server beside the loop: without it, the router is kept as declared all the same."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.agent.events.stream import EventStream
from holdfast.agent.web.address import Listen
from holdfast.agent.web.app import STREAM, make_app
from holdfast.agent.web.view import Loop, Seen

_MOST_CONNECTIONS = 64
# Requests at once: those of connections that gave way are still being worked at for a moment.
_MOST_REQUESTS = 256
_THREADS = 4
_LAST_S = 1


class _Connection(H11Protocol):
    """Where there are as many as may be, the one that has waited longest gives way: whoever opens
    connections and says nothing, or does not read, keeps nobody from health and metrics, nor takes
    descriptors that passes need. Streams have a limit of their own."""

    since: float = 0.0  # when it was made, or answered last

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        known = (one for one in self.connections if isinstance(one, _Connection))
        there = [one for one in known if not one.transport.is_closing()]
        if len(there) >= _MOST_CONNECTIONS:
            waiting = (one for one in there if not one.streams)
            # What it was sent and did not take is not waited for.
            min(waiting, key=lambda one: one.since).transport.abort()
        super().connection_made(transport)
        self.since = self.loop.time()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.since = self.loop.time()

    @property
    def streams(self) -> bool:
        under_way = self.cycle is not None and not self.cycle.response_complete
        return under_way and self.scope["path"] == STREAM


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the daemon's."""
        yield


@asynccontextmanager
async def web(loop: Loop, listen: Listen, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Answers while the body runs; what keeps it from that is said once."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # Of its own: readers must not take the threads that deadlines are kept in.
    threads = ThreadPoolExecutor(_THREADS, "web")
    app = make_app(Seen(loop, EventStream(loop.paths, threads)), listen)
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
            http=_Connection,
            ws="none",
            # As many are taken from the kernel at once, before any of them gives way.
            backlog=_MOST_CONNECTIONS,
            limit_concurrency=_MOST_REQUESTS,
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
        threads.shutdown(wait=False, cancel_futures=True)


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
