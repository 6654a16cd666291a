"""`status` and `explain` say why a service does not run: which, how it ended, what it said last;
with a daemon and without."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.daemon import serve
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.host.services.service_passes import stage, until
from tests.lanes import needs_programs
from tests.namespace import Namespace

SERVER = ("IPv4DHCPServer", "lan", "{listenInterfaces: [wan], dns: {enabled: true}}")
PPPOE = ("PPPoEInterface", "isp", "{interface: wan, username: me, passwordFile: secret}")
FALLEN = re.compile(r"; service dnsmasq ended with status 2: dnsmasq: .*[Aa]ddress .*in use")


@pytest.fixture(autouse=True)
def scene(netns: Namespace, holdfast: Holdfast) -> Iterator[None]:
    needs_programs("dnsmasq", "pppd")
    netns.veth("wan0", "isp0")
    (holdfast.folder / "secret").write_text("hunter2\n")
    (holdfast.folder / "secret").chmod(0o600)
    with stage(holdfast.root):
        yield


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """Somebody else serves DNS."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("0.0.0.0", 53))  # noqa: S104 (of a namespace of its own)
        yield held


def told(holdfast: Holdfast, file: Path, resource: str) -> dict[str, Any]:
    found = holdfast.run("status", str(file), "-o", "json").json["resources"]
    (one,) = (each for each in found if each["resource"] == resource)
    return dict(one)


def test_a_port_that_is_taken(holdfast: Holdfast, taken: socket.socket) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, SERVER)
    assert holdfast.run("apply", str(file), "--yes").code == 1
    until(lambda: FALLEN.search(told(holdfast, file, "IPv4DHCPServer/lan")["reason"]), "it is told")
    done = holdfast.run("status", str(file))
    assert done.code == 1
    assert FALLEN.search(done.out), done.out
    taken.close()
    assert holdfast.run("apply", str(file), "--yes").code == 0
    done = holdfast.ok("status", str(file))
    assert "ended" not in done.out


def test_a_port_that_is_taken_beside_a_daemon(holdfast: Holdfast, taken: socket.socket) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, SERVER)
    holdfast.root.mkdir(exist_ok=True)
    with serve(holdfast.root, file) as running:
        until((holdfast.root / "run/holdfast/holdfast.sock").exists, "the socket")

        def reason() -> str:
            done = holdfast.run("status", str(file))
            return done.out if FALLEN.search(done.out) else ""

        until(reason, running.said())
        taken.close()
        until(lambda: holdfast.run("status", str(file)).code == 0, "it is repaired")
        assert "ended" not in holdfast.ok("status", str(file)).out


def test_what_waits_for_a_link_says_why_it_does_not_come(holdfast: Holdfast) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, PPPOE)
    holdfast.run("apply", str(file), "--yes")
    words = re.compile(r"; service pppoe-isp ended with status \d+: \S")
    until(lambda: words.search(told(holdfast, file, "PPPoEInterface/isp")["reason"]), "it is told")
    for said in (
        holdfast.run("status", str(file)).out,
        holdfast.run("explain", "PPPoEInterface/isp", str(file)).out,
    ):
        assert "service pppoe-isp ended with status" in said
        assert "hunter2" not in said
