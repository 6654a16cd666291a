"""Another program that adds and removes routes of its own without end, and now and then one of
ours."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field

from holdfast.engine.kinds.route import Nexthop, pack_key, template
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.routes.route_codec import Leg, created
from holdfast.host.netlink.socket import CREATE, EXCL, REQUEST, NetlinkSocket, Request
from tests.namespace import Namespace

_NEW, _DELETE = 24, 25
_DST, _OIF = 1, 4
_MAIN, _UNICAST, _LINK_SCOPE = 254, 1, 253
# As a routing daemon would call itself.
PROTOCOL = 99


@dataclass(slots=True)
class Storm:
    netns: Namespace
    dev: str = "far"
    own: str = "10.0.{}.0/24"
    each: int = 250  # added, and then removed, at once
    per_second: int = 5000
    protocol: int = PROTOCOL
    changes: int = 0
    expected: list[str] = field(default_factory=list)
    _sock: NetlinkSocket = field(default_factory=NetlinkSocket)
    _index: int = 0

    def __post_init__(self) -> None:
        self._index = read_names(self._sock).indexes[self.dev]
        if self.protocol == PROTOCOL:
            # These stay.
            assert not self._send(_NEW, CREATE | EXCL, range(60_000, 60_100))
        self.expected = self.left()

    def blow(self, seconds: float) -> int:
        """Answers how many of our routes it deleted meanwhile."""
        started, deleted, rounds = time.monotonic(), 0, 0
        while (now := time.monotonic()) - started < seconds:
            if self.changes > (now - started) * self.per_second * 2:
                time.sleep(0.002)
                continue
            first = rounds % 100 * self.each
            self.churn(range(first, first + self.each))
            rounds += 1
            if rounds % 10 == 0:
                with suppress(AssertionError):  # it is not back yet
                    self.netns.ip(f"route del {self.own.format(deleted % 200)}")
                    deleted += 1
        return deleted

    def churn(self, numbers: range) -> None:
        assert not self._send(_NEW, CREATE | EXCL, numbers)
        assert not self._send(_DELETE, 0, numbers)
        self.changes += 2 * len(numbers)

    def close(self) -> None:
        self._sock.close()

    def left(self) -> list[str]:
        return sorted(self.netns.ip(f"route show proto {PROTOCOL}").splitlines())

    def count(self, protocol: int) -> int:
        return len(self.netns.ip(f"route show proto {protocol}").splitlines())

    def _send(self, kind: int, flags: int, numbers: range) -> object:
        header = struct.pack(
            "=BBBBBBBBI", socket.AF_INET, 24, 0, 0, _MAIN, self.protocol, _LINK_SCOPE, _UNICAST, 0
        )
        oif = attributes.u32(_OIF, self._index)
        return self._sock.transact(
            Request(kind, flags, header + attributes.attribute(_DST, _place(number)) + oif)
            for number in numbers
        )


def flood(net: str) -> None:
    """Routes with our tag, so that a daemon would hear of each, come and go; over so many legs in a
    network that is on a link that a few of them take all that the kernel keeps for somebody."""
    legs = [Leg(Nexthop(f"{net}{number}"), 0) for number in range(2, 252)]
    keys = [pack_key(bytes((172, 16, number, 0)), 24) for number in range(100)]
    shape = created(template(4), legs, 72)
    with closing(NetlinkSocket()) as sock:
        for kind, flags in ((_NEW, REQUEST | CREATE | EXCL), (_DELETE, REQUEST)):
            assert not sock.transact_blocks(shape.requests(kind, flags, keys, 10))


def _place(number: int) -> bytes:
    return ((172 << 24) + (number << 8)).to_bytes(4, "big")
