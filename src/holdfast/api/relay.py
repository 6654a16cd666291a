"""Connections to the two sockets, passed on to the server's own ones.

gRPC takes every connection there is, until there is no descriptor left for anybody else; and it
binds its sockets itself: it takes neither one that listens already, as the service manager's does,
nor a connection that somebody else accepted. So bytes go through here, in both directions, and here
is decided who gives way.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

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
        link = _Link(sockets.user(taken), loop.time())
        task = loop.create_task(link.run(taken, self.place))
        self._links[task] = link
        task.add_done_callback(self._ended)

    def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.listener)
        loop.call_later(seconds, self._watch)

    def _make_room(self, now: float) -> bool:
        """Ends one that says nothing: of the user who has most of them, so that nobody takes all
        the room there is, and of these the one that never said anything, or the oldest."""
        silent = [(task, one) for task, one in self._links.items() if one.silent(now)]
        if not silent:
            return False
        users = Counter(one.user for one in self._links.values())
        task, _ = min(silent, key=lambda each: each[1].patience(users))
        del self._links[task]
        task.cancel()
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._links.pop(task, None)
        if not task.cancelled():
            task.exception()  # a connection that breaks is its caller's affair


@dataclass(slots=True, eq=False)
class _Link:
    """One connection."""

    user: int
    heard: float  # when it was made, or something went through it last
    said: bool = False  # the client said something

    def silent(self, now: float) -> bool:
        return now - self.heard > (limits.SILENT_S if self.said else limits.UNSAID_S)

    def patience(self, users: Mapping[int, int]) -> tuple[int, bool, float]:
        return -users[self.user], self.said, self.heard

    async def run(self, taken: socket.socket, place: str) -> None:
        """The server may answer after the client has said its last; when the server has, it is
        over."""
        from_client, to_client = await asyncio.open_unix_connection(sock=taken)
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

    async def _ask(self, from_client: StreamReader, to_server: StreamWriter) -> None:
        await self._pass_on(from_client, to_server, asks=True)
        if from_client.exception() is not None:
            to_server.transport.abort()  # the client is gone, and does not wait for an answer

    async def _pass_on(
        self, reader: StreamReader, writer: StreamWriter, *, asks: bool = False
    ) -> None:
        """Until there is no more; reads no further than the other side takes."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                self.heard, self.said = loop.time(), self.said or asks
                writer.write(data)
                await writer.drain()
            writer.write_eof()
