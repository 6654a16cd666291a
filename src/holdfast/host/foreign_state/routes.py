"""Routes, as they are told and made again: rtmsg and its attributes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import route_key
from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes

RTM_NEWROUTE = 24
_RTA_DST, _RTA_SRC, _RTA_IIF, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY = 1, 2, 3, 4, 5, 6
_RTA_PREFSRC, _RTA_METRICS, _RTA_MULTIPATH, _RTA_FLOW, _RTA_CACHEINFO = 7, 8, 9, 11, 12
_RTA_TABLE = 15
_RTA_VIA, _RTA_ENCAP_TYPE, _RTA_ENCAP, _RTA_EXPIRES, _RTA_NH_ID = 18, 21, 22, 23, 30
# With a nexthop object, the kernel tells where that leads as well, and takes only the object.
_OF_NEXTHOP = (
    _RTA_OIF, _RTA_GATEWAY, _RTA_MULTIPATH, _RTA_FLOW, _RTA_VIA, _RTA_ENCAP, _RTA_ENCAP_TYPE,
)  # fmt: skip
_RTAX_LOCK, _RTAX_MTU = 1, 2
_PERVASIVE, _ONLINK = 0x02, 0x04
_SETTABLE = _PERVASIVE | _ONLINK  # dead, linkdown, offload: what the kernel alone says
_TICKS = 100  # USER_HZ
_LEG = struct.Struct("=HBBi")


class Identity(NamedTuple):
    """What only one route can have, but for those that the kernel keeps side by side."""

    family: int
    table: int
    destination: bytes
    length: int
    source: bytes
    tos: int
    metric: int


def identity(body: bytes) -> Identity:
    found = attributes.parse(body, 12)
    return Identity(
        body[0],
        attributes.to_int(found[_RTA_TABLE]) if _RTA_TABLE in found else body[4],
        found.get(_RTA_DST, b""),
        body[1],
        found.get(_RTA_SRC, b""),
        body[3],
        attributes.to_int(found.get(_RTA_PRIORITY, b"")),
    )


def key(body: bytes) -> Key:
    one = identity(body)
    version = 4 if one.family == socket.AF_INET else 6
    packed = one.destination or bytes(4 if version == 4 else 16)
    prefix = f"{socket.inet_ntop(one.family, packed)}/{one.length}"
    return route_key(prefix, version, one.table, one.metric)


def source(body: bytes) -> bytes:
    return attributes.parse(body, 12).get(_RTA_PREFSRC, b"")


def is_direct(body: bytes) -> bool:
    """Straight to a link, as the kernel's routes to the prefixes of addresses are."""
    found = attributes.parse(body, 12)
    return not found.keys() & {_RTA_GATEWAY, _RTA_VIA, _RTA_MULTIPATH, _RTA_NH_ID}


def has_nexthop_object(body: bytes) -> bool:
    return _RTA_NH_ID in attributes.parse(body, 12)


def mtu(body: bytes) -> int:
    """Its own, where the kernel may set it to that of the link; 0: none."""
    metrics = attributes.parse(attributes.parse(body, 12).get(_RTA_METRICS, b""))
    locked = attributes.to_int(metrics.get(_RTAX_LOCK, b"")) & 1 << _RTAX_MTU
    return 0 if locked else attributes.to_int(metrics.get(_RTAX_MTU, b""))


def without_mtu(message: bytes) -> bytes:
    """The same for two routes that differ in nothing else."""
    found = attributes.parse(message, 12)
    metrics = attributes.parse(found.get(_RTA_METRICS, b""))
    metrics.pop(_RTAX_MTU, None)
    found[_RTA_METRICS] = _attributes(metrics)
    return message[:12] + _attributes(found)


def legs(body: bytes) -> list[int]:
    found = attributes.parse(body, 12)
    over = [attributes.to_int(found[_RTA_OIF])] if _RTA_OIF in found else []
    return over + [_LEG.unpack_from(leg)[3] for leg in _legs(found.get(_RTA_MULTIPATH, b""))]


def lifetime(body: bytes, elapsed: float) -> int | None:
    """Seconds that it has still, once so many are over; None: as long as it likes."""
    told = attributes.parse(body, 12).get(_RTA_CACHEINFO, b"")
    ticks = struct.unpack_from("=i", told, 8)[0] if len(told) >= 12 else 0
    return int(ticks / _TICKS - elapsed) if ticks else None


def again(body: bytes, indexes: Indexes) -> bytes:
    """The message that makes it, without its lifetime. Two routes are the same if this is. Raises
    Unmapped."""
    found = attributes.parse(body, 12)
    found.pop(_RTA_CACHEINFO, None)
    if _RTA_NH_ID in found:
        found = {name: value for name, value in found.items() if name not in _OF_NEXTHOP}
    for name in (_RTA_OIF, _RTA_IIF):
        if name in found:
            found[name] = indexes.now(found[name])
    if _RTA_MULTIPATH in found:
        found[_RTA_MULTIPATH] = b"".join(_leg(leg, indexes) for leg in _legs(found[_RTA_MULTIPATH]))
    flags = attributes.to_int(body[8:12]) & _SETTABLE
    return body[:8] + struct.pack("=I", flags) + _attributes(found)


def with_lifetime(message: bytes, seconds: int) -> bytes:
    return message + attributes.u32(_RTA_EXPIRES, seconds)


def without_legs(message: bytes, there: bytes) -> bytes | None:
    """Of a route that IPv6 keeps leg by leg, the legs that are missing; None where what is there
    is something else, or where none is."""
    wanted, seen = attributes.parse(message, 12), attributes.parse(there, 12)
    if message[0] != socket.AF_INET6 or _RTA_MULTIPATH not in wanted or _RTA_NH_ID in seen:
        return None
    present = set(map(_told_leg, _legs(seen.get(_RTA_MULTIPATH, b""))))
    if _RTA_OIF in seen:
        present = {(attributes.to_int(seen[_RTA_OIF]), seen.get(_RTA_GATEWAY, b""))}
    missing = [leg for leg in _legs(wanted[_RTA_MULTIPATH]) if _told_leg(leg) not in present]
    if not missing or not present <= set(map(_told_leg, _legs(wanted[_RTA_MULTIPATH]))):
        return None
    return message[:12] + _attributes({**wanted, _RTA_MULTIPATH: b"".join(missing)})


def _legs(data: bytes) -> Iterator[bytes]:
    """Each with its header, padded."""
    offset = 0
    while offset + _LEG.size <= len(data):
        length = max((_LEG.unpack_from(data, offset)[0] + 3) & ~3, _LEG.size)
        yield data[offset : offset + length]
        offset += length


def _leg(leg: bytes, indexes: Indexes) -> bytes:
    length, flags, hops, index = _LEG.unpack_from(leg)
    now = attributes.to_int(indexes.now(struct.pack("=i", index)))
    return _LEG.pack(length, flags & _SETTABLE, hops, now) + leg[_LEG.size :]


def _told_leg(leg: bytes) -> tuple[int, bytes]:
    gateway = attributes.parse(leg, _LEG.size).get(_RTA_GATEWAY, b"")
    return _LEG.unpack_from(leg)[3], gateway


def _attributes(found: dict[int, bytes]) -> bytes:
    return b"".join(attributes.attribute(name, value) for name, value in found.items())
