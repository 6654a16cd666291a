"""Addresses, as they are told and made again; and the order of those on a link.

IPv4: the first address of a subnet is its primary, later ones are secondaries; a new primary comes
after the others of its scope, a new secondary at the end. What a packet is sent from is the first
that fits. IPv6: the newest comes first, and of two that fit alike the first is used (both seen on
6.18).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence

from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes
from holdfast.host.netlink.addresses.address_codec import SECONDARY, SeenAddress

_IFA_FLAGS, _IFA_CACHEINFO = 8, 6
_NODAD, _HOME, _MANAGE_TEMPORARY, _NO_PREFIX_ROUTE, _JOIN = 0x02, 0x10, 0x100, 0x200, 0x400
_SETTABLE = _NODAD | _HOME | _MANAGE_TEMPORARY | _NO_PREFIX_ROUTE | _JOIN
_LEARNED = 2  # IFAPROT_KERNEL_RA
_FOREVER = 0xFFFFFFFF
_CACHEINFO = struct.Struct("=IIII")

# What tells addresses of one link apart, and whether it stands behind another of its subnet.
Place = tuple[bytes, bytes, int, bool]


def lifetime(body: bytes, elapsed: float) -> tuple[int, int]:
    """Preferred and valid seconds that it has still, once so many are over."""
    told = attributes.parse(body, 8).get(_IFA_CACHEINFO, b"")
    preferred, valid = _CACHEINFO.unpack(told)[:2] if len(told) == _CACHEINFO.size else (
        _FOREVER, _FOREVER,
    )  # fmt: skip
    passed = int(elapsed)
    return (
        preferred if preferred == _FOREVER else max(0, preferred - passed),
        valid if valid == _FOREVER else max(0, valid - passed),
    )


def again(body: bytes, indexes: Indexes) -> bytes:
    """The message that makes it, without its lifetime. Two addresses are the same if this is.
    Raises Unmapped."""
    found = attributes.parse(body, 8)
    found.pop(_IFA_CACHEINFO, None)
    flags = attributes.to_int(found.get(_IFA_FLAGS, body[2:3])) & _SETTABLE
    found[_IFA_FLAGS] = struct.pack("=I", flags)
    header = body[:2] + bytes((flags & 0xFF,)) + body[3:4] + indexes.now(body[4:8])
    return header + b"".join(attributes.attribute(name, value) for name, value in found.items())


def with_lifetime(message: bytes, preferred: int, valid: int) -> bytes:
    return message + attributes.attribute(_IFA_CACHEINFO, _CACHEINFO.pack(preferred, valid, 0, 0))


def unchecked(message: bytes) -> bytes | None:
    """The same without a check for duplicates, which takes a second or two: it was there a moment
    ago. None where none is made anyway."""
    found = attributes.parse(message, 8)
    flags = attributes.to_int(found[_IFA_FLAGS])
    if message[0] != socket.AF_INET6 or flags & _NODAD:
        return None
    found[_IFA_FLAGS] = struct.pack("=I", flags | _NODAD)
    kept = b"".join(attributes.attribute(name, value) for name, value in found.items())
    return message[:2] + bytes(((flags | _NODAD) & 0xFF,)) + message[3:8] + kept


def place(seen_address: SeenAddress) -> Place:
    secondary = seen_address.version == 4 and bool(seen_address.flags & SECONDARY)
    return seen_address.ip, seen_address.network, seen_address.prefix_length, secondary


def to_move(before: Sequence[SeenAddress], now: Sequence[SeenAddress]) -> list[SeenAddress]:
    """Of one link and IP version: the addresses there now that are to be made anew, in this order,
    so that all stand to each other as before. Others' that came since are not moved.

    What is made anew comes last (of its scope), in IPv6 first. So as many as possible of those
    that came first stay, as long as they are in order and what they were; the others go and come.
    """
    there = {place(address)[:3]: address for address in now}
    wanted = [place(address) for address in before if place(address)[:3] in there]
    if before and before[0].version == 6:
        wanted.reverse()
        now = list(reversed(now))
    standing = [place(address) for address in now]
    kept = 0
    at = 0
    while kept < len(wanted) and wanted[kept] in standing[at:]:
        at = standing.index(wanted[kept], at) + 1
        kept += 1
    return [there[one[:3]] for one in wanted[kept:]]


def per_link(addresses: Iterable[SeenAddress]) -> dict[tuple[str, int, bool], list[SeenAddress]]:
    """By link, IP version and whether they are link-local ones of IPv6, which stand behind all
    others; without what the kernel makes and orders by itself."""
    found: dict[tuple[str, int, bool], list[SeenAddress]] = {}
    for address in addresses:
        itself = address.flags & SECONDARY or address.protocol == _LEARNED
        if address.version == 4 or not itself:
            local = address.version == 6 and address.scope == "link"
            place = str(address.artifact.fields["dev"]), address.version, local
            found.setdefault(place, []).append(address)
    return found
