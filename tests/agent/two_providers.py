"""A router with one client behind it and two providers, both of which lead to one server.

Each is in a namespace of its own, and the caller is in the router's. The server answers by the
second provider whatever it is asked by, so that a flow that changes its way goes on.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tests.firewall.hosts import LONG, Host, new_host
from tests.uplinks.uplink_network import LTE, WAN, new_router, policy

PORT = 7
SERVER = "198.51.100.1"
CHECK = "interval: 200ms, timeout: 100ms, healthyThreshold: 2, unhealthyThreshold: 2"
ROUTER = {
    "Interface/lan": "{ifname: lan0}",
    "Interface/wan": "{ifname: wan0}",
    "Interface/lte": "{ifname: wan1}",
    "HealthCheck/wan": f"{{target: 192.0.2.254, interface: wan, {CHECK}}}",
    "HealthCheck/lte": f"{{target: 203.0.113.254, interface: lte, {CHECK}}}",
    "IPv4DefaultRoutePolicy/default": policy(WAN, LTE),
}
_PKTINFO = (socket.IPPROTO_IP, 8)
_CUT = "table ip cut { chain c { type filter hook prerouting priority -300; iifname wan0p %s; }; }"


@dataclass(slots=True)
class TwoProviders:
    client: Host
    first: Host
    server: Host
    datagrams: socket.socket  # at the server
    listener: socket.socket
    uplinks: dict[int, str]  # link index at the server -> provider
    ports: Iterator[int] = field(default_factory=lambda: iter(range(2000, 32000)))

    def cut(self, what: str = "drop") -> None:
        """The first provider takes nothing more; with `ip protocol icmp drop`, no probes."""
        self.first.run("nft", f"add {_CUT % what}")

    def mend(self) -> None:
        self.first.run("nft", "delete table ip cut")

    def arrival(self, wait: float = LONG) -> tuple[bytes, str]:
        """The next datagram at the server, and over which provider it came."""
        self.datagrams.settimeout(wait)
        data, about, _, _ = self.datagrams.recvmsg(64, 256)
        return data, self.provider(about)

    def provider(self, about: Iterable[tuple[int, int, bytes]]) -> str:
        """Over whom a datagram came, by what the kernel tells of it."""
        found = next(said for level, kind, said in about if (level, kind) == _PKTINFO)
        return self.uplinks[struct.unpack_from("=i", found)[0]]

    def send(self) -> None:
        """A new flow of the client's."""
        with self.client.inside():
            self.send_inside()

    def send_inside(self) -> None:
        """The caller is in the client's namespace."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            # A port that the kernel picks may be that of an older flow, which has its way already.
            made.bind(("10.1.0.2", next(self.ports)))
            made.sendto(b"hello", (SERVER, PORT))

    def drain(self) -> None:
        self.datagrams.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.datagrams.recv(64)

    def way(self, wait: float = LONG) -> str:
        """Over which provider a new flow goes; "" where it does not arrive."""
        self.drain()
        self.send()
        with suppress(TimeoutError):
            return self.arrival(wait)[1]
        return ""

    def connect(self) -> Flow:
        near = self.client.connect(SERVER, PORT)
        far, _ = self.listener.accept()
        far.settimeout(LONG)
        return Flow(near, far)


@dataclass(slots=True)
class Flow:
    """An established connection."""

    near: socket.socket
    far: socket.socket

    def talk(self) -> None:
        for one, other in ((self.near, self.far), (self.far, self.near)):
            one.sendall(b"still here?")
            assert other.recv(64) == b"still here?"

    def close(self) -> None:
        self.near.close()
        self.far.close()


def until(true: Callable[[], bool], what: str) -> None:
    now = time.monotonic()
    deadline = now + 2 * LONG
    while not true():
        asked, now = now, time.monotonic()
        assert now < deadline, f"in vain: {what}"
        # A question that starts a program must not take the time of those it waits for.
        time.sleep(min(max(0.005, 4 * (now - asked)), 0.1))
        now = time.monotonic()


@contextmanager
def two_providers() -> Iterator[TwoProviders]:
    with ExitStack() as stack:
        client, first, second, server = (stack.enter_context(new_host()) for _ in range(4))
        router = stack.enter_context(new_router())
        for host in (first, second, server, router):
            host.set(
                ipv4__ip_forward="1",
                ipv4__conf__all__rp_filter="0",
                ipv4__conf__default__rp_filter="0",
            )
        _wire(router, "lan0", "10.1.0.1", client, "lan0p", "10.1.0.2")
        _wire(router, "wan0", "192.0.2.1", first, "wan0p", "192.0.2.254")
        _wire(router, "wan1", "203.0.113.1", second, "wan1p", "203.0.113.254")
        _wire(server, "up1", "10.8.1.2", first, "up1p", "10.8.1.1")
        _wire(server, "up2", "10.8.2.2", second, "up2p", "10.8.2.1")
        client.ip("route add default via 10.1.0.1")
        for host, net, back in ((first, "10.8.1", "192.0.2.1"), (second, "10.8.2", "203.0.113.1")):
            host.ip(f"route add {SERVER} via {net}.2", f"route add 10.1.0.0/24 via {back}")
        server.ip(
            f"addr add {SERVER}/32 dev lo",
            "route add 10.1.0.0/24 via 10.8.2.1",
            "route add 192.0.2.0/24 via 10.8.1.1",
            "route add 203.0.113.0/24 via 10.8.2.1",
        )
        datagrams = stack.enter_context(server.datagrams(SERVER, PORT))
        datagrams.setsockopt(*_PKTINFO, 1)
        listener = stack.enter_context(server.listen(SERVER, PORT))
        with server.inside():
            indexes = [socket.if_nametoindex(link) for link in ("up1", "up2")]
        uplinks = dict(zip(indexes, ("first", "second"), strict=True))
        yield TwoProviders(client, first, server, datagrams, listener, uplinks)


def _wire(near: Host, link: str, address: str, far: Host, peer: str, other: str) -> None:
    near.ip(
        f"link add {link} type veth peer name {peer}",
        f"link set {peer} netns /proc/{os.getpid()}/fd/{far.namespace}",
        f"link set {link} up",
        f"addr add {address}/24 dev {link}",
    )
    far.ip(f"link set {peer} up", f"addr add {other}/24 dev {peer}")
