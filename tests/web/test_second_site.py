"""A site that is not the console, made of what all pages share."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Route

from holdfast.errors import HoldfastError, Refused
from holdfast.web.address import Listen
from holdfast.web.guard import Door, Guard
from holdfast.web.pages import Pages
from holdfast.web.server import bound, serving
from holdfast.web.server_sent_events import STREAM, ServerSentEvents
from tests.namespace import Namespace

LISTEN = Listen("127.0.0.1", 9500)
KEY, COOKIE = "a-key-of-its-own", "nodes-9500"
NODES = '{% extends "page.html" %}{% block main %}<h1>{{ nodes }} nodes</h1>{% endblock %}'


async def nodes(request: Request) -> dict[str, Any]:
    wanted = request.query_params.get("of", "")
    if wanted == "nowhere":
        raise Refused("there is no such place")
    if wanted == "broken":
        raise HoldfastError("the database is away")
    return {"nodes": 7}


async def newest() -> int:
    return 3


async def events(_request: Request, after: int) -> AsyncGenerator[int, None]:
    for number in range(after + 1, 5):
        yield number
    await asyncio.sleep(60)


def entry(number: int) -> dict[str, Any]:
    return {"sequence": number} if number < 4 else {"lagged": number}


def site(folder: Path) -> Guard:
    (folder / "nodes.html").write_text(NODES)
    (folder / "closed.html").write_text("Log in{% if wrong %} again{% endif %}")
    (folder / "opened.html").write_text("Welcome")
    pages = Pages(folder, None, dict.fromkeys(("moment", "hour", "event_look"), str), [], "manager")
    stream = Route(STREAM, ServerSentEvents(newest, events, entry).respond)
    app = pages.site([*pages.pair("/nodes", "nodes.html", nodes), stream])
    door = Door(pages, app, COOKIE, KEY.__eq__, public=("/healthz",), needed="log in first")
    return Guard(door, LISTEN.names)


def get(path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(LISTEN.host, LISTEN.port, timeout=20)
    try:
        method = headers.pop("method", "GET")
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        if path == STREAM and answer.status == 200:
            text = "".join(answer.readline().decode() for _ in range(6))
        else:
            text = answer.read().decode()
        return answer.status, text, dict(answer.headers)
    finally:
        connection.close()


async def listening() -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection(LISTEN.host, LISTEN.port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                return


def served(folder: Path, look: Callable[[], None]) -> None:
    async def scene() -> None:
        with ThreadPoolExecutor(1) as visitor:
            async with serving(site(folder), LISTEN, bound(LISTEN)):
                await listening()
                await asyncio.get_running_loop().run_in_executor(visitor, look)

    asyncio.run(scene())


@pytest.fixture(autouse=True)
def loopback(netns: Namespace) -> None:
    netns.ip("link set lo up")


def test_a_page_and_its_document_show_the_same(tmp_path: Path) -> None:
    def look() -> None:
        cookie = f"{COOKIE}={KEY}"
        status, text, headers = get("/nodes", Cookie=cookie)
        assert (status, headers["cache-control"]) == (200, "no-store")
        assert "<h1>7 nodes</h1>" in text
        assert "Times are the manager's own" in text
        assert json.loads(get("/api/v1/nodes", Cookie=cookie)[1]) == {"nodes": 7}
        assert get("/nodes?of=nowhere", Cookie=cookie)[:2] == (404, "there is no such place\n")
        assert get("/nodes?of=broken", Cookie=cookie)[:2] == (503, "the database is away\n")
        assert get("/static/page.css")[0] == 200

    served(tmp_path, look)


def test_who_is_let_in(tmp_path: Path) -> None:
    def look() -> None:
        assert get("/nodes")[:2] == (403, "Log in")
        assert get("/nodes", Cookie=f"{COOKIE}=other")[:2] == (403, "Log in again")
        assert get("/api/v1/nodes")[:2] == (403, "log in first\n")
        assert get("/nodes", Host="elsewhere:9500")[0] == 421
        assert get("/nodes", method="POST")[0] == 405
        status, text, headers = get(f"/?key={KEY}")
        assert (status, text) == (200, "Welcome")
        assert headers["set-cookie"].startswith(f"{COOKIE}={KEY};")

    served(tmp_path, look)


def test_events_after_the_one_that_was_read(tmp_path: Path) -> None:
    def look() -> None:
        _, text, _ = get(STREAM, Cookie=f"{COOKIE}={KEY}", **{"Last-Event-ID": "2"})
        assert text == 'id: 3\ndata: {"sequence": 3}\n\nevent: lagged\ndata: {"lagged": 4}\n\n'

    served(tmp_path, look)
