"""A loopback that is down: what is served there waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.agent.web.console import Console
from holdfast.agent.web.server import web
from holdfast.paths import Paths
from holdfast.web.address import Listen
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.agent.web.conftest import KEY
from tests.agent.web.test_threads import Still
from tests.cli.conftest import HEAD
from tests.namespace import Namespace

PORT = 9474


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_is_served_once_the_loopback_is_up(netns: Namespace, root: Path, host: str) -> None:
    netns.ip("link set lo down")
    listen = Listen(host, PORT)
    said: list[str] = []

    async def scene() -> bytes:
        async with web(Still(Paths(root)), Console(listen, KEY), said.append):
            assert said == [
                f"the loopback is down: {listen.shown} answers once it is up (`ip link set lo up`)"
            ]
            netns.ip("link set lo up")
            async with asyncio.timeout(60):
                while True:
                    try:
                        reader, writer = await asyncio.open_connection(host, PORT)
                        break
                    except OSError:
                        await asyncio.sleep(0.01)
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: {listen.shown}\r\n\r\n".encode())
                answer = await reader.readline()
            writer.close()
            return answer

    assert asyncio.run(scene()).startswith(b"HTTP/1.1 ")


def test_the_command_says_that_nobody_answers(netns: Namespace, root: Path, tmp_path: Path) -> None:
    netns.ip("link set lo down")
    file = tmp_path / "router.yaml"
    file.write_text(HEAD.rstrip("\n") + " []\n")
    root.mkdir(exist_ok=True)
    with serve(root, file) as daemon:
        daemon.wait_for("read: 0 resources")
        until((root / "run/holdfast/holdfast.sock").exists, "the socket")
        for silent in (True, False):
            done = subprocess.run(
                [sys.executable, "-m", "holdfast", "--root", str(root), "console"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout.startswith("http://127.0.0.1:")
            assert ("warning: the loopback is down: 127.0.0.1:" in done.stderr) == silent
            netns.ip("link set lo up")


def test_a_port_that_is_taken_is_said(netns: Namespace, root: Path) -> None:
    netns.ip("link set lo up")
    said: list[str] = []

    async def scene() -> None:
        listen = Listen("127.0.0.1", PORT)
        async with web(Still(Paths(root)), Console(listen, KEY), said.append):
            await asyncio.sleep(0.1)
            async with web(Still(Paths(root)), Console(listen, KEY), said.append):
                pass

    asyncio.run(scene())
    assert said == [
        f"127.0.0.1:{PORT} cannot be listened on (Address already in use): no console, no metrics"
    ]
