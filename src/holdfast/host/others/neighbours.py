"""Neighbours and forwarding entries, as they are told and made again: ndmsg and its attributes."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Container, Iterator

from holdfast.engine.artifact import Key
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.side_effects import FAMILY
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.others.replay import Indexes

RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_NDA_DST, _NDA_LLADDR, _NDA_CACHEINFO, _NDA_PROBES = 1, 2, 3, 4
_NDA_IFINDEX, _NDA_MASTER, _NDA_PROTOCOL = 8, 9, 12
_TOLD_ONLY = (_NDA_CACHEINFO, _NDA_PROBES, _NDA_MASTER)
_PERMANENT, _NOARP = 0x80, 0x40
_SELF, _MASTER, _PROXY, _EXT_LEARNED = 0x02, 0x04, 0x08, 0x10
_AF_BRIDGE = 7


def dump(sock: NetlinkSocket) -> Iterator[bytes]:
    """Neighbours of both IP versions, and those answered for by proxy."""
    for family in FAMILY.values():
        for flags in (0, _PROXY):
            yield from sock.dump(_RTM_GETNEIGH, _asking(family, flags), "neighbours")


def dump_forwarding(sock: NetlinkSocket) -> list[bytes]:
    return sock.dump(_RTM_GETNEIGH, _asking(_AF_BRIDGE, 0), "forwarding entries")


def _asking(family: int, flags: int) -> bytes:
    return struct.pack("=BBHiHBB", family, 0, 0, 0, 0, flags, 0)


def index(body: bytes) -> int:
    return attributes.to_int(body[4:8])


def key(body: bytes, dev: str) -> Key:
    """As `side_effects` names neighbours; forwarding entries in the same way."""
    found = attributes.parse(body, 12)
    if body[0] == _AF_BRIDGE:
        return Key("forwarding entry", f"{found.get(_NDA_LLADDR, b'').hex(':')} dev {dev}")
    shown = str(ipaddress.ip_address(found[_NDA_DST])) if _NDA_DST in found else "-"
    return Key("neighbour", f"{'proxy ' if body[10] & _PROXY else ''}{shown} dev {dev}")


def is_lasting(body: bytes, tag: int) -> bool:
    """Made by somebody to stay: not learned, not the kernel's own for what needs no asking."""
    found = attributes.parse(body, 12)
    if _NDA_DST not in found or protocol(body) in (tag, tags.KERNEL):
        return False
    if body[10] & _PROXY:
        return True
    state = attributes.to_int(body[8:10])
    if state & _NOARP:
        return not _needs_no_asking(ipaddress.ip_address(found[_NDA_DST]))
    return bool(state & _PERMANENT)


def _needs_no_asking(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    broadcast = ip.version == 4 and ip.packed[-1] == 255
    return ip.is_multicast or ip.is_loopback or ip.is_unspecified or broadcast


def is_static_forwarding(body: bytes, own: Container[bytes]) -> bool:
    """Somebody's entry in the table of a bridge or vxlan. own: the MACs of links, for which the
    kernel makes entries itself; and a link lists the addresses that it listens to in the same
    way, which are no entries."""
    found = attributes.parse(body, 12)
    mac = found.get(_NDA_LLADDR, b"")
    lasting = attributes.to_int(body[8:10]) & (_NOARP | _PERMANENT)
    if not lasting or body[10] & _EXT_LEARNED or mac in own:
        return False
    in_table = _NDA_MASTER in found or _NDA_DST in found
    return in_table and not (mac and mac[0] & 1)


def protocol(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, 12).get(_NDA_PROTOCOL, b""))


def again(body: bytes, indexes: Indexes) -> bytes:
    """Raises Unmapped."""
    found = attributes.parse(body, 12)
    flags = body[10]
    if body[0] == _AF_BRIDGE and not flags & _SELF:
        # Told without saying through whom: of a port it is the bridge that keeps it.
        own = attributes.to_int(found.get(_NDA_MASTER, b"")) in (0, index(body))
        flags |= _SELF if own else _MASTER
    header = body[:4] + indexes.now(body[4:8]) + body[8:10] + bytes((flags,)) + body[11:12]
    kept = {name: value for name, value in found.items() if name not in _TOLD_ONLY}
    if _NDA_IFINDEX in kept:
        kept[_NDA_IFINDEX] = indexes.now(kept[_NDA_IFINDEX])
    return header + b"".join(attributes.attribute(name, value) for name, value in kept.items())
