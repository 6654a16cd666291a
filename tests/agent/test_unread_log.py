"""A log that nobody takes any more is no reason to end."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.runtime.log import Lines
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

LINK = {"Interface/wan": "{ifname: wan0}"}
ADDRESS = {**LINK, "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}"}


def there(netns: Namespace) -> bool:
    return "192.0.2.1/24" in netns.ip("addr show dev wan0")


@contextmanager
def logging_to(writer: int, root: Path) -> Iterator[subprocess.Popen[bytes]]:
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document(ADDRESS))
    argv = [sys.executable, "-m", "holdfast", "--root", str(root), "serve", str(file)]
    daemon = subprocess.Popen([*argv, "--listen", "none"], stdin=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    try:
        yield daemon
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(30) == 0
    finally:
        daemon.kill()
        daemon.wait()


def repairs(netns: Namespace, times: int) -> None:
    for _ in range(times):
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: there(netns), "repaired")


def test_whoever_read_the_log_is_gone(netns: Namespace, root: Path) -> None:
    netns.veth("wan0", "far0")
    reader, writer = os.pipe()
    with logging_to(writer, root):
        until(lambda: there(netns), "the first pass")
        os.close(reader)
        repairs(netns, 3)


def test_whoever_should_read_the_log_does_not(netns: Namespace, root: Path) -> None:
    """What no longer fits is lost and counted; once somebody reads again, that is said first."""
    netns.veth("wan0", "far0")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)  # full from the start
    with logging_to(writer, root):
        until(lambda: there(netns), "the first pass")
        repairs(netns, 3)
        assert os.read(reader, 4096) == b"x" * 4096
        said = ""
        while said.count("repaired") < 3:
            said += os.read(reader, 4096).decode()
    os.close(reader)


def test_more_than_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    kept = os.dup(2)
    os.dup2(writer, 2)
    try:
        lines = Lines(most=10)
        for number in range(100):
            lines.put(f"line {number}")
        os.read(reader, 4096)
        said = b""
        while b"were lost" not in said:
            said += os.read(reader, 4096)
    finally:
        os.dup2(kept, 2)
        for descriptor in (kept, reader, writer):
            os.close(descriptor)
    first, *others = said.decode().splitlines()
    assert first == "line 0"
    # One was on its way already when the queue filled.
    assert len(others) in (10, 11)
    assert "lines of the log were lost" in others[-1]
    assert capfd.readouterr().err == ""
