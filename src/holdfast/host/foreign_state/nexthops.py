"""Nexthop objects, as they are told and made again: nhmsg and its attributes.

The kernel deletes them with their link, or when it goes down; then they go from their groups, and
a group without members goes as well, each with the routes that lead over it. A group that has
members left stays, and so do its routes, with fewer legs.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator

from holdfast.errors import DriverError
from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import NetlinkSocket

RTM_NEWNEXTHOP, _RTM_GETNEXTHOP = 104, 106
_NHA_ID, _NHA_GROUP, _NHA_GROUP_TYPE, _NHA_BLACKHOLE, _NHA_OIF, _NHA_GATEWAY = 1, 2, 3, 4, 5, 6
_NHA_ENCAP_TYPE, _NHA_ENCAP, _NHA_FDB, _NHA_RES_GROUP = 7, 8, 11, 12
_SETTABLE = (
    _NHA_ID, _NHA_GROUP, _NHA_GROUP_TYPE, _NHA_BLACKHOLE, _NHA_OIF, _NHA_GATEWAY,
    _NHA_ENCAP_TYPE, _NHA_ENCAP, _NHA_FDB, _NHA_RES_GROUP,
)  # fmt: skip
# Told without saying so, and taken only where it is said.
_NESTED = (_NHA_ENCAP, _NHA_RES_GROUP)
# Of a resilient group: buckets, and the timers; for how long it is unbalanced is only told.
_SETTABLE_OF_RESILIENT = (1, 2, 3)
_ONLINK = 0x04
_MEMBER = struct.Struct("=IBBH")


def dump(sock: NetlinkSocket) -> list[bytes]:
    try:
        return sock.dump(_RTM_GETNEXTHOP, bytes(8), "nexthops")
    except DriverError:
        return []  # a kernel before 5.3 has none


def over(sock: NetlinkSocket, indexes: Iterable[int]) -> list[bytes]:
    """Those over these links, and the groups that they are in; members before groups."""
    links = set(indexes)
    there = dump(sock)
    single = [body for body in there if link(body) in links]
    ids = set(map(number, single))
    return single + [body for body in there if ids & set(members(body))]


def number(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, 8).get(_NHA_ID, b""))


def link(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, 8).get(_NHA_OIF, b""))


def is_group(body: bytes) -> bool:
    return _NHA_GROUP in attributes.parse(body, 8)


def members(body: bytes) -> Iterator[int]:
    group = attributes.parse(body, 8).get(_NHA_GROUP, b"")
    return (one for one, _, _, _ in _MEMBER.iter_unpack(group))


def protocol(body: bytes) -> int:
    return body[2]


def is_shrunk(before: bytes, now: bytes, there: Container[int]) -> bool:
    """Whether a group has lost members and is otherwise as it was. there: the nexthops of now; a
    member that somebody deleted meanwhile stays away."""
    had, has = _settable(before, there), _settable(now, there)
    legs, left = (set(_MEMBER.iter_unpack(one.pop(_NHA_GROUP, b""))) for one in (had, has))
    return left < legs and had == has and protocol(before) == protocol(now)


def again(body: bytes, indexes: Indexes, there: Container[int]) -> bytes:
    """The message that makes it, of a group with the members that are there. Raises Unmapped."""
    found = _settable(body, there)
    if _NHA_OIF in found:
        found[_NHA_OIF] = indexes.now(found[_NHA_OIF])
    flags = attributes.to_int(body[4:8]) & _ONLINK
    # The scope is for the kernel to say.
    header = struct.pack("=BBBBI", body[0], 0, body[2], 0, flags)
    return header + b"".join(_packed(name, value) for name, value in found.items())


def _settable(body: bytes, there: Container[int]) -> dict[int, bytes]:
    found = {name: value for name, value in attributes.parse(body, 8).items() if name in _SETTABLE}
    if _NHA_GROUP in found:
        legs = _MEMBER.iter_unpack(found[_NHA_GROUP])
        found[_NHA_GROUP] = b"".join(_MEMBER.pack(*leg) for leg in legs if leg[0] in there)
    if _NHA_RES_GROUP in found:
        found[_NHA_RES_GROUP] = b"".join(
            attributes.attribute(name, value)
            for name, value in attributes.parse(found[_NHA_RES_GROUP]).items()
            if name in _SETTABLE_OF_RESILIENT
        )
    return found


def _packed(name: int, value: bytes) -> bytes:
    pack = attributes.nested if name in _NESTED else attributes.attribute
    return pack(name, value)
