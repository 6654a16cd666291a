"""The server of pages: its socket, and how many connections and requests there may be."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.web.address import Listen
from holdfast.web.server_sent_events import STREAM

_MOST_CONNECTIONS = 64
# Requests at once: those of connections that gave way are still being worked at for a moment.
_MOST_REQUESTS = 256
_LAST_S = 1
# linux/sockios.h and linux/if.h.
_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1
# By family: an address may be listened on before there is such a one. The module has no names for
# them (linux/in.h, linux/in6.h).
_FREEBIND = {
    socket.AF_INET: (socket.IPPROTO_IP, 15),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 78),
}


class _Connection(H11Protocol):
    """Where there are as many as may be, the one that has waited longest gives way: whoever opens
    connections and says nothing, or does not read, keeps nobody from health and metrics, nor takes
    descriptors that passes need. Streams have a limit of their own."""

    since: float = 0.0  # when it was made, or answered last

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        known = (other for other in self.connections if isinstance(other, _Connection))
        there = [other for other in known if not other.transport.is_closing()]
        if len(there) >= _MOST_CONNECTIONS:
            waiting = (other for other in there if not other.streams)
            # What it was sent and did not take is not waited for.
            min(waiting, key=lambda other: other.since).transport.abort()
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
        """Signals are the process's own."""
        yield


@asynccontextmanager
async def serving(app: ASGIApp, listen: Listen, sock: socket.socket) -> AsyncIterator[None]:
    """Answers on this socket while the body runs."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
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
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
        sock.close()


def bound(listen: Listen) -> socket.socket:
    """Here and not in uvicorn, which ends the process where it cannot. Raises OSError."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A loopback that is down, as in a new network namespace, may have no address (::1 has it
        # only while it is up). Whose it is to be set up is not for us to say.
        sock.setsockopt(*_FREEBIND[family], 1)
        sock.bind((listen.host, listen.port))
    except OSError:
        sock.close()
        raise
    return sock


def why_silent(listen: Listen) -> str:
    """Empty where it can be reached as things are now."""
    if _loopback_is_up():
        return ""
    return f"the loopback is down: {listen.shown} answers once it is up (`ip link set lo up`)"


def _loopback_is_up() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            request = struct.pack("16sH14x", b"lo", 0)
            (flags,) = struct.unpack("16xH14x", fcntl.ioctl(sock, _SIOCGIFFLAGS, request))
        except OSError:
            return True  # nobody can say
    return bool(flags & _IFF_UP)
