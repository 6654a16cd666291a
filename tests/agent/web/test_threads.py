"""Pages that take long are nobody else's matter."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.web.console import Console
from holdfast.agent.web.formats import FILTERS
from holdfast.agent.web.server import web
from holdfast.agent.web.view import Seen
from holdfast.paths import Paths
from holdfast.web.address import Listen
from tests.agent.web.conftest import COOKIE, KEY
from tests.namespace import Namespace

_PORT = 9473
ENTRY = {"number": 1, "state": "converged", "created": 1, "finished": 2, "files": [], "judged": ""}


@dataclass(slots=True)
class Still:
    """A loop that does nothing."""

    paths: Paths
    status: DaemonStatus = field(default_factory=DaemonStatus)
    hints: dict[str, int] = field(default_factory=dict)
    hints_lost: int = 0
    refused_calls: dict[tuple[str, str], int] = field(default_factory=dict)
    route_numbers: None = None

    def alive(self) -> bool:
        return True


async def _ask(path: str) -> asyncio.StreamWriter:
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", _PORT)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
    head = f"Host: 127.0.0.1:{_PORT}\r\nCookie: {COOKIE}={KEY}\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    await writer.drain()
    return writer


def test_pages_are_not_made_on_the_event_loop(
    netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netns.ip("link set lo up")
    made_in: list[str] = []
    monkeypatch.setattr(Seen, "generations", lambda _seen: [ENTRY])

    def noted(_seconds: float) -> str:
        made_in.append(threading.current_thread().name)
        return ""

    monkeypatch.setitem(FILTERS, "moment", noted)

    async def scene() -> None:
        async with web(Still(Paths(root)), Console(Listen("127.0.0.1", _PORT), KEY), print):
            writer = await _ask("/generations")
            async with asyncio.timeout(10):
                while not made_in:
                    await asyncio.sleep(0.01)
            writer.close()

    asyncio.run(scene())
    assert made_in[0].startswith("web")


def test_slow_pages_take_no_thread_that_deadlines_are_kept_in(
    netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netns.ip("link set lo up")
    begun, over = threading.Semaphore(0), threading.Event()

    def slow(_seen: Seen) -> list[dict[str, Any]]:
        begun.release()
        over.wait(20)
        return []

    monkeypatch.setattr(Seen, "generations", slow)

    async def scene() -> None:
        async with web(Still(Paths(root)), Console(Listen("127.0.0.1", _PORT), KEY), print):
            asked = [await _ask("/generations") for _ in range(40)]
            try:
                while not begun.acquire(blocking=False):
                    await asyncio.sleep(0.01)
                async with asyncio.timeout(10):
                    await asyncio.to_thread(lambda: None)
            finally:
                over.set()
                for writer in asked:
                    writer.close()

    asyncio.run(scene())
