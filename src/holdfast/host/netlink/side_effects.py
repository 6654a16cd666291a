"""What others made that the kernel would take along, unasked, with an address or a link.

All of it was seen on a running kernel (6.18) and is held by tests that compare the prediction
with what really vanished. IPv4: a route whose preferred source leaves its table's reach is
deleted; the last address of a link takes every route over it, in all tables, and every neighbour.
A link that goes down takes both families' routes, neighbours and nexthop objects, and the IPv6
addresses; of a route with legs over other links, nothing: its leg is dead until the link is up.
IPv6: the preferred source is struck out of the route; and the kernel looks for its own prefix
route by prefix and link only, so that it deletes another's where that has the lower metric.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.neighbour import neighbour_key
from holdfast.engine.kinds.route import MAIN_TABLE, pack_key, route_key
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.routes.route_decode import is_cloned, select
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.socket import NetlinkSocket

_RTM_GETROUTE, _RTM_GETNEIGH = 26, 30
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC = 1, 4, 5, 6, 7
_RTA_METRICS, _RTA_MULTIPATH, _RTA_TABLE, _RTA_VIA, _RTA_NH_ID = 8, 9, 15, 18, 30
_RTAX_LOCK, _RTAX_MTU = 1, 2
_RTNH_F_DEAD = 1
_NDA_DST, _NDA_LLADDR, _NDA_IFINDEX, _NDA_PROTOCOL, _NDA_FLAGS_EXT = 1, 2, 8, 12, 15
_NUD_PERMANENT, _NUD_NOARP = 0x80, 0x40
_NTF_EXT_LEARNED, _NTF_OFFLOADED, _NTF_EXT_MANAGED = 0x10, 0x20, 0x1

FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
_PREFSRC_HEADER = {
    4: struct.pack("=HH", 8, _RTA_PREFSRC),
    6: struct.pack("=HH", 20, _RTA_PREFSRC),
}

IsOurs = Callable[[Key], bool]


class Lost(str):
    """What goes, as it is told of others: with its holder. And which artifact that is about."""

    __slots__ = ("key", "plain")
    key: Key
    plain: str  # without the holder

    @classmethod
    def of(cls, key: Key, holder: str, before: str = "", after: str = "") -> Lost:
        """before, after: what of it goes, where not all of it does."""
        plain = f"{before}{key}{after}"
        made = cls(f"{plain} ({holder})" if holder else plain)
        made.key, made.plain = key, plain
        return made


@dataclass(frozen=True, slots=True)
class Route:
    """As much of a route as decides whether it would go."""

    key: Key
    family: int
    destination: bytes
    prefix_length: int
    table: int
    metric: int
    protocol: int
    prefsrc: bytes
    gateway: bool
    nexthop_object: bool
    legs: frozenset[int]  # indexes of the links it leads over, but for those that are down
    mtu: int  # its own, where the kernel may set it to that of the link; 0: none

    def lost(self, part: str = "") -> Lost:
        return Lost.of(self.key, tags.holder_text(self.protocol), part)

    def __str__(self) -> str:
        return self.lost()


def routes_over(
    sock: NetlinkSocket, family: int, index: int, without: tuple[int, ...] = ()
) -> list[Route]:
    """The routes over a link, in all tables; the kernel leaves out the others, but for those over
    the members of a VRF, which it counts as its own.

    Those of the protocols `without` are not taken apart: a hundred thousand may be our own.
    """
    header = bytes((FAMILY[family],)) + bytes(11) + attributes.u32(_RTA_OIF, index)
    bodies = sock.dump(_RTM_GETROUTE, header, f"IPv{family} routes of a link")
    found = _routes((body for body in bodies if body[5] not in without), family)
    # The kernel may be told not to say which links a nexthop object leads over.
    return [route for route in found if index in route.legs or not route.legs]


def routes_with_source(
    sock: NetlinkSocket,
    family: int,
    table: int,
    sources: Container[bytes],
    without: tuple[int, ...],
) -> list[Route]:
    """The routes of a table (0: all) with one of these preferred sources.

    No kernel filter exists for that, so this reads every route, and takes apart only those that
    name a source and are not of the protocols `without`: each local address is a route of the
    kernel's that names one.
    """
    named = bodies_with_source(sock, family, table, without)
    return [route for route in _routes(named, family) if route.prefsrc in sources]


def bodies_with_source(
    sock: NetlinkSocket, family: int, table: int, without: tuple[int, ...]
) -> Iterator[bytes]:
    """The routes of a table (0: all) that name a preferred source, and few that only seem to."""
    mark = _PREFSRC_HEADER[family]
    bodies = dump_routes(sock, family, table=table)
    return (body for body in bodies if body[5] not in without and mark in body)


def _routes(bodies: Iterable[bytes], family: int) -> Iterator[Route]:
    width = 4 if family == 4 else 16
    for body in bodies:
        found = attributes.parse(body, 12)
        if is_cloned(body):
            continue
        destination = found.get(_RTA_DST, bytes(width))
        table = attributes.to_int(found[_RTA_TABLE]) if _RTA_TABLE in found else body[4]
        metric = attributes.to_int(found.get(_RTA_PRIORITY, b""))
        prefix = f"{socket.inet_ntop(FAMILY[family], destination)}/{body[1]}"
        yield Route(
            key=route_key(prefix, family, table, metric),
            family=family,
            destination=destination,
            prefix_length=body[1],
            table=table,
            metric=metric,
            protocol=body[5],
            prefsrc=found.get(_RTA_PREFSRC, b""),
            gateway=_RTA_GATEWAY in found or _RTA_VIA in found or _RTA_MULTIPATH in found,
            nexthop_object=_RTA_NH_ID in found,
            legs=frozenset(_legs(found)),
            mtu=_mtu(attributes.parse(found.get(_RTA_METRICS, b""))),
        )


def _legs(found: dict[int, bytes]) -> Iterator[int]:
    if _RTA_OIF in found:
        yield attributes.to_int(found[_RTA_OIF])
    data = found.get(_RTA_MULTIPATH, b"")
    offset = 0
    while offset + 8 <= len(data):
        length, flags, _hops, index = struct.unpack_from("=HBBi", data, offset)
        if not flags & _RTNH_F_DEAD:
            yield index
        offset += max((length + 3) & ~3, 8)


def _mtu(metrics: dict[int, bytes]) -> int:
    if attributes.to_int(metrics.get(_RTAX_LOCK, b"")) & 1 << _RTAX_MTU:
        return 0
    return attributes.to_int(metrics.get(_RTAX_MTU, b""))


def foreign(route: Route, tag: int, ours: IsOurs) -> bool:
    return route.protocol not in (tags.KERNEL, tag) and not ours(route.key)


def nobody(_key: Key) -> bool:
    """Whose is none of it: what goes is told whoever made it."""
    return False


def lost_with_last_address(
    sock: NetlinkSocket, dev: str, index: int, tag: int, ours: IsOurs
) -> list[str]:
    """What others lose when a link's last IPv4 address goes. Routes over nexthop objects stay."""
    lost: list[str] = []
    for route in routes_over(sock, 4, index, (tags.KERNEL, tag)):
        if route.nexthop_object or not foreign(route, tag, ours):
            continue
        lost.append(route.lost("" if route.legs == {index} else f"the leg over {dev} of "))
    return lost + foreign_neighbours(sock, 4, dev, index, tag, ours)


