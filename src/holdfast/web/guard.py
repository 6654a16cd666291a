"""Who is answered: readers that call this address by its name, and have the key."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.web.pages import API, ICON, STATIC, Pages

# Nothing from elsewhere is loaded, and no page of others may frame or read these.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Only readers, and only those that call this machine by one of its names."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = names

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


class Door:
    """Lets in whoever has the key. It comes in the address once and is kept as a cookie.

    opens: whether a key is the right one. public: paths that need none, besides what every page is
    dressed in. needed: what a program without the key is told; people get `closed.html`.
    """

    def __init__(
        self,
        pages: Pages,
        app: ASGIApp,
        cookie: str,
        opens: Callable[[str], bool],
        *,
        public: Collection[str],
        needed: str,
    ) -> None:
        self._pages = pages
        self._app = app
        self._cookie = cookie
        self._opens = opens
        self._public = frozenset((*public, ICON))
        self._needed = needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        request = Request(scope)
        given = request.query_params.get("key", "") if path == "/" else ""
        answer: ASGIApp = self._app
        if given:
            answer = self._welcome(given) if self._opens(given) else self._closed(path, True)
        elif not (path in self._public or path.startswith(f"{STATIC}/")):
            kept = request.cookies.get(self._cookie, "")
            if not self._opens(kept):
                answer = self._closed(path, bool(kept))
        await answer(scope, receive, send)

    def _welcome(self, key: str) -> Response:
        """A page that goes on by itself, and no redirect: after one that somebody else's page or a
        file led to, a browser does not send a cookie of the same site."""
        opened = Response(self._pages.text("opened.html"), media_type="text/html")
        opened.set_cookie(self._cookie, key, httponly=True, samesite="strict", path="/")
        return opened

    def _closed(self, path: str, wrong: bool) -> Response:
        if path.startswith(API):
            return PlainTextResponse(f"{self._needed}\n", 403)
        return Response(self._pages.text("closed.html", wrong=wrong), 403, media_type="text/html")
