"""A DHCPv4 client that asks for an offer and takes none: what a client on a LAN would get."""

from __future__ import annotations

import secrets
import socket
import struct
import time
from ipaddress import IPv4Address

from holdfast.dataclass import dataclass

_DISCOVER, _OFFER = 1, 2
_COOKIE = b"\x63\x82\x53\x63"
_MASK, _ROUTER, _DNS, _DOMAIN, _LEASE, _TYPE, _WANTED, _END = 1, 3, 6, 15, 51, 53, 55, 255
_HEAD = struct.Struct("!BBBBIHHIIII16s64s128s")
_ETHERNET_IPV4 = 0x0800


@dataclass(frozen=True, slots=True)
class Offer:
    address: IPv4Address
    prefix_length: int
    router: IPv4Address | None
    dns: tuple[IPv4Address, ...]
    domain: str
    lease_s: int


def ask(ifname: str, timeout: float) -> Offer | None:
    """None where nobody offers anything in time."""
    # A packet socket: the kernel sends nothing from an interface without an address otherwise.
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERNET_IPV4)) as sock:
        sock.bind((ifname, _ETHERNET_IPV4))
        mac = sock.getsockname()[4]
        number = secrets.randbits(32)
        sock.send(_frame(mac, _discover(mac, number)))
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                frame = sock.recv(2048)
            except TimeoutError:
                return None
            offer = _read(frame, number)
            if offer is not None:
                return offer
    return None


def _discover(mac: bytes, number: int) -> bytes:
    head = _HEAD.pack(1, 1, 6, 0, number, 0, 0x8000, 0, 0, 0, 0, mac, b"", b"")
    wanted = bytes((_MASK, _ROUTER, _DNS, _DOMAIN, _LEASE))
    options = bytes((_TYPE, 1, _DISCOVER, _WANTED, len(wanted))) + wanted + bytes((_END,))
    return head + _COOKIE + options


def _frame(mac: bytes, payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", 68, 67, 8 + len(payload), 0) + payload
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4
    )
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    return b"\xff" * 6 + mac + struct.pack("!H", _ETHERNET_IPV4) + head + udp


def _read(frame: bytes, number: int) -> Offer | None:
    packet = frame[14:]
    if len(packet) < 28 or packet[9] != 17:
        return None
    data = packet[(packet[0] & 0xF) * 4 + 8 :]
    if len(data) < _HEAD.size + 4 or data[_HEAD.size : _HEAD.size + 4] != _COOKIE:
        return None
    fields = _HEAD.unpack_from(data)
    if fields[0] != 2 or fields[4] != number:
        return None
    options = _options(data[_HEAD.size + 4 :])
    if options.get(_TYPE) != bytes((_OFFER,)):
        return None
    router = options.get(_ROUTER, b"")[:4]
    dns = options.get(_DNS, b"")
    mask = int.from_bytes(options.get(_MASK, b"\xff" * 4), "big")
    return Offer(
        IPv4Address(fields[8]),
        mask.bit_count(),
        IPv4Address(router) if len(router) == 4 else None,
        tuple(IPv4Address(dns[at : at + 4]) for at in range(0, len(dns) - 3, 4)),
        options.get(_DOMAIN, b"").decode(errors="replace").rstrip("\0"),
        int.from_bytes(options.get(_LEASE, b""), "big"),
    )


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 1 < len(data) and data[at] != _END:
        if data[at] == 0:
            at += 1
            continue
        size = data[at + 1]
        found[data[at]] = found.get(data[at], b"") + data[at + 2 : at + 2 + size]
        at += 2 + size
    return found
