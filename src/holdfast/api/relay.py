"""Connections to a listener that the service manager holds, passed on to the server's own socket.

gRPC binds its sockets itself: it takes neither one that listens already nor a connection that
somebody else accepted. So bytes go through here, in both directions.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from holdfast.api import limits
from holdfast.dataclass import dataclass, field

_PIECE_BYTES = 64 << 10


@dataclass(slots=True, eq=False)
class Relay:
    """While it is paused, and after its end, callers wait in the kernel's queue. The listener
    belongs to the service manager as well: it is closed here, and never shut down."""

    listener: socket.socket
    place: str  # of the server's own socket
    _links: set[asyncio.Task[None]] = field(default_factory=set)
    _open: bool = True

    def start(self) -> None:
        self._watch()

    def pause(self) -> None:
        """Takes no more; what is there goes on."""
        self._open = False
        asyncio.get_running_loop().remove_reader(self.listener)

    async def end(self) -> None:
        """Those that are left have a moment to take what was said to them last."""
        self.pause()
        if self._links:
            await asyncio.wait(self._links, timeout=limits.GRACE_S)
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        self.listener.close()

    def _watch(self) -> None:
        if self._open:
            asyncio.get_running_loop().add_reader(self.listener, self._accept)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            taken, _ = self.listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:  # there is no room for another descriptor
            loop.remove_reader(self.listener)
            loop.call_later(limits.NO_ROOM_S, self._watch)
            return
        link = loop.create_task(_link(taken, self.place))
        self._links.add(link)
        link.add_done_callback(self._ended)
        if len(self._links) >= limits.MAX_CONNECTIONS:
            loop.remove_reader(self.listener)

    def _ended(self, link: asyncio.Task[None]) -> None:
        self._links.discard(link)
        if not link.cancelled():
            link.exception()  # a connection that breaks is its caller's affair
        self._watch()


async def _link(taken: socket.socket, place: str) -> None:
    """One connection. The server may answer after the client has said its last; when the server
    has, it is over."""
    from_client, to_client = await asyncio.open_unix_connection(sock=taken)
    try:
        from_server, to_server = await asyncio.open_unix_connection(place)
        asking = asyncio.create_task(_ask(from_client, to_server))
        try:
            await _pass_on(from_server, to_client)
        finally:
            asking.cancel()
            to_server.transport.abort()
        to_client.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(limits.GRACE_S):
                await to_client.wait_closed()
    finally:
        to_client.transport.abort()


async def _ask(from_client: StreamReader, to_server: StreamWriter) -> None:
    await _pass_on(from_client, to_server)
    if from_client.exception() is not None:
        to_server.transport.abort()  # the client is gone, and does not wait for an answer


async def _pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    """Until there is no more; reads no further than the other side takes."""
    with suppress(OSError):
        while data := await reader.read(_PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
