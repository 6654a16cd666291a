"""Neighbours and forwarding entries, as they are told and made again: ndmsg and its attributes."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Mapping

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.neighbour import neighbour_key
from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes, side_effects, tags
from holdfast.host.netlink.links import forwarding
from holdfast.host.netlink.side_effects import FAMILY
from holdfast.host.netlink.socket import NetlinkSocket

RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_NDA_DST, _NDA_LLADDR, _NDA_CACHEINFO, _NDA_PROBES = 1, 2, 3, 4
_NDA_VLAN, _NDA_VNI, _NDA_IFINDEX, _NDA_MASTER, _NDA_SRC_VNI, _NDA_PROTOCOL = 5, 7, 8, 9, 11, 12
_TOLD_ONLY = (_NDA_CACHEINFO, _NDA_PROBES, _NDA_MASTER)
_STALE, _STATIC = 0x04, 0x80 | 0x40
_SELF, _MASTER, _PROXY = 0x02, 0x04, 0x08


def dump(sock: NetlinkSocket) -> Iterator[bytes]:
    """Neighbours of both IP versions, and those answered for by proxy."""
    for family in FAMILY.values():
        for flags in (0, _PROXY):
            yield from sock.dump(_RTM_GETNEIGH, _asking(family, flags), "neighbours")


def _asking(family: int, flags: int) -> bytes:
    return struct.pack("=BBHiHBB", family, 0, 0, 0, 0, flags, 0)


def index(body: bytes) -> int:
    return attributes.to_int(body[4:8])


def key(body: bytes, dev: str) -> Key:
    """As `side_effects` and `forwarding` name them."""
    if body[0] == forwarding.AF_BRIDGE:
        return forwarding.key(body, dev)
    found = attributes.parse(body, 12)
    shown = str(ipaddress.ip_address(found[_NDA_DST])) if _NDA_DST in found else "-"
    return neighbour_key(f"{'proxy ' if body[10] & _PROXY else ''}{shown}", dev)


def is_lasting(body: bytes, tag: int) -> bool:
    """Made by somebody else to stay."""
    if protocol(body) in (tag, tags.KERNEL):
        return False
    proxy = body[10] & _PROXY and _NDA_DST in attributes.parse(body, 12)
    return bool(proxy) or side_effects.is_lasting_neighbour(body)


def is_learnt(body: bytes) -> bool:
    """By the kernel itself, which forgets it again."""
    if body[0] == forwarding.AF_BRIDGE:
        return not forwarding.is_lasting(body)
    static = attributes.to_int(body[8:10]) & _STATIC or body[10] & _PROXY
    return not (static or side_effects.is_lasting_neighbour(body))


def place(body: bytes, names: Mapping[int, str]) -> tuple[object, ...]:
    """What there can be one entry for: of a bridge, a MAC and VLAN, whichever port it is at."""
    found = attributes.parse(body, 12)
    if body[0] != forwarding.AF_BRIDGE:
        return body[0], names.get(index(body)), found.get(_NDA_DST), bool(body[10] & _PROXY)
    table = names.get(attributes.to_int(found.get(_NDA_MASTER, body[4:8])))
    told = (_NDA_LLADDR, _NDA_VLAN, _NDA_SRC_VNI, *((_NDA_DST, _NDA_VNI) if has_end(body) else ()))
    return body[0], table, *(found.get(name) for name in told)


def has_end(body: bytes) -> bool:
    """Whether it is an entry that says to which end of a tunnel no MAC in particular is sent."""
    found = attributes.parse(body, 12)
    everything = not any(found.get(_NDA_LLADDR, b""))
    return body[0] == forwarding.AF_BRIDGE and _NDA_DST in found and everything


def protocol(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, 12).get(_NDA_PROTOCOL, b""))


def again(body: bytes, indexes: Indexes) -> bytes:
    """Raises Unmapped."""
    found = attributes.parse(body, 12)
    flags = body[10]
    if body[0] == forwarding.AF_BRIDGE and not flags & _SELF:
        # Told without saying through whom: of a port it is the bridge that keeps it.
        own = attributes.to_int(found.get(_NDA_MASTER, b"")) in (0, index(body))
        flags |= _SELF if own else _MASTER
    state = body[8:10]
    kept = {name: value for name, value in found.items() if name not in _TOLD_ONLY}
    if body[0] != forwarding.AF_BRIDGE and not attributes.to_int(state) & _STATIC:
        # How fresh it is, the kernel finds out; and for one that it manages, the MAC.
        managed = side_effects.is_managed(body)
        state = struct.pack("=H", 0 if managed else _STALE)
        if managed:
            kept.pop(_NDA_LLADDR, None)
    header = body[:4] + indexes.now(body[4:8]) + state + bytes((flags,)) + body[11:12]
    if _NDA_IFINDEX in kept:
        kept[_NDA_IFINDEX] = indexes.now(kept[_NDA_IFINDEX])
    return header + b"".join(attributes.attribute(name, value) for name, value in kept.items())