def foreign_neighbours(
    sock: NetlinkSocket,
    family: int,
    dev: str,
    index: int,
    tag: int,
    ours: IsOurs,
    *,
    permanent: bool = True,
) -> list[str]:
    """Neighbours that others made on a link to stay; permanent: those that outlive the carrier,
    too."""
    header = bytes((FAMILY[family],)) + bytes(11) + attributes.u32(_NDA_IFINDEX, index)
    lost: list[str] = []
    for body in sock.dump(_RTM_GETNEIGH, header, f"neighbours on {dev}"):
        outlives = attributes.to_int(body[8:10]) & _NUD_PERMANENT
        if not is_lasting_neighbour(body) or (outlives and not permanent):
            continue
        found = attributes.parse(body, 12)
        key = neighbour_key(ipaddress.ip_address(found[_NDA_DST]), dev)
        protocol = attributes.to_int(found.get(_NDA_PROTOCOL, b""))
        if protocol not in (tag, tags.KERNEL) and not ours(key):
            lost.append(Lost.of(key, tags.holder_text(protocol)))
    return lost


def is_lasting_neighbour(body: bytes) -> bool:
    """Static, or kept fresh by the kernel because somebody said so, or learnt by a program: not
    what the kernel itself learnt, nor its own entries for what needs no asking."""
    found = attributes.parse(body, 12)
    state = attributes.to_int(body[8:10])
    if _NDA_DST not in found:
        return False
    if state & _NUD_NOARP:
        return not _needs_no_asking(ipaddress.ip_address(found[_NDA_DST]))
    return bool(state & _NUD_PERMANENT) or is_managed(body) or is_learnt_elsewhere(body)


