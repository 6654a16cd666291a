"""Everything a network namespace holds, read straight from the kernel, object by object.

An item is what can be compared: all that a writer chose, and nothing of the moment (timers, link
state, whether an address is a secondary). The kernel's own objects are left out.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import NetlinkSocket

_GETLINK, _GETADDR, _GETROUTE, _GETNEIGH, _GETRULE = 18, 22, 26, 30, 34
_PERMANENT_NEIGHBOUR = 0x80
_ROUTE_KERNEL, _ROUTE_RA = 2, 9
_ADDRESS_KERNEL = (1, 2, 3)  # loopback, router advertisement, link-local
_MOMENTARY_ADDRESS_FLAGS = 0x01 | 0x40  # secondary, tentative
_ONLINK = 4


class Item(NamedTuple):
    what: str  # "route4", "leg6", "address", …
    where: tuple[object, ...]  # identity
    fields: tuple[object, ...]
    protocol: int = 0

    def __str__(self) -> str:
        return f"{self.what} {' '.join(map(str, (*self.where, *self.fields)))} p{self.protocol}"


Snapshot = dict[str, list[Item]]  # by what, in the kernel's order


def take(sock: NetlinkSocket) -> Snapshot:
    links = sock.dump(_GETLINK, bytes(16), "links")
    names = _names(links)
    found: Snapshot = {
        what: [] for what in ("link", "address", "route4", "leg6", "rule", "neighbour")
    }
    for item in (
        *_links(links, names),
        *_addresses(sock, names),
        *_routes4(sock, names),
        *_legs6(sock, names),
        *_rules(sock),
        *_neighbours(sock, names),
    ):
        found[item.what].append(item)
    return found


@lru_cache(maxsize=4096)
def _parsed(body: bytes, offset: int = 0) -> Mapping[int, bytes]:
    """Most of what is seen is as it was the last time, thousands of times in a test."""
    return MappingProxyType(attributes.parse(body, offset))


def _names(links: list[bytes]) -> dict[int, str]:
    return {
        attributes.to_int(body[4:8]): attributes.to_text(_parsed(body, 16)[3]) for body in links
    }


def _links(links: list[bytes], names: dict[int, str]) -> Iterator[Item]:
    for body in links:
        found = _parsed(body, 16)
        index, flags = struct.unpack_from("=iI", body, 4)
        info = _parsed(found.get(18, b""))
        master = names.get(attributes.to_int(found.get(10, b"")), "")
        yield Item(
            "link",
            (names[index], index),
            (
                attributes.to_text(info.get(1, b"")),
                bool(flags & 1),
                attributes.to_int(found[4]),
                found.get(1, b"").hex(),
                master,
                attributes.to_text(found.get(20, b"")),
                attributes.to_int(found.get(27, b"")),
            ),
        )


def _addresses(sock: NetlinkSocket, names: dict[int, str]) -> Iterator[Item]:
    for body in sock.dump(_GETADDR, bytes(8), "addresses"):
        family, length, flags, scope, index = struct.unpack_from("=BBBBI", body)
        found = _parsed(body, 8)
        protocol = attributes.to_int(found.get(11, b""))
        if protocol in _ADDRESS_KERNEL or names[index] == "lo":
            continue
        if 8 in found:
            flags = attributes.to_int(found[8])
        local = found.get(2, found[1])
        yield Item(
            "address",
            (names[index], socket.inet_ntop(family, local), length),
            (scope, flags & ~_MOMENTARY_ADDRESS_FLAGS, found[1], found.get(3, b"")),
            protocol,
        )


def _routes4(sock: NetlinkSocket, names: dict[int, str]) -> Iterator[Item]:
    header = struct.pack("=BBBBBBBBI", socket.AF_INET, *(0,) * 8)
    for body in sock.dump(_GETROUTE, header, "IPv4 routes"):
        _, length, _, tos, _, protocol, scope, kind, flags = struct.unpack_from("=BBBBBBBBI", body)
        if protocol == _ROUTE_KERNEL:
            continue
        found = _parsed(body, 12)
        legs = tuple(_legs(found, names, flags))
        yield Item(
            "route4",
            (_table(found), _destination(found, 4), length, _metric(found), tos),
            (kind, scope, legs, found.get(7, b""), found.get(8, b"")),
            protocol,
        )


def routes6(sock: NetlinkSocket) -> list[tuple[int, list[Item]]]:
    """The protocol each IPv6 route is dumped with, which is its first leg's, and its legs."""
    return list(_routes6(sock, _names(sock.dump(_GETLINK, bytes(16), "links"))))


