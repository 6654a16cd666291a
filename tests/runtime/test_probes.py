"""Probes against real servers in a namespace: answers, silence, refusals, and the way they go."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address

import pytest

from holdfast.resources.uplinks.health_target import Target
from holdfast.runtime.probes import probe
from tests.namespace import Namespace

# What has to come, comes much sooner; what does not has been waited for long enough by SHORT_S.
LONG_S, SHORT_S = 30.0, 0.5
pytestmark = pytest.mark.usefixtures("ground")


def ask(target: Target, timeout: float = LONG_S) -> str:
    return asyncio.run(probe(target, timeout))


@pytest.fixture
def ground(netns: Namespace) -> Namespace:
    netns.ip("link set lo up")
    netns.veth("wan", "far", "192.0.2.1/24", "2001:db8::1/64")
    return netns


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1", "::1"])
def test_ping_answers(address: str) -> None:
    assert ask(Target("ping", ip_address(address))) == ""


@pytest.mark.parametrize("address", ["192.0.2.9", "2001:db8::9"])
def test_ping_without_an_answer(address: str) -> None:
    said = ask(Target("ping", ip_address(address), "wan"), SHORT_S)
    assert said == f"no answer from {address} within 0.5 s"


def test_ping_where_no_way_leads() -> None:
    assert ask(Target("ping", ip_address("198.51.100.1"))) == (
        "198.51.100.1: Network is unreachable"
    )


def test_ping_by_a_link_that_is_not_there() -> None:
    assert "No such device" in ask(Target("ping", ip_address("192.0.2.2"), "ppp9"))


def test_mark_picks_the_way(ground: Namespace) -> None:
    """Without the mark no way leads there; with it one does, at whose end nobody answers."""
    ground.ip("route add 198.51.100.0/24 via 192.0.2.2 table 100")
    ground.ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev wan")
    ground.ip("rule add fwmark 0x100 lookup 100")
    target = Target("ping", ip_address("198.51.100.1"))
    assert ask(target) == "198.51.100.1: Network is unreachable"
    marked = replace(target, mark=0x100)
    assert ask(marked, SHORT_S) == "no answer from 198.51.100.1 within 0.5 s"


def test_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ask(Target("tcp", ip_address("127.0.0.1"), port=port)) == ""
    said = ask(Target("tcp", ip_address("127.0.0.1"), port=port))
    assert said == "127.0.0.1: Connection refused"


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        # First: whoever asked goes on as soon as it is answered.
        self.server.hosts.append(self.headers["Host"])  # type: ignore[attr-defined]
        self.send_response({"/": 200, "/moved": 302, "/broken": 503}.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_said: object) -> None:
        """Nobody reads it."""


@contextmanager
def web() -> Iterator[http.server.HTTPServer]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    server.hosts = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_http() -> None:
    with web() as server:
        target = Target("http", ip_address("127.0.0.1"), port=server.server_port)
        assert ask(target) == ""
        assert ask(replace(target, path="/moved")) == ""
        assert ask(replace(target, path="/broken")) == "127.0.0.1/broken answered 503"
        assert ask(replace(target, path="/x", host="example.org")).endswith("answered 404")
        assert server.hosts[-1] == "example.org"  # type: ignore[attr-defined]
        assert server.hosts[0] == f"127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]


def test_http_that_is_something_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_say_hello, args=(server,))
        thread.start()
        target = Target("http", ip_address("127.0.0.1"), port=server.getsockname()[1])
        assert ask(target).endswith("did not answer in HTTP")
        thread.join()


def _say_hello(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1024)
        connection.sendall(b"220 mail.example.org\r\n")


def test_dns() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        target = Target(
            "dns", ip_address("127.0.0.1"), port=server.getsockname()[1], name="example.net"
        )
        for flags, said in (
            (0x8180, ""),  # no error, no record
            (0x8183, ""),  # no such name: the server works
            (0x8182, "127.0.0.1 could not answer: code 2"),
        ):
            thread = threading.Thread(target=_answer, args=(server, flags))
            thread.start()
            assert ask(target) == said
            thread.join()


def test_an_answer_that_waits_to_be_read_is_one() -> None:
    """Between the question and its timeout the process gets no core, as on a busy machine."""

    async def starved(target: Target) -> str:
        asked = asyncio.create_task(probe(target, SHORT_S))
        for _ in range(10):
            await asyncio.sleep(0)  # until it is sent
        busy.set()
        thread.join()  # the answer is there
        time.sleep(2 * SHORT_S)
        return await asked

    def answer_late() -> None:
        busy.wait()
        _answer(server, 0x8180)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        busy = threading.Event()
        thread = threading.Thread(target=answer_late)
        thread.start()
        target = Target("dns", ip_address("127.0.0.1"), port=port, name="example.net")
        assert asyncio.run(starved(target)) == ""


def _answer(server: socket.socket, flags: int) -> None:
    """First to a question nobody asked, which is passed over."""
    data, source = server.recvfrom(512)
    for identity in (bytes((data[0] ^ 1, data[1])), data[:2]):
        server.sendto(identity + flags.to_bytes(2, "big") + data[4:], source)
