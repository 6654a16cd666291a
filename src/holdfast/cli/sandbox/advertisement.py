"""A router solicitation and the advertisement that answers it (RFC 4861, RFC 8106)."""

from __future__ import annotations

import socket
import struct
import time
from ipaddress import IPv6Address, IPv6Network

from holdfast.dataclass import dataclass
from holdfast.runtime.probes import let_in

_SOLICITATION, _ADVERTISEMENT = 133, 134
_PREFIX, _MTU, _RDNSS = 3, 5, 25
_ALL_ROUTERS = "ff02::2"


@dataclass(frozen=True, slots=True)
class Advertisement:
    router: str  # link-local address
    lifetime_s: int  # as a default router; 0: it is none
    managed: bool
    other: bool
    mtu: int
    prefixes: tuple[IPv6Network, ...]
    dns: tuple[IPv6Address, ...]


def ask(ifname: str, timeout: float) -> Advertisement | None:
    index = socket.if_nametoindex(ifname)
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        let_in(sock, _ADVERTISEMENT)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, ifname.encode())
        # Others are told apart from neighbours by it: a router on the link has lost none.
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(min(left, 1.0))
            try:
                sock.sendto(bytes((_SOLICITATION,)) + bytes(7), (_ALL_ROUTERS, 0, 0, index))
                data, source = sock.recvfrom(2048)
            except TimeoutError:
                continue
            except OSError:
                # The link-local address is still being checked for duplicates.
                time.sleep(0.2)
                continue
            if len(data) >= 16:
                return _read(data, source[0].partition("%")[0])
    return None


def _read(data: bytes, router: str) -> Advertisement:
    flags = data[5]
    (lifetime,) = struct.unpack_from("!H", data, 6)
    mtu, prefixes, dns = 0, [], []
    at = 16
    while at + 8 <= len(data) and data[at + 1]:
        kind, size = data[at], data[at + 1] * 8
        option = data[at : at + size]
        if kind == _PREFIX and len(option) == 32:
            prefixes.append(IPv6Network((option[16:32], option[2]), strict=False))
        elif kind == _MTU and len(option) == 8:
            (mtu,) = struct.unpack_from("!I", option, 4)
        elif kind == _RDNSS:
            dns += [IPv6Address(option[o : o + 16]) for o in range(8, len(option) - 15, 16)]
        at += size
    return Advertisement(
        router, lifetime, bool(flags & 0x80), bool(flags & 0x40), mtu, tuple(prefixes), tuple(dns)
    )