def _legs6(sock: NetlinkSocket, names: dict[int, str]) -> Iterator[Item]:
    """IPv6 merges legs whoever added them and tells the protocol of the first one only, so that
    each leg is an item and none has a protocol."""
    for _protocol, legs in _routes6(sock, names):
        yield from legs


def _routes6(sock: NetlinkSocket, names: dict[int, str]) -> Iterator[tuple[int, list[Item]]]:
    header = struct.pack("=BBBBBBBBI", socket.AF_INET6, *(0,) * 8)
    for body in sock.dump(_GETROUTE, header, "IPv6 routes"):
        _, length, _, _, _, protocol, _, kind, flags = struct.unpack_from("=BBBBBBBBI", body)
        if protocol in (_ROUTE_KERNEL, _ROUTE_RA):
            continue
        found = _parsed(body, 12)
        where = (_table(found), _destination(found, 6), length, _metric(found))
        # A leg left alone no longer says its weight.
        legs = [(gateway, dev) for gateway, dev, *_ in _legs(found, names, flags)]
        yield protocol, [Item("leg6", (*where, leg), (kind,)) for leg in legs]


def _legs(
    found: Mapping[int, bytes], names: dict[int, str], flags: int
) -> Iterator[tuple[object, ...]]:
    def leg(inner: Mapping[int, bytes], index: int, weight: int, on: int) -> tuple[object, ...]:
        gateway = inner.get(5, b"") or inner.get(18, b"")[2:]
        return gateway.hex(), names.get(index, ""), weight, on & _ONLINK

    if 9 not in found:
        yield leg(found, attributes.to_int(found.get(4, b"")), 0, flags)
        return
    data, offset = found[9], 0
    while offset + 8 <= len(data):
        length, on, hops, index = struct.unpack_from("=HBBI", data, offset)
        yield leg(_parsed(data[offset + 8 : offset + length]), index, hops, on)
        offset += (length + 3) & ~3


def _table(found: Mapping[int, bytes]) -> int:
    return attributes.to_int(found[15])


def _metric(found: Mapping[int, bytes]) -> int:
    return attributes.to_int(found.get(6, b""))


def _destination(found: Mapping[int, bytes], version: int) -> str:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    return socket.inet_ntop(family, found.get(1, bytes(4 if version == 4 else 16)))


def _rules(sock: NetlinkSocket) -> Iterator[Item]:
    for family in (socket.AF_INET, socket.AF_INET6):
        for body in sock.dump(_GETRULE, bytes((family,)) + bytes(11), "rules"):
            found = dict(_parsed(body, 12))
            protocol = attributes.to_int(found.pop(21, b""))
            yield Item("rule", (body[:12].hex(),), tuple(sorted(found.items())), protocol)


def _neighbours(sock: NetlinkSocket, names: dict[int, str]) -> Iterator[Item]:
    for family in (socket.AF_INET, socket.AF_INET6):
        for body in sock.dump(_GETNEIGH, bytes((family,)) + bytes(11), "neighbours"):
            _, _, _, index, state, flags, _ = struct.unpack_from("=BBHiHBB", body)
            if not state & _PERMANENT_NEIGHBOUR:
                continue
            found = _parsed(body, 12)
            yield Item(
                "neighbour",
                (names[index], socket.inet_ntop(family, found[1])),
                (state, flags, found.get(2, b"").hex()),
                attributes.to_int(found.get(12, b"")),
            )
