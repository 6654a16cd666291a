"""The layout of a site, and its pages: each document is shown as HTML and told as JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from holdfast import __version__
from holdfast.errors import HoldfastError, Refused

_HERE = Path(__file__).parent
API = "/api/v1"
STATIC = "/static"
# Browsers ask for this one whatever the page says.
ICON = "/favicon.ico"

T = TypeVar("T")
Document = Callable[[Request], Awaitable[dict[str, Any]]]
Endpoint = Callable[[Request], Awaitable[Response]]


class Pages:
    """templates: the site's own, beside those that every site has. filters: what they need,
    `moment`, `hour` and `event_look` for rows of events. navigation: paths and their names.
    machine: whose clock the times are of."""

    def __init__(
        self,
        templates: Path,
        threads: Executor | None,
        filters: Mapping[str, Callable[..., Any]],
        navigation: Sequence[tuple[str, str]],
        machine: str,
    ) -> None:
        self._threads = threads
        self._templates = Environment(
            loader=FileSystemLoader((templates, _HERE / "templates")),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(filters)
        self._templates.globals.update(
            version=__version__,
            zone=lambda: time.strftime("%Z"),
            navigation=navigation,
            machine=machine,
        )

    def text(self, template: str, /, **found: object) -> str:
        return self._templates.get_template(template).render(**found)

    def pair(self, path: str, template: str, document: Document, told_at: str = "") -> list[Route]:
        """A page, and the same as JSON at `told_at` below the API, which is mostly its path."""
        return [
            Route(path, self._page(template, document)),
            Route(f"{API}{told_at or path}", self._json(document)),
        ]

    def site(self, routes: Sequence[BaseRoute]) -> Starlette:
        """These, and what every page is dressed in."""
        dress = (Route(ICON, _icon), Mount(STATIC, StaticFiles(directory=_HERE / "static")))
        return Starlette(routes=[*routes, *dress], exception_handlers={HoldfastError: _told})

    async def in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _page(self, template: str, document: Document) -> Endpoint:
        async def respond(request: Request) -> Response:
            found = await document(request)
            path = request.url.path
            # Ten thousand resources take a second, in which nothing else would get its turn.
            text = await self.in_thread(lambda: self.text(template, path=path, **found))
            return Response(text, media_type="text/html")

        return respond

    def _json(self, document: Document) -> Endpoint:
        async def respond(request: Request) -> Response:
            return await self.in_thread(JSONResponse, await document(request))

        return respond


async def _icon(_request: Request) -> Response:
    return FileResponse(_HERE / "static/icon.svg", media_type="image/svg+xml")


async def _told(_request: Request, error: Exception) -> Response:
    """What is not there, or what cannot be told now: the ledger cannot be read."""
    return PlainTextResponse(f"{error}\n", 404 if isinstance(error, Refused) else 503)
