"""Traffic through a router whose tables are replaced all the while: nothing of it is lost, and
nothing gets through that should not."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.nft import nft_table
from holdfast.paths import Paths
from tests import namespace
from tests.child import in_child, kill
from tests.host.nft.nft_scene import Scene, verbs
from tests.namespace import Namespace

REPLACED = 40
WAIT_S = 30.0
_CLONE_NEWNET = 0x40000000
# The router is .1 on both sides: the client reaches the server by an address of the router.
_NAT = """
    chain pre {{
        type nat hook prerouting priority -100;
        ip daddr 10.1.0.1 tcp dport 8080 counter dnat to 10.2.0.2:80
        ip daddr 10.1.0.1 udp dport 8080 dnat to 10.2.0.2:80
    }}
    chain number_{number} {{ accept; }}
"""
_FILTER = """
    set open {{
        type ipv4_addr . inet_service; elements = {{ 10.2.0.2 . 80, 10.9.9.9 . {number} }}
    }}
    chain forward {{
        type filter hook forward priority 0; policy accept;
        ct state established accept
        ip daddr . th dport @open accept
        drop
    }}
"""


def _table(name: str, body: str, number: int) -> Artifact:
    return nft_table("inet", f"holdfast_{name}", body.format(number=number))


@contextmanager
def _host(name: str, network: str, work: Callable[[], None]) -> Iterator[None]:
    """A child in a network of its own behind the router's link `name`; it works once it has its
    link and address, and is ended with the test."""
    ready, is_ready = os.pipe()
    go, may_go = os.pipe()

    def child() -> None:
        namespace._call("unshare", _CLONE_NEWNET)
        os.write(is_ready, b"x")
        os.read(go, 1)
        inside = Namespace()
        inside.ip(f"link set dev far-{name} up")
        inside.ip("link set lo up")
        inside.ip(f"addr add {network}.2/24 dev far-{name}")
        inside.ip(f"route add default via {network}.1")
        work()

    pid = in_child(child)
    try:
        os.read(ready, 1)
        router = Namespace()
        router.ip(f"link add {name} type veth peer name far-{name} netns {pid}")
        router.ip(f"addr add {network}.1/24 dev {name}")
        router.ip(f"link set {name} up")
        os.write(may_go, b"x")
        yield
    finally:
        kill(pid)
        for descriptor in (ready, is_ready, go, may_go):
            os.close(descriptor)


def _serve(listening: int, strays: int) -> None:
    """Echoes what comes to port 80; tells of whatever comes to another."""
    tcp = socket.create_server(("10.2.0.2", 80))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("10.2.0.2", 80))
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("10.2.0.2", 81))
    os.write(listening, b"x")
    connections: list[socket.socket] = []
    while True:
        for one in select.select([tcp, udp, closed, *connections], [], [])[0]:
            if one is tcp:
                connections.append(tcp.accept()[0])
            elif one is udp:
                data, sender = udp.recvfrom(100)
                udp.sendto(data, sender)
            elif one is closed:
                closed.recv(100)
                os.write(strays, b"!")
            else:
                one.sendall(one.recv(100))


def _use(start: int, stop: int, report: int) -> None:
    """One connection and one row of datagrams, each answered before the next goes out; and between
    them a knock at the closed port. Until told to stop."""
    os.read(start, 1)
    tcp = socket.create_connection(("10.1.0.1", 8080), timeout=WAIT_S)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.settimeout(WAIT_S)  # nothing is sent twice: what does not come back is lost
    udp.connect(("10.1.0.1", 8080))
    knock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    count = 0
    os.write(report, b"x")
    while not select.select([stop], [], [], 0)[0]:
        count += 1
        message = b"%09d" % count
        for flow in (tcp, udp):
            flow.sendall(message)
            answer = flow.recv(100)
            if answer != message:
                raise AssertionError(f"{answer!r} came back for {message!r}")
        knock.sendto(message, ("10.2.0.2", 81))
    os.write(report, b"%d" % count)


@pytest.mark.usefixtures("netns")
def test_no_packet_of_a_running_flow_is_lost(root: Path) -> None:
    scene = Scene(Paths(root))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    first = (_table("nat", _NAT, 0), _table("filter", _FILTER, 0))
    assert scene.apply(*first).converged
    listening, is_listening = os.pipe()
    stray, strays = os.pipe()
    report, reports = os.pipe()
    stopped, stop = os.pipe()
    os.set_blocking(stray, False)
    with (
        _host("lan", "10.2.0", lambda: _serve(is_listening, strays)),
        _host("wan", "10.1.0", lambda: _use(listening, stopped, reports)),
    ):
        assert _answer(report) == b"x"
        for number in range(1, REPLACED + 1):
            tables = (_table("nat", _NAT, number), _table("filter", _FILTER, number))
            assert verbs(scene.apply(*tables)) == ["update", "update"]
        os.write(stop, b"x")
        exchanged = int(_answer(report))
        assert exchanged > REPLACED
        with pytest.raises(BlockingIOError):
            os.read(stray, 1)
    for descriptor in (listening, is_listening, stray, strays, report, reports, stopped, stop):
        os.close(descriptor)


def _answer(descriptor: int) -> bytes:
    assert select.select([descriptor], [], [], WAIT_S)[0], "the flow has stopped"
    return os.read(descriptor, 100)
