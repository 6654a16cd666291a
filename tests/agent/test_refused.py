"""A file that is valid and would do harm is not applied; the one before it stays in force."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.agent.street import until
from tests.namespace import Namespace
from tests.safety.router import document

LINK = {"Interface/wan": "{ifname: wan0}"}
ADDRESS = {**LINK, "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}"}
RULES = {f"RoutingRule/r{n}": f"{{priority: {100 + n}, fwmark: 7, table: 100}}" for n in range(20)}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    return root / "router.yaml"


def put(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


@contextmanager
def logged_in(connection: str) -> Iterator[None]:
    """Somebody's shell, as sshd starts it."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={**os.environ, "SSH_CONNECTION": connection},
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_the_way_in_of_an_operator_is_not_cut(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        with logged_in("192.0.2.9 50000 192.0.2.1 22"):
            put(file, document({**LINK, "RoutingRule/r": "{priority: 9, fwmark: 7, table: 100}"}))
            daemon.wait_for("is not applied: this would cut the connection from 192.0.2.9")
            assert "192.0.2.1/24" in netns.ip("addr show dev wan0")
            assert "fwmark" not in netns.ip("rule show")
            # What was in force before still is, and is held to.
            netns.ip("addr del 192.0.2.1/24 dev wan0")
            until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "repaired")
        # Once nobody would be cut off, it is applied.
        put(file, file.read_text() + "# again\n")
        until(lambda: "192.0.2.1/24" not in netns.ip("addr show dev wan0"), "the address is gone")
        until(lambda: "fwmark" in netns.ip("rule show"), "the rule")


def test_a_file_that_would_delete_most_of_it(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document({**ADDRESS, **RULES}))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        put(file, document(ADDRESS))
        daemon.wait_for("is not applied: 20 of")
        netns.ip("rule del priority 105")
        until(lambda: netns.ip("rule show").count("fwmark 0x7") == 20, "repaired")
        put(file, document({**ADDRESS, **dict(list(RULES.items())[:15])}))
        until(lambda: netns.ip("rule show").count("fwmark 0x7") == 15, "a few at a time")
        assert daemon.end() == 0
