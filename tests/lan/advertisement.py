"""Asks for a router advertisement on a link and prints what it says, as JSON."""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from typing import Any

_SOLICIT, _ADVERT = 133, 134
_ALL_ROUTERS = "ff02::2"


def ask(link: str, tries: int = 20) -> dict[str, Any]:
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode())
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        sock.settimeout(1)
        for _ in range(tries):
            index = socket.if_nametoindex(link)
            try:
                sock.sendto(struct.pack("!BBHI", _SOLICIT, 0, 0, 0), (_ALL_ROUTERS, 0, 0, index))
                while (packet := sock.recv(4096))[0] != _ADVERT:
                    pass
            except OSError:  # nothing came, or the link has no address to ask from yet
                time.sleep(0.2)
                continue
            return _said(packet)
    raise SystemExit(f"no router advertisement on {link}")


def _said(packet: bytes) -> dict[str, Any]:
    flags, lifetime = packet[5], struct.unpack("!H", packet[6:8])[0]
    said: dict[str, Any] = {
        "managed": bool(flags & 0x80), "other": bool(flags & 0x40), "lifetime": lifetime,
        "prefixes": {}, "dns": [], "mtu": None,
    }  # fmt: skip
    rest = packet[16:]
    while rest:
        kind, size = rest[0], rest[1] * 8
        option, rest = rest[:size], rest[size:]
        if kind == 3:
            prefix = socket.inet_ntop(socket.AF_INET6, option[16:32])
            preferred = struct.unpack("!I", option[8:12])[0]
            said["prefixes"][f"{prefix}/{option[2]}"] = preferred
        elif kind == 5:
            said["mtu"] = struct.unpack("!I", option[4:8])[0]
        elif kind == 25:
            starts = range(8, size, 16)
            said["dns"] += [
                socket.inet_ntop(socket.AF_INET6, option[at : at + 16]) for at in starts
            ]
    return said


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1])))
