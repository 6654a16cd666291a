"""What of a record is there exactly as it was."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.engine.artifact import Key
from holdfast.host.netlink import address_codec, attributes, names
from holdfast.host.netlink.address_codec import RTM_GETADDR
from holdfast.host.netlink.route_read import dump_routes
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.others import addresses, links, neighbours, routes
from holdfast.host.others.record import Kind, Record
from holdfast.host.others.replay import Again, Indexes, Unmapped


def unchanged(sock: NetlinkSocket, record: Record) -> frozenset[Key]:
    """By what `side_effects` calls it. That may go for a moment, as it is put back; what others
    changed since may not."""
    known = names.read_names(sock)
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
    if record.others.get(Kind.NEIGHBOUR):
        for body in same(Kind.NEIGHBOUR, neighbours.again, neighbours.dump(sock)):
            found.add(neighbours.key(body, known.names.get(neighbours.index(body), "")))
    for link in map(links.decode, record.others.get(Kind.LINK, ())):
        if known.indexes.get(link.name) == link.index:
            found.add(Key("link", link.name))
    return frozenset(found)


def dump_addresses(sock: NetlinkSocket) -> list[bytes]:
    bodies = sock.dump(RTM_GETADDR, bytes(8), "addresses")
    return [body for body in bodies if body[0] in address_codec.FAMILIES]


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
