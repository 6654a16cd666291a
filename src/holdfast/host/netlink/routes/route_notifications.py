"""What the kernel tells of routes while a few of them are changed.

A change is told of before it is acknowledged, with the route as it stands then: whoever listens
meanwhile has seen it made, without a look at all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from holdfast.engine.kinds.route import RouteTemplate, scope
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER
from holdfast.host.netlink.multicast import Lost, MulticastSocket
from holdfast.host.netlink.routes.route_codec import (
    DST_END,
    HEAD,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_DELROUTE,
    RTM_NEWROUTE,
)
from holdfast.host.netlink.routes.route_decode import family_of, is_cloned, key_of, settle
from holdfast.host.netlink.socket import REPLACE, ROUTE

_IPV4_ROUTES, _IPV6_ROUTES = 7, 11  # multicast groups


class RouteNotice(NamedTuple):
    identity: bytes  # scope + key
    gone: bool
    body: bytes  # as in a dump
    replaced: bool = False  # it took the place of another


class RouteListener:
    def __init__(self) -> None:
        self._sock = MulticastSocket(ROUTE, (_IPV4_ROUTES, _IPV6_ROUTES))

    def __enter__(self) -> RouteListener:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._sock.close()

    def read(self) -> list[RouteNotice] | None:
        """All that was told until now; None where some of it was lost."""
        found: list[RouteNotice] = []
        try:
            while (data := self._sock.receive()) is not None:
                found += _messages(data)
        except Lost:
            return None
        return found


def _messages(data: bytes) -> Iterator[RouteNotice]:
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, flags, _, _ = HEADER.unpack_from(data, offset)
        if length < HEADER.size:
            return
        body = data[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3
        if kind in (RTM_NEWROUTE, RTM_DELROUTE) and not is_cloned(body):
            (settled,) = settle([body], family_of(body))
            gone, replaced = kind == RTM_DELROUTE, bool(flags & REPLACE)
            yield RouteNotice(identity_of(settled), gone, settled, replaced)


def identity_of(body: bytes) -> bytes:
    """Scope and key of a route, as its batch has them."""
    family = family_of(body)
    tail = DST_END[family] if body[1] else HEAD
    return _scope(family, body[12:HEAD], body[tail:]) + key_of(body)


# Routes of one gateway differ in their destination alone, and come by the thousand.
@lru_cache(maxsize=1024)
def _scope(family: int, table: bytes, tail: bytes) -> bytes:
    found = attributes.parse(table + tail)
    metric = attributes.to_int(found.get(RTA_PRIORITY, b""))
    return scope(RouteTemplate(family, attributes.to_int(found[RTA_TABLE]), metric))