def is_managed(body: bytes) -> bool:
    said = attributes.parse(body, 12).get(_NDA_FLAGS_EXT, b"")
    return bool(attributes.to_int(said) & _NTF_EXT_MANAGED)


def is_learnt_elsewhere(body: bytes) -> bool:
    """By a program, and not by the hardware; and it has a MAC by now."""
    learnt = body[10] & (_NTF_EXT_LEARNED | _NTF_OFFLOADED) == _NTF_EXT_LEARNED
    return learnt and _NDA_LLADDR in attributes.parse(body, 12)


def _needs_no_asking(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    broadcast = address.version == 4 and address.packed[-1] == 255
    return address.is_multicast or address.is_loopback or address.is_unspecified or broadcast


def lost_sources(
    sock: NetlinkSocket,
    family: int,
    gone: Mapping[bytes, Set[int]],
    tag: int,
    ours: IsOurs,
) -> dict[tuple[bytes, int], list[str]]:
    """Foreign routes that lose their preferred source, by that source and its VRF table.

    gone: addresses that would be nowhere any more, and the VRF tables of their links (0: none).
    IPv4 looks only in the main table, or in that of the VRF, and deletes the route. IPv6 looks in
    all tables and leaves a route without its source.
    """
    lost: dict[tuple[bytes, int], list[str]] = defaultdict(list)
    if not gone:
        return lost
    tables = {table or MAIN_TABLE for tables in gone.values() for table in tables}
    for searched in sorted(tables) if family == 4 else (0,):
        for route in routes_with_source(sock, family, searched, gone, (tags.KERNEL, tag)):
            if not foreign(route, tag, ours) or (family == 6 and route.nexthop_object):
                continue
            said = route.lost("" if family == 4 else "the preferred source of ")
            for table in gone[route.prefsrc]:
                if family == 6 or route.table == (table or MAIN_TABLE):
                    lost[route.prefsrc, table].append(said)
    return lost


def mistaken_prefix_routes(
    sock: NetlinkSocket, index: int, keys: set[bytes], table: int
) -> dict[bytes, Route]:
    """The routes that the kernel takes for its own prefix routes of IPv6 addresses: of each prefix
    the one with the lowest metric that leads straight to the link.

    keys: prefixes, packed as route keys.
    """
    header = bytes((FAMILY[6],)) + bytes(11) + attributes.u32(_RTA_OIF, index)
    bodies = sock.dump(_RTM_GETROUTE, header, "IPv6 routes of a link")
    found: dict[bytes, Route] = {}
    for route in _routes(select(bodies, 6, keys), 6):
        if route.table != (table or MAIN_TABLE) or route.gateway or route.nexthop_object:
            continue
        key = pack_key(route.destination, route.prefix_length)
        if key not in found or route.metric < found[key].metric:
            found[key] = route
    return found
