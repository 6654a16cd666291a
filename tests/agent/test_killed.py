"""SIGKILL at random, under load, with traffic through the router: nothing is lost, and the next
daemon finishes what the last one began."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.firewall.hosts import LONG, Host, new_host
from tests.namespace import Namespace
from tests.safety.router_scene import document
from tests.uplinks.uplink_network import new_router

ROUNDS, SOAK_ROUNDS = 6, 200
PORT = 7
_IDENTITY = 7  # of the pings
SERVER, CLIENT = "198.51.100.2", "10.1.0.2"
LIST = 500
RESOURCES = {
    "Interface/lan": "{ifname: lan0}",
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 10.1.0.1/24}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 198.51.100.1/24}",
    "IPv4StaticAddress/other": "{interface: wan, address: 203.0.113.1/24}",
    "RoutingRule/marked": "{priority: 100, fwmark: 7, table: 100}",
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [10.1.0.0/24],"
    " translation: {type: interfaceAddress}}",
    "Sysctl/forward": '{key: net.ipv4.ip_forward, value: "1", persistent: true}',
    "RouteList/many": "{file: routes.txt}",
}
FOREIGN = "route add 10.98.0.0/16 dev wan0 proto 99"


def _echo(kind: int, number: int, checksum: int) -> bytes:
    return struct.pack("!BBHHH", kind, 0, checksum, _IDENTITY, number)


def _is_answer(packet: bytes, number: int) -> bool:
    """An answer that came late is none to this one. Past the IPv4 header, and its checksum."""
    told, expected = packet[20:], _echo(0, number, 0)
    return told[:2] == expected[:2] and told[4:] == expected[4:]


@dataclass(slots=True)
class Traffic:
    """Pings and a stream from the client to the server, without a pause."""

    client: Host
    server: Host
    sent: int = 0
    lost: list[int] = field(default_factory=list)
    streamed: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        with ExitStack() as stack:
            with self.client.inside():
                pinging = stack.enter_context(
                    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
                )
            pinging.connect((SERVER, 0))
            listener = stack.enter_context(self.server.listen(SERVER, PORT))
            stream = stack.enter_context(self.client.connect(SERVER, PORT))
            taken, _ = listener.accept()
            stack.enter_context(taken)
            taken.settimeout(LONG)
            threads = [
                threading.Thread(target=self._ping, args=(pinging,)),
                threading.Thread(target=self._stream, args=(stream, taken)),
            ]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._over.set()
                for thread in threads:
                    thread.join()

    def _ping(self, sock: socket.socket) -> None:
        sock.settimeout(LONG)
        while not self._over.wait(0.01):
            number = self.sent & 0xFFFF
            self.sent += 1
            try:
                sock.send(_echo(8, number, 0xFFFF - (0x0800 + _IDENTITY + number) % 0xFFFF))
                while not _is_answer(sock.recv(64), number):
                    pass
            except OSError:
                self.lost.append(self.sent)

    def _stream(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while not self._over.wait(0.002):
                near.sendall(bytes(1400))
                got = 0
                while got < 1400:
                    got += len(far.recv(1400 - got))
                self.streamed += 1


@pytest.fixture
def traffic(netns: Namespace, root: Path) -> Iterator[Traffic]:
    root.mkdir()
    assert not netns.ip("route show")
    with ExitStack() as stack:
        client, server = (stack.enter_context(new_host()) for _ in range(2))
        stack.enter_context(new_router())
        for link, host, address in (("lan0", client, CLIENT), ("wan0", server, SERVER)):
            netns.ip(f"link add {link} type veth peer name {link}p")
            netns.ip(f"link set {link}p netns /proc/{os.getpid()}/fd/{host.namespace}")
            netns.ip(f"link set {link} up")
            host.ip(f"link set {link}p up", f"addr add {address}/24 dev {link}p")
        client.ip("route add default via 10.1.0.1")
        netns.ip(FOREIGN)
        yield Traffic(client, server)


def routes(skip: int = 0) -> str:
    lines = (f"10.{20 + n // 250}.{n % 250}.0/24 via 198.51.100.9\n" for n in range(LIST - skip))
    return "".join(lines)


def put(root: Path, text: str) -> None:
    fresh = root / "routes.new"
    fresh.write_text(text)
    fresh.replace(root / "routes.txt")


def as_declared(netns: Namespace, root: Path) -> bool:
    wanted = (root / "routes.txt").read_text().count("\n")
    held = netns.ip("route show proto 72").count("\n")
    return (
        held == wanted
        and "fwmark 0x7" in netns.ip("rule show")
        and "203.0.113.1/24" in netns.ip("addr show dev wan0")
        and "masquerade" in netns.run("nft", "list", "ruleset")
    )


def settle(daemon: Daemon, netns: Namespace, root: Path) -> None:
    def settled() -> bool:
        assert daemon.process.poll() is None, daemon.said()
        return as_declared(netns, root)

    try:
        until(settled, "all is as declared")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{daemon.said()[-3000:]}") from None


def trouble(netns: Namespace, root: Path, dice: random.Random) -> None:
    """Something that has nothing to do with the traffic."""
    match dice.randrange(4):
        case 0:
            number = dice.randrange(LIST // 2)
            with suppress(AssertionError):
                netns.ip(f"route del 10.{20 + number // 250}.{number % 250}.0/24")
        case 1:
            with suppress(AssertionError):
                netns.ip("rule del priority 100")
        case 2:
            with suppress(AssertionError):
                netns.ip("addr del 203.0.113.1/24 dev wan0")
        case _:
            put(root, routes(dice.randrange(50)))


def kill_often(traffic: Traffic, netns: Namespace, root: Path, rounds: int) -> None:
    dice = random.Random(rounds)  # noqa: S311 (no secret)
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    put(root, routes())

    with serve(root, file) as daemon:
        settle(daemon, netns, root)
        assert daemon.end() == 0
    with traffic.flowing():
        for number in range(rounds):
            with serve(root, file) as daemon:
                settle(daemon, netns, root)
                end = time.monotonic() + dice.uniform(0, 0.5)
                while time.monotonic() < end:
                    trouble(netns, root, dice)
                daemon.signal(signal.SIGKILL)
                daemon.process.wait()
                assert "fault of Holdfast's" not in daemon.said()
            assert not traffic.lost, f"in round {number}"
            assert FOREIGN.split()[2] in netns.ip("route show proto 99")
        with serve(root, file) as daemon:
            settle(daemon, netns, root)
            assert daemon.end() == 0
    assert not traffic.lost
    assert traffic.sent > 10 * rounds
    assert traffic.streamed > 10 * rounds
    with Ledger.read(Paths(root)) as ledger:
        assert not ledger.check()
        assert ledger.generations()[0].state == "converged"


def test_killed_a_few_times(traffic: Traffic, netns: Namespace, root: Path) -> None:
    kill_often(traffic, netns, root, ROUNDS)


@pytest.mark.soak
def test_killed_two_hundred_times(
    traffic: Traffic, netns: Namespace, root: Path, request: pytest.FixtureRequest
) -> None:
    soak = "soak" in str(request.config.getoption("-m"))
    kill_often(traffic, netns, root, SOAK_ROUNDS if soak else 1)
