"""Hosts in network namespaces of their own, and the sockets they talk through.

A socket belongs to the namespace it was made in, wherever its maker is afterwards: one process
can be client, server and bystander without ever starting another.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.namespace import Namespace, private_namespaces

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

LONG = 120.0  # seconds: what has to come, comes much sooner
SHORT = 0.6  # what a firewall drops never comes; the first retransmission is after a second


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@dataclass(frozen=True, slots=True)
class Host:
    namespace: int  # descriptor

    @contextmanager
    def inside(self) -> Iterator[Namespace]:
        before = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            _enter(self.namespace)
            yield Namespace()
        finally:
            _enter(before)
            os.close(before)

    def ip(self, *commands: str) -> None:
        with self.inside() as namespace:
            for command in commands:
                namespace.ip(command)

    def run(self, *command: str) -> str:
        with self.inside() as namespace:
            return namespace.run(*command)

    def set(self, **values: str) -> None:
        """Sysctls below net, with `__` for dots."""
        with self.inside():
            for name, value in values.items():
                Path("/proc/sys/net", *name.split("__")).write_text(value)

    def listen(self, address: str, port: int) -> socket.socket:
        with self.inside():
            made = socket.create_server((address, port), family=_family(address))
        made.settimeout(LONG)
        return made

    def datagrams(self, address: str, port: int) -> socket.socket:
        with self.inside():
            made = socket.socket(_family(address), socket.SOCK_DGRAM)
        made.bind((address, port))
        made.settimeout(LONG)
        return made

    def connect(
        self, address: str, port: int, *, source: tuple[str, int] | None = None, wait: float = LONG
    ) -> socket.socket:
        with self.inside():
            made = socket.socket(_family(address))
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if source is not None:
                made.bind(source)
            made.settimeout(wait)
            made.connect((address, port))
        except BaseException:
            made.close()
            raise
        made.settimeout(LONG)
        return made

    def reaches(self, address: str, port: int) -> bool:
        """Whether a connection can be made; somebody has to listen there."""
        with suppress(TimeoutError):
            self.connect(address, port, wait=SHORT).close()
            return True
        return False

    def ping(self, address: str) -> None:
        """Waits for the answer to an echo request."""
        six = ":" in address
        protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
        with self.inside():
            made = socket.socket(_family(address), socket.SOCK_RAW, protocol)
        with made:
            made.settimeout(LONG)
            # 0xf7ff - 7: the checksum of an IPv4 echo request whose only other word is 7.
            made.sendto(struct.pack("!BBHHH", 128 if six else 8, 0, 0xF7F8, 7, 0), (address, 0))
            while made.recv(64)[0 if six else 20] != (129 if six else 0):
                pass

    def wire(self, ifname: str) -> socket.socket:
        """Everything that passes an interface, as it is on the wire."""
        with self.inside():
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            made.bind((ifname, 3))
        made.settimeout(LONG)
        return made


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@contextmanager
def new_host() -> Iterator[Host]:
    with private_namespaces() as namespace:
        descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
        namespace.ip("link set lo up")
    try:
        host = Host(descriptor)
        # Link-local addresses that can be used at once.
        host.set(ipv6__conf__default__accept_dad="0")
        yield host
    finally:
        os.close(descriptor)


def handshake_mss(wire: socket.socket, *, ack: bool) -> int:
    """The MSS option of the next SYN, or SYN-ACK, on a wire; -1 where it has none."""
    while True:
        frame = wire.recv(2048)
        kind, packet = struct.unpack_from("!H", frame, 12)[0], frame[14:]
        if kind == 0x0800 and packet[9] == 6:
            segment = packet[(packet[0] & 15) * 4 :]
        elif kind == 0x86DD and packet[6] == 6:
            segment = packet[40:]
        else:
            continue
        if segment[13] & 0x12 == (0x12 if ack else 0x02):
            return _mss(segment[20 : (segment[12] >> 4) * 4])


def _mss(options: bytes) -> int:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == 2:
            return int(struct.unpack_from("!H", options, at + 2)[0])
        at += options[at + 1]
    return -1
