"""A daemon beside the command line under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast


@contextmanager
def daemon(holdfast: Holdfast, file: Path) -> Iterator[Daemon]:
    holdfast.root.mkdir(exist_ok=True)
    with serve(holdfast.root, file) as running:
        socket = holdfast.root / "run/holdfast/holdfast.sock"
        until(socket.exists, "the socket")
        running.wait_for("read")
        until(lambda: holdfast.run("status", str(file)).code == 0, running.said())
        yield running
