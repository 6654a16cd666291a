"""Paths, and what is answered there. All of it is read, none of it changes anything."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast import __version__
from holdfast.agent.events.log import Filter
from holdfast.agent.stories import event as event_story
from holdfast.agent.web.address import Listen
from holdfast.agent.web.formats import FILTERS, hour
from holdfast.agent.web.metrics import Metrics
from holdfast.agent.web.view import Seen
from holdfast.errors import HoldfastError, Refused

_HERE = Path(__file__).parent
_PAGE = 200
# Streams that are open at once; a browser takes one for each tab.
MOST_STREAMS = 16
_API = "/api/v1"
STREAM = f"{_API}/events/stream"
# A stream says something this often, so that one that nobody reads any more is noticed.
_BEAT_S = 15.0

# Nothing from elsewhere is loaded, and no page of others may frame or read these.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def make_app(seen: Seen, listen: Listen) -> ASGIApp:
    site = _Site(seen)
    routes = [
        Route("/", site.page("overview.html", site.overview)),
        Route("/plan", site.page("plan.html", site.plan)),
        Route("/events", site.page("events.html", site.events)),
        Route("/generations", site.page("generations.html", site.generations)),
        Route("/generations/{number:int}", site.page("generation.html", site.generation)),
        Route(
            "/generations/{before:int}/{after:int}", site.page("generation.html", site.comparison)
        ),
        Route(f"{_API}/status", site.document(site.overview)),
        Route(f"{_API}/plan", site.document(site.plan)),
        Route(f"{_API}/events", site.document(site.events)),
        Route(STREAM, site.stream),
        Route(f"{_API}/generations", site.document(site.generations)),
        Route(f"{_API}/generations/{{number:int}}", site.document(site.generation)),
        Route(f"{_API}/generations/{{before:int}}/{{after:int}}", site.document(site.comparison)),
        Route("/metrics", site.metrics),
        Route("/healthz", site.healthz),
        Route("/readyz", site.readyz),
        # Browsers ask for this one whatever the page says.
        Route("/favicon.ico", _icon),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
    return _Guard(Starlette(routes=routes, exception_handlers={HoldfastError: _told}), listen)


async def _icon(_request: Request) -> Response:
    return FileResponse(_HERE / "static/icon.svg", media_type="image/svg+xml")


async def _told(_request: Request, error: Exception) -> Response:
    """What is not there, or what cannot be told now: the ledger cannot be read."""
    return PlainTextResponse(f"{error}\n", 404 if isinstance(error, Refused) else 503)


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


class _Guard:
    """Only readers, and only those that call this machine by its name."""

    def __init__(self, app: ASGIApp, listen: Listen) -> None:
        self._app = app
        self._names = listen.names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        named = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        if named not in self._names:
            refused = PlainTextResponse("this is not a name of this address\n", 421)
            await refused(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            await PlainTextResponse("nothing can be changed here\n", 405)(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *given]}
            await send(message)

        await self._app(scope, receive, guarded)


T = TypeVar("T")
Answer = Callable[[Request], Awaitable[dict[str, Any]]]
Endpoint = Callable[[Request], Awaitable[Response]]


class _Site:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._metrics = Metrics(seen)
        self._streams = 0
        self._pages = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters.update(FILTERS)
        self._pages.globals.update(version=__version__, zone=lambda: time.strftime("%Z"))

    def page(self, template: str, answer: Answer) -> Endpoint:
        async def respond(request: Request) -> Response:
            found = await answer(request)
            made = self._pages.get_template(template)
            # Ten thousand resources take a second, in which nothing else would get its turn.
            text = await self._in_thread(lambda: made.render(path=request.url.path, **found))
            return Response(text, media_type="text/html")

        return respond

    def document(self, answer: Answer) -> Endpoint:
        async def respond(request: Request) -> Response:
            return await self._in_thread(JSONResponse, await answer(request))

        return respond

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        threads = self._seen.events.threads
        return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)

    async def overview(self, _request: Request) -> dict[str, Any]:
        found = await self._in_thread(self._seen.overview)
        return found | {"events": await self._seen.last_events(12, Filter())}

    async def plan(self, _request: Request) -> dict[str, Any]:
        return await self._in_thread(self._seen.plan)

    async def events(self, request: Request) -> dict[str, Any]:
        wanted = _filter(request)
        return {
            "events": await self._seen.last_events(_PAGE, wanted),
            "filter": {"kind": ",".join(sorted(wanted.kinds)), "about": wanted.subject},
        }

    async def generations(self, _request: Request) -> dict[str, Any]:
        return {"generations": await self._in_thread(self._seen.generations)}

    async def generation(self, request: Request) -> dict[str, Any]:
        number = int(request.path_params["number"])
        files = await self._in_thread(self._seen.generation, number)
        return {
            "title": f"Generation {number}",
            "files": [{"path": path, "text": text} for path, text in files],
            "diff": None,
        }

    async def comparison(self, request: Request) -> dict[str, Any]:
        before, after = int(request.path_params["before"]), int(request.path_params["after"])
        diff = await self._in_thread(self._seen.diff, before, after)
        return {"title": f"From generation {before} to {after}", "files": [], "diff": diff}

    async def metrics(self, _request: Request) -> Response:
        text = await self._in_thread(self._metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def healthz(self, _request: Request) -> Response:
        """Whether the loop gets round. What is wrong with the router is for the console to say."""
        if self._seen.loop.alive():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the loop does not get round: a pass hangs\n", 503)

    async def readyz(self, _request: Request) -> Response:
        if self._seen.ready:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("there was no pass of a valid configuration yet\n", 503)

    async def stream(self, request: Request) -> Response:
        """Events as they happen; after the number that the browser says it read last."""
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
            newest = await self._in_thread(self._seen.newest_event)
        except BaseException:
            self._free()
            raise
        number = int(after) if int(after) <= newest else 0
        return _Held(self._pieces(number, _filter(request)), self._free)

    def _free(self) -> None:
        self._streams -= 1

    async def _pieces(self, after: int, wanted: Filter) -> AsyncGenerator[str, None]:
        """What is not read waits in the ledger and nowhere else."""
        reading = self._seen.events.read(wanted, after, 0 if after else 1, follow=True)
        coming: asyncio.Future[Any] = asyncio.ensure_future(anext(reading))
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=_BEAT_S)
                if not done:
                    yield ": still here\n\n"
                    continue
                entry = event_story.entry(coming.result())
                coming = asyncio.ensure_future(anext(reading))
                if "lagged" in entry:
                    yield f"event: lagged\ndata: {json.dumps(entry)}\n\n"
                    continue
                # The router's clock, as in the rest of the page, wherever the browser is.
                shown = {"look": event_story.look(entry["kind"]), "hour": hour(entry["time"])}
                said = json.dumps(entry | shown)
                yield f"id: {entry['sequence']}\ndata: {said}\n\n"
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await reading.aclose()


def _filter(request: Request) -> Filter:
    query = request.query_params
    kinds = frozenset(filter(None, query.get("kind", "").split(",")))
    return Filter(kinds, query.get("about", ""), query.get("resource", ""))
