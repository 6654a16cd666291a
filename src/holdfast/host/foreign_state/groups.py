"""Multicast entries of bridges, as they are told and made again."""

from __future__ import annotations

from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.forwarding import (
    AF_BRIDGE,
    EATTR_DST,
    EATTR_DST_PORT,
    EATTR_IFINDEX,
    EATTR_MODE,
    EATTR_PROTOCOL,
    EATTR_SOURCE,
    EATTR_SOURCES,
    EATTR_SRC_VNI,
    EATTR_VNI,
    ENTRY,
    GroupEntry,
)

RTM_NEWMDB = 84
_SET_ENTRY, _SET_ATTRIBUTES = 1, 2
# What the kernel tells by one number it is told by another.
_NUMBERS = {
    EATTR_SOURCE: 1, EATTR_SOURCES: 2, EATTR_MODE: 3, EATTR_PROTOCOL: 4, EATTR_DST: 5,
    EATTR_DST_PORT: 6, EATTR_VNI: 7, EATTR_IFINDEX: 8, EATTR_SRC_VNI: 9,
}  # fmt: skip
# A kernel before 6.2 takes none of these.
_LATER = (EATTR_SOURCES, EATTR_MODE, EATTR_PROTOCOL)
_SOURCE, _SOURCE_ADDRESS = 1, 1


def again(body: bytes, indexes: Indexes) -> bytes:
    """Raises Unmapped."""
    return _message(body, indexes, ())


def again_for_older_kernels(body: bytes, indexes: Indexes) -> bytes:
    """Raises Unmapped."""
    return _message(body, indexes, _LATER)


def _message(body: bytes, indexes: Indexes, without: tuple[int, ...]) -> bytes:
    entry = GroupEntry(body)
    _port, state, _flags, vlan, group, kind = ENTRY.unpack_from(body, 4)
    port = attributes.to_int(indexes.now(body[4:8]))
    message = bytes((AF_BRIDGE, 0, 0, 0)) + indexes.now(body[:4])
    message += attributes.attribute(_SET_ENTRY, ENTRY.pack(port, state, 0, vlan, group, kind))
    said = {name: value for name, value in entry.said.items() if name in _NUMBERS}
    if EATTR_SOURCE in said:
        said.pop(EATTR_MODE, None)  # only of a group from any source
    if EATTR_IFINDEX in said:
        said[EATTR_IFINDEX] = indexes.now(said[EATTR_IFINDEX])
    if EATTR_SOURCES in said:
        said[EATTR_SOURCES] = _sources(said[EATTR_SOURCES])
    told = [
        attributes.attribute(_NUMBERS[name], value)
        for name, value in said.items()
        if name not in without
    ]
    return message + (attributes.nested(_SET_ATTRIBUTES, *told) if told else b"")


def _sources(listed: bytes) -> bytes:
    """Without how long each has still."""
    addresses = (
        attributes.parse(one).get(_SOURCE_ADDRESS, b"") for _, one in attributes.each(listed)
    )
    return b"".join(
        attributes.nested(_SOURCE, attributes.attribute(_SOURCE_ADDRESS, address))
        for address in addresses
    )
