"""Connections to the two sockets, passed on to the server's own ones.

gRPC takes every connection there is, until there is no descriptor left for anybody else; and it
binds its sockets itself: it takes neither one that listens already, as the service manager's does,
nor a connection that somebody else accepted. So bytes go through here, in both directions, and here
is decided who gives way.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import SupportsIndex

from holdfast.api import limits, sockets
from holdfast.dataclass import dataclass, field

_PIECE_BYTES = 64 << 10


@dataclass(slots=True, eq=False)
class Relay:
    """While it is paused, and after its end, callers wait in the kernel's queue. The listener may
    belong to the service manager as well: it is closed here, and never shut down."""

    listener: socket.socket
    place: str  # of the server's own socket
    most: int = limits.MAX_CONNECTIONS
    _links: dict[asyncio.Task[None], _Link] = field(default_factory=dict)
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
        if len(self._links) >= self.most and not self._make_room(loop.time()):
            self._wait(limits.ROOM_S)
            return
        try:
            taken, _ = self.listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:  # there is no room for another descriptor
            self._wait(limits.NO_ROOM_S)
            return
        link = _Link(taken, sockets.user(taken), loop.time())
        task = loop.create_task(link.run(self.place))
        self._links[task] = link
        task.add_done_callback(self._ended)

    def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.listener)
        loop.call_later(seconds, self._watch)

    def _make_room(self, now: float) -> bool:
        """Ends one that says nothing: of the user who has most of them, so that nobody takes all
        the room there is, and of these the one that never said anything, or the oldest."""
        silent = [(task, link) for task, link in self._links.items() if link.silent(now)]
        if not silent:
            return False
        users = Counter(link.user for link in self._links.values())
        task, _ = min(silent, key=lambda each: each[1].patience(users))
        del self._links[task]
        task.cancel()
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._links.pop(task, None)
        if not task.cancelled():
            task.exception()  # a connection that breaks is its caller's affair


class _ClientReader(StreamReader):
    """Tells at once that something came: what takes it out may have to wait for its turn."""

    def __init__(self, came: Callable[[], None]) -> None:
        super().__init__()
        self._came = came

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self._came()
        super().feed_data(data)


@dataclass(slots=True, eq=False)
class _Link:
    """One connection."""

    taken: socket.socket
    user: int
    heard: float  # when it was made, or something went through it last
    said: bool = False  # the client said something

    def silent(self, now: float) -> bool:
        if now - self.heard <= (limits.SILENT_S if self.said else limits.UNSAID_S):
            return False
        return not self._waits()

    def _waits(self) -> bool:
        """Whether the client has said something that this busy process has not read yet."""
        with suppress(OSError):
            return bool(self.taken.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return False

    def patience(self, users: Mapping[int, int]) -> tuple[int, bool, float]:
        return -users[self.user], self.said, self.heard

    async def run(self, place: str) -> None:
        """The server may answer after the client has said its last; when the server has, it is
        over."""
        from_client, to_client = await self._open()
        try:
            from_server, to_server = await asyncio.open_unix_connection(place)
            asking = asyncio.create_task(self._ask(from_client, to_server))
            try:
                await self._pass_on(from_server, to_client)
            finally:
                asking.cancel()
                to_server.transport.abort()
            to_client.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(limits.GRACE_S):
                    await to_client.wait_closed()
        finally:
            to_client.transport.abort()

    async def _open(self) -> tuple[StreamReader, StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = _ClientReader(self._came)
        protocol = StreamReaderProtocol(reader)
        transport, _ = await loop.create_unix_connection(lambda: protocol, sock=self.taken)
        return reader, StreamWriter(transport, protocol, reader, loop)

    def _came(self) -> None:
        self.heard, self.said = asyncio.get_running_loop().time(), True

    async def _ask(self, from_client: StreamReader, to_server: StreamWriter) -> None:
        await self._pass_on(from_client, to_server)
        if from_client.exception() is not None:
            to_server.transport.abort()  # the client is gone, and does not wait for an answer

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Until there is no more; reads no further than the other side takes."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                self.heard = loop.time()
                writer.write(data)
                await writer.drain()
            writer.write_eof()
