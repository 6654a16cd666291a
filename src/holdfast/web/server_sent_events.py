"""Events as they happen, for browsers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.web.pages import API

# Streams that are open at once; a browser takes one for each tab.
MOST_STREAMS = 16
STREAM = f"{API}/events/stream"
# A stream says something this often, so that one that nobody reads any more is noticed.
_BEAT_S = 15.0

E = TypeVar("E")


class ServerSentEvents(Generic[E]):
    """newest: the number of the newest event. read: those that a request wants after a number, and
    all to come. entry: one as a document, with its number as `sequence`; or what the reader was too
    slow for, as `lagged`."""

    def __init__(
        self,
        newest: Callable[[], Awaitable[int]],
        read: Callable[[Request, int], AsyncGenerator[E, None]],
        entry: Callable[[E], dict[str, Any]],
    ) -> None:
        self._newest = newest
        self._read = read
        self._entry = entry
        self._streams = 0

    async def respond(self, request: Request) -> Response:
        """After the number that the browser says it read last."""
        if self._streams >= MOST_STREAMS:
            return PlainTextResponse("too many streams are open\n", 503)
        after = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
        if not re.fullmatch(r"\d{1,18}", after):
            return PlainTextResponse("after: must be the number of an event\n", 400)
        # Taken at once: many may ask before the first of them reads anything.
        self._streams += 1
        try:
            # A number that was never given out is of a ledger that was here before. The browser
            # would ask with it for ever; it is told the newest number there is.
            newest = await self._newest()
        except BaseException:
            self._free()
            raise
        number = int(after) if int(after) <= newest else 0
        return _Held(self._pieces(self._read(request, number)), self._free)

    def _free(self) -> None:
        self._streams -= 1

    async def _pieces(self, reading: AsyncGenerator[E, None]) -> AsyncGenerator[str, None]:
        """What is not read waits where it is stored and nowhere else."""
        coming: asyncio.Future[E] = asyncio.ensure_future(anext(reading))
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=_BEAT_S)
                if not done:
                    yield ": still here\n\n"
                    continue
                entry = self._entry(coming.result())
                coming = asyncio.ensure_future(anext(reading))
                number = "event: lagged" if "lagged" in entry else f"id: {entry['sequence']}"
                yield f"{number}\ndata: {json.dumps(entry)}\n\n"
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await reading.aclose()


class _Held(StreamingResponse):
    """A stream that gives its place back, also where nobody ever read of it."""

    def __init__(self, pieces: AsyncGenerator[str, None], free: Callable[[], None]) -> None:
        super().__init__(pieces, media_type="text/event-stream")
        self._free = free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._free()
