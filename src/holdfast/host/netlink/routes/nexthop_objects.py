"""Nexthop objects (`ip nexthop`) on links. The kernel deletes them, and the routes over them, when
their link ends, goes down or loses its carrier. Holdfast makes none: all are others'."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Set

from holdfast.dataclass import dataclass
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.socket import NetlinkSocket

_RTM_GETNEXTHOP = 106
_NHA_ID, _NHA_GROUP, _NHA_OIF, _NHA_GROUPS = 1, 2, 5, 9
_HEADER = bytes(8)  # nhmsg: family, scope, protocol, padding, flags


@dataclass(frozen=True, slots=True)
class NexthopObject:
    number: int
    protocol: int
    members: frozenset[int] = frozenset()  # of a group

    def __str__(self) -> str:
        return f"nexthop {self.number} ({tags.holder_text(self.protocol)})"


def nexthops_lost(sock: NetlinkSocket, indexes: Iterable[int]) -> list[str]:
    """What goes of them with these links: single ones, and groups none of whose members stays."""
    single = [
        found
        for index in indexes
        for found in _read(sock, attributes.u32(_NHA_OIF, index), "nexthops of a link")
    ]
    if not single:
        return []
    gone = {nexthop_object.number for nexthop_object in single}
    groups = _read(sock, attributes.attribute(_NHA_GROUPS, b""), "nexthop groups")
    return [*map(str, single), *_groups_lost(groups, gone)]


def _groups_lost(groups: Iterable[NexthopObject], gone: Set[int]) -> Iterator[str]:
    for group in groups:
        if group.members and group.members <= gone:
            yield str(group)
        else:
            yield from (
                f"nexthop {member} of group {group}" for member in sorted(group.members & gone)
            )


def _read(sock: NetlinkSocket, wanted: bytes, what: str) -> Iterator[NexthopObject]:
    for body in sock.dump(_RTM_GETNEXTHOP, _HEADER + wanted, what):
        found = attributes.parse(body, len(_HEADER))
        group = found.get(_NHA_GROUP, b"")
        members = (number for number, _weight in struct.iter_unpack("=I4s", group))
        yield NexthopObject(attributes.to_int(found[_NHA_ID]), body[2], frozenset(members))
