"""Routes as bytes. The body of a route is its netlink payload exactly as the kernel dumps it:
rtmsg, RTA_TABLE, RTA_DST, then a tail that all routes of a template share.

The same bytes are what a create request carries, so that a hundred thousand routes are compared
and written without one of them being taken apart.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER, Block, Run

RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26

RTMSG = struct.Struct("=BBBBBBBBI")
NEXTHOP = struct.Struct("=HBBI")

RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC = 1, 2, 4, 5, 6, 7
RTA_METRICS, RTA_MULTIPATH, RTA_CACHEINFO, RTA_TABLE, RTA_VIA = 8, 9, 12, 15, 18
RTA_PREF, RTA_NH_ID = 20, 30
RTAX_LOCK, RTAX_MTU = 1, 2

ONLINK = 4
_SCOPE_UNIVERSE, _SCOPE_LINK, _SCOPE_NOWHERE = 0, 253, 255
_COMPAT_TABLE = 252  # stands in rtm_table where the number takes RTA_TABLE to say

TYPES = {
    1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast", 6: "blackhole",
    7: "unreachable", 8: "prohibit", 9: "throw", 10: "nat",
}  # fmt: skip
_TYPE_NUMBERS = {name: number for number, name in TYPES.items()}

ADDRESS_FAMILY = {4: int(socket.AF_INET), 6: int(socket.AF_INET6)}
HEAD = 20  # rtmsg and RTA_TABLE
DST_END = {4: HEAD + 8, 6: HEAD + 20}
_DST_HEADER = {4: struct.pack("=HH", 8, RTA_DST), 6: struct.pack("=HH", 20, RTA_DST)}
_PREFIX_LENGTHS = {4: range(33), 6: range(129)}
DEFAULT_KEY = {4: bytes(5), 6: bytes(17)}
LOOPBACK = 1  # the index of `lo` in every network namespace

# What an IPv6 dump says at the end of every lasting route: no expiry, medium preference.
_IPV6_TRAILER = attributes.attribute(RTA_CACHEINFO, bytes(32)) + attributes.u8(RTA_PREF, 0)


class Leg(NamedTuple):
    """A nexthop with the index of its link; 0 leaves the choice to the kernel."""

    nexthop: Nexthop
    link: int


@dataclass(frozen=True, slots=True)
class OddTemplate(RouteTemplate):
    """What a route may have that no declared one has, and a delete has to name."""

    tos: int = 0
    source: bytes = b""  # IPv6: prefix length, then address
    nhid: int = 0

    @property
    def aside(self) -> int:
        return self.tos or bool(self.source)


@dataclass(frozen=True, slots=True)
class Shape:
    """The bytes that the routes of a template share; the head depends on the prefix length."""

    heads: tuple[bytes, ...]
    tail: bytes

    def bodies(self, keys: Iterable[bytes]) -> list[bytes]:
        return list(self.stream(keys))

    def stream(self, keys: Iterable[bytes]) -> Iterator[bytes]:
        heads, tail = self.heads, self.tail
        default = heads[0] + tail  # RTA_DST is left out where the prefix length is 0
        return (heads[key[0]] + key[1:] + tail if key[0] else default for key in keys)

    def is_run(self, run: Run, keys: Sequence[bytes]) -> bool:
        """Is this run of messages the bodies of these keys, in this order?"""
        if len(_alike(keys)) > 1 or run.length != HEADER.size + len(self._body(keys[0])):
            return False
        return self._block(run.header, keys).data == run.data[run.start : run.end]

    def requests(self, kind: int, flags: int, keys: Sequence[bytes], most: int) -> Iterator[Block]:
        """Requests that carry the bodies, in blocks of at most so many."""
        for start in range(0, len(keys), most):
            for part in _alike(keys[start : start + most]):
                length = HEADER.size + len(self._body(part[0]))
                yield self._block(HEADER.pack(length, kind, flags, 0, 0), part)

    def _body(self, key: bytes) -> bytes:
        return next(self.stream((key,)))

    def _block(self, header: bytes, keys: Sequence[bytes]) -> Block:
        """Messages with the bodies of keys that are alike."""
        message = header + self._body(keys[0])
        message += bytes(-len(message) % 4)
        stride, width = len(message), len(keys[0])
        data = bytearray(message * len(keys))
        if keys[0][0]:
            packed = b"".join(keys)
            data[HEADER.size + 1 :: stride] = packed[::width]  # rtm_dst_len
            for at in range(1, width):
                data[HEADER.size + HEAD + 3 + at :: stride] = packed[at::width]
        return Block(data, stride)


def _alike(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Keys in the same order, the default route apart: its body is shorter than the others."""
    at = b"".join(keys)[:: len(keys[0])].find(0)
    parts = (keys,) if at < 0 else (keys[:at], keys[at : at + 1], keys[at + 1 :])
    return [part for part in parts if part]


def created(shared: RouteTemplate, legs: Sequence[Leg], protocol: int) -> Shape:
    """Bodies as the kernel dumps them and as a create request carries them."""
    return _created(shared, tuple(legs), protocol)


