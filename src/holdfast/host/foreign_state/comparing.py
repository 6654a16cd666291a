"""What of a record is there exactly as it was."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.link import link_key
from holdfast.host.foreign_state import addresses, groups, links, neighbours, routes
from holdfast.host.foreign_state.record import Kind, Record
from holdfast.host.foreign_state.replay import Again, Indexes, Unmapped
from holdfast.host.netlink import attributes
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import RTM_GETADDR
from holdfast.host.netlink.links import forwarding, link_names
from holdfast.host.netlink.links.forwarding import GroupEntry
from holdfast.host.netlink.links.link_codec import IFLA_MTU
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.socket import NetlinkSocket


def unchanged(sock: NetlinkSocket, record: Record) -> frozenset[Key]:
    """By what `side_effects` calls it. That may go for a moment, as it is put back; what others
    changed since may not."""
    known = link_names.read_names(sock)
    now, then = Indexes(known.names, known.indexes), Indexes(record.names, known.indexes)
    found: set[Key] = set()

    def same(kind: Kind, again: Again, there: Iterable[bytes]) -> set[bytes]:
        wanted = _messages(record.others[kind], again, then)
        return {body for body in there if _message(body, again, now) in wanted}

    if record.others.get(Kind.ADDRESS):
        for body in same(Kind.ADDRESS, addresses.again, dump_addresses(sock)):
            dev = known.names.get(attributes.to_int(body[4:8]), "")
            found.add(address_codec.decode(body, dev).key)
    if record.others.get(Kind.ROUTE):
        there = dump_recorded_routes(sock, record)
        found.update(map(routes.key, same(Kind.ROUTE, routes.again, there)))
        mtus = link_mtus(sock)
        followed = [body for body in there if follows_mtu(body, mtus)]
        found.update(map(routes.key, same(Kind.ROUTE, _without_mtu, followed)))
    if record.others.get(Kind.NEIGHBOUR):
        for body in same(Kind.NEIGHBOUR, neighbours.again, neighbours.dump(sock)):
            found.add(neighbours.key(body, known.names.get(neighbours.index(body), "")))
    if record.others.get(Kind.FORWARDING):
        for body in same(Kind.FORWARDING, neighbours.again, forwarding.dump(sock)):
            found.add(forwarding.key(body, known.names.get(forwarding.index(body), "")))
    if record.others.get(Kind.GROUP):
        entries = (entry.body for entry in forwarding.groups(sock))
        for entry in map(GroupEntry, same(Kind.GROUP, groups.again, entries)):
            bridge, port = (known.names.get(each, "") for each in (entry.bridge, entry.port))
            found.add(entry.key(bridge, port))
    for link in map(links.decode, record.others.get(Kind.LINK, ())):
        if known.indexes.get(link.name) == link.index:
            found.add(link_key(link.name))
    return frozenset(found)


def dump_addresses(sock: NetlinkSocket) -> list[bytes]:
    bodies = sock.dump(RTM_GETADDR, bytes(8), "addresses")
    return [body for body in bodies if body[0] in address_codec.FAMILIES]


def link_mtus(sock: NetlinkSocket) -> dict[int, int]:
    """By the index of the link."""
    found = map(links.decode, link_names.dump_links(sock))
    return {link.index: link.number(IFLA_MTU) for link in found}


def follows_mtu(body: bytes, mtus: Mapping[int, int]) -> bool:
    """Whether a route has the MTU of its link: the kernel sets that for one that had more than the
    link got, and from then on it goes up with it."""
    own = routes.mtu(body)
    return body[0] == socket.AF_INET6 and own in {mtus.get(leg, 0) for leg in routes.legs(body)}


def _without_mtu(body: bytes, indexes: Indexes) -> bytes:
    return routes.without_mtu(routes.again(body, indexes))


def dump_recorded_routes(sock: NetlinkSocket, record: Record) -> list[bytes]:
    """Of the makers whose routes were recorded: a million of others need not be looked at."""
    makers = {body[5] for body in record.others.get(Kind.ROUTE, ())}
    return [
        body
        for protocol in sorted(makers)
        for version in (4, 6)
        for body in dump_routes(sock, version, protocol=protocol)
    ]


def _messages(bodies: Iterable[bytes], again: Again, indexes: Indexes) -> set[bytes]:
    return {message for body in bodies if (message := _message(body, again, indexes))}


def _message(body: bytes, again: Again, indexes: Indexes) -> bytes:
    try:
        return again(body, indexes)
    except Unmapped:
        return b""
