"""What the kernel tells of routes while a few of them are changed.

A change is told of before it is acknowledged, with the route as it stands then: whoever listens
meanwhile has seen it made, without a look at all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.engine.kinds.route import RouteTemplate, scope
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER
from holdfast.host.netlink.multicast import Lost, MulticastSocket
from holdfast.host.netlink.route_codec import RTM_DELROUTE, RTM_NEWROUTE
from holdfast.host.netlink.route_decode import family_of, key_of, metric_of, settle, table_of
from holdfast.host.netlink.socket import REPLACE, ROUTE

_IPV4_ROUTES, _IPV6_ROUTES = 7, 11  # multicast groups
_CLONED = 0x200  # a route that the kernel made of another for one destination


class Told(NamedTuple):
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

    def read(self) -> list[Told] | None:
        """All that was told until now; None where some of it was lost."""
        found: list[Told] = []
        try:
            while (data := self._sock.receive()) is not None:
                found += _messages(data)
        except Lost:
            return None
        return found


def _messages(data: bytes) -> Iterator[Told]:
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, flags, _, _ = HEADER.unpack_from(data, offset)
        if length < HEADER.size:
            return
        body = data[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3
        if kind in (RTM_NEWROUTE, RTM_DELROUTE) and not _is_cloned(body):
            (settled,) = settle([body], family_of(body))
            gone, replaced = kind == RTM_DELROUTE, bool(flags & REPLACE)
            yield Told(identity_of(settled), gone, settled, replaced)


def _is_cloned(body: bytes) -> bool:
    return bool(attributes.to_int(body[8:12]) & _CLONED)


def identity_of(body: bytes) -> bytes:
    """Scope and key of a route, as its batch has them."""
    shared = RouteTemplate(family_of(body), table_of(body), metric_of(body))
    return scope(shared) + key_of(body)