def deleted(shared: RouteTemplate, legs: Sequence[Leg], protocol: int) -> Sequence[Shape]:
    """Delete requests that match nothing but what is meant; for IPv6 one for each leg.

    IPv6 compares neither type nor preferred source, and a delete that names no gateway takes all
    legs of the route it finds, other programs' too, unless it is written as RTA_MULTIPATH.
    """
    return _deleted(shared, tuple(legs), protocol)


# Routes that change one by one share a few templates; a shape is made once for all of them.
@lru_cache(maxsize=1024)
def _created(shared: RouteTemplate, legs: tuple[Leg, ...], protocol: int) -> Shape:
    scope = _SCOPE_UNIVERSE
    if shared.family == 4 and shared.type == "unicast" and len(legs) == 1:
        # `ip` gives a route without a gateway link scope; so do we, and read back the same.
        scope = _SCOPE_UNIVERSE if legs[0].nexthop.gateway else _SCOPE_LINK
    if shared.family == 6 and shared.type != "unicast":
        legs = (Leg(Nexthop(), LOOPBACK),)
    priority, prefsrc, metrics = _shared_attributes(shared)
    way = _way(shared.family, legs)
    if shared.family == 4:
        tail = priority + metrics + prefsrc + way
    else:
        tail = prefsrc + metrics + priority + way + _IPV6_TRAILER
    flags = ONLINK if len(legs) == 1 and legs[0].nexthop.onlink else 0
    return Shape(_heads(shared, protocol, scope, flags), tail)


def appended(shared: RouteTemplate, leg: Leg, protocol: int) -> Shape:
    """One IPv6 leg beside others. Only RTA_MULTIPATH can say its weight, and that only of a leg
    with a gateway."""
    whole = created(shared, [leg], protocol)
    if not leg.nexthop.gateway:
        return whole
    priority, prefsrc, metrics = _shared_attributes(shared)
    return Shape(whole.heads, prefsrc + metrics + priority + _multipath(6, [leg]))


@lru_cache(maxsize=1024)
def _deleted(shared: RouteTemplate, legs: tuple[Leg, ...], protocol: int) -> tuple[Shape, ...]:
    heads = _heads(shared, protocol, _SCOPE_NOWHERE, 0)
    priority, prefsrc, metrics = _shared_attributes(shared)
    source = b""
    if isinstance(shared, OddTemplate):
        if shared.source:
            source = attributes.attribute(RTA_SRC, shared.source[1:])
        if shared.nhid:
            return (Shape(heads, source + priority + attributes.u32(RTA_NH_ID, shared.nhid)),)
    if shared.family == 4:
        return (Shape(heads, priority + metrics + prefsrc + _way(4, legs)),)
    if shared.type != "unicast" and not legs:
        legs = (Leg(Nexthop(), LOOPBACK),)
    return tuple(
        Shape(
            heads,
            source + priority + (_way(6, [leg]) if leg.nexthop.gateway else _multipath(6, [leg])),
        )
        for leg in legs
    )


def _shared_attributes(shared: RouteTemplate) -> tuple[bytes, bytes, bytes]:
    priority = attributes.u32(RTA_PRIORITY, shared.metric) if shared.metric else b""
    prefsrc = metrics = b""
    if shared.prefsrc:
        prefsrc = attributes.attribute(RTA_PREFSRC, packed_address(shared.prefsrc))
    if shared.mtu:
        metrics = attributes.attribute(RTA_METRICS, attributes.u32(RTAX_MTU, shared.mtu))
    return priority, prefsrc, metrics


def _heads(shared: RouteTemplate, protocol: int, scope: int, flags: int) -> tuple[bytes, ...]:
    family = ADDRESS_FAMILY[shared.family]
    table = shared.table if shared.table < 256 else _COMPAT_TABLE
    kind = _TYPE_NUMBERS[shared.type]
    tos = source_length = 0
    if isinstance(shared, OddTemplate):
        tos, source_length = shared.tos, shared.source[0] if shared.source else 0
    number = attributes.u32(RTA_TABLE, shared.table)
    return tuple(
        RTMSG.pack(family, length, source_length, tos, table, protocol, scope, kind, flags)
        + number
        + (_DST_HEADER[shared.family] if length else b"")
        for length in _PREFIX_LENGTHS[shared.family]
    )


def _way(family: int, legs: Sequence[Leg]) -> bytes:
    if len(legs) > 1:
        return _multipath(family, legs)
    return b"".join(
        _gateway(family, leg) + (attributes.u32(RTA_OIF, leg.link) if leg.link else b"")
        for leg in legs
    )


def _multipath(family: int, legs: Sequence[Leg]) -> bytes:
    parts = []
    for leg in legs:
        gateway = _gateway(family, leg)
        flags = ONLINK if leg.nexthop.onlink else 0
        parts.append(
            NEXTHOP.pack(8 + len(gateway), flags, leg.nexthop.weight - 1, leg.link) + gateway
        )
    return attributes.attribute(RTA_MULTIPATH, b"".join(parts))


def _gateway(family: int, leg: Leg) -> bytes:
    gateway = leg.nexthop.gateway
    if not gateway:
        return b""
    packed = packed_address(gateway)
    if family == 4 and len(packed) == 16:
        return attributes.attribute(RTA_VIA, struct.pack("=H", ADDRESS_FAMILY[6]) + packed)
    return attributes.attribute(RTA_GATEWAY, packed)


def packed_address(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def address_text(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
