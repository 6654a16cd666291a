"""The console's paths, and what is answered there. Nothing of it changes anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from holdfast.agent.web.console import Console
from holdfast.agent.web.formats import FILTERS, hour
from holdfast.agent.web.metrics import Metrics
from holdfast.agent.web.view import Seen
from holdfast.render import event as event_story
from holdfast.runtime.event_log import Filter, Missed
from holdfast.state.events import StoredEvent
from holdfast.web.guard import Door, Guard
from holdfast.web.pages import Pages
from holdfast.web.server_sent_events import STREAM, ServerSentEvents

_PAGE = 200
_NAVIGATION = (
    ("/", "Resources"),
    ("/plan", "Plan and drift"),
    ("/events", "Events"),
    ("/generations", "Generations"),
)
# What is there for monitors, and says how things are, not what they are.
_PUBLIC = ("/metrics", "/healthz", "/readyz")


def make_app(seen: Seen, console: Console) -> ASGIApp:
    pages = console_pages(seen.events.threads)
    door = Door(
        pages,
        pages.site(_Site(seen, pages).routes()),
        console.cookie,
        console.opens,
        public=_PUBLIC,
        needed="this needs the key that `holdfast console` tells",
    )
    return Guard(door, console.listen.names)


def console_pages(threads: Executor | None) -> Pages:
    return Pages(Path(__file__).parent / "templates", threads, FILTERS, _NAVIGATION, "router")


class _Site:
    def __init__(self, seen: Seen, pages: Pages) -> None:
        self._seen = seen
        self._pages = pages
        self._metrics = Metrics(seen)

    def routes(self) -> list[BaseRoute]:
        pair = self._pages.pair
        generation, comparison = (
            "/generations/{number:int}",
            "/generations/{before:int}/{after:int}",
        )
        stream = ServerSentEvents(self._newest, self._events_after, _live)
        return [
            *pair("/", "overview.html", self.overview, "/status"),
            *pair("/plan", "plan.html", self.plan),
            *pair("/events", "events.html", self.events),
            *pair("/generations", "generations.html", self.generations),
            *pair(generation, "generation.html", self.generation),
            *pair(comparison, "generation.html", self.comparison),
            Route(STREAM, stream.respond),
            Route("/metrics", self.metrics),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
        ]

    async def overview(self, _request: Request) -> dict[str, Any]:
        found = await self._pages.in_thread(self._seen.overview)
        return found | {"events": await self._seen.last_events(12, Filter())}

    async def plan(self, _request: Request) -> dict[str, Any]:
        return await self._pages.in_thread(self._seen.plan)

    async def events(self, request: Request) -> dict[str, Any]:
        wanted = _filter(request)
        return {
            "events": await self._seen.last_events(_PAGE, wanted),
            "filter": {"kind": ",".join(sorted(wanted.kinds)), "about": wanted.subject},
        }

    async def generations(self, _request: Request) -> dict[str, Any]:
        return {"generations": await self._pages.in_thread(self._seen.generations)}

    async def generation(self, request: Request) -> dict[str, Any]:
        number = int(request.path_params["number"])
        files = await self._pages.in_thread(self._seen.generation, number)
        return {
            "title": f"Generation {number}",
            "files": [{"path": path, "text": text} for path, text in files],
            "diff": None,
        }

    async def comparison(self, request: Request) -> dict[str, Any]:
        before, after = int(request.path_params["before"]), int(request.path_params["after"])
        diff = await self._pages.in_thread(self._seen.diff, before, after)
        return {"title": f"From generation {before} to {after}", "files": [], "diff": diff}

    async def metrics(self, _request: Request) -> Response:
        text = await self._pages.in_thread(self._metrics.text)
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

    async def _newest(self) -> int:
        return await self._pages.in_thread(self._seen.newest_event)

    def _events_after(
        self, request: Request, number: int
    ) -> AsyncGenerator[StoredEvent | Missed, None]:
        last = 0 if number else 1
        return self._seen.events.read(_filter(request), number, last, follow=True)


def _live(event: StoredEvent | Missed) -> dict[str, Any]:
    entry = event_story.entry(event)
    if "lagged" in entry:
        return entry
    # The router's clock, as in the rest of the page, wherever the browser is.
    return entry | {"look": event_story.look(entry["kind"]), "hour": hour(entry["time"])}


def _filter(request: Request) -> Filter:
    query = request.query_params
    kinds = frozenset(filter(None, query.get("kind", "").split(",")))
    return Filter(kinds, query.get("about", ""), query.get("resource", ""))
