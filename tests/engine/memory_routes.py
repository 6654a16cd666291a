"""Routes observed from memory: bodies are JSON, so that a failing test can be read."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field

from holdfast.engine.artifact import Batch
from holdfast.engine.kinds import route
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from holdfast.engine.observed import Sighting


def pack_prefix(prefix: str) -> bytes:
    address, _, length = prefix.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return route.pack_key(socket.inet_pton(family, address), int(length))


def body(shared: RouteTemplate, key: bytes) -> bytes:
    return json.dumps([astuple(shared), key.hex()]).encode()


def identity(shared: RouteTemplate, key: bytes) -> bytes:
    return route.scope(shared) + key


@dataclass(frozen=True)
class MemoryRoutes:
    """A BulkSighting. `links` is what exists: a batch through any other link packs to None."""

    own: frozenset[bytes] = frozenset()
    foreign: Mapping[bytes, Sequence[Sighting]] = field(default_factory=dict)
    links: frozenset[str] | None = None  # None: every link is there
    impaired: Mapping[bytes, str] = field(default_factory=dict)
    tag: int = 72
    tag_text: str = "protocol 72"
    exact: bool = False

    @classmethod
    def of(
        cls,
        own: Iterable[tuple[RouteTemplate, bytes]] = (),
        foreign: Iterable[tuple[RouteTemplate, bytes, str]] = (),
        links: frozenset[str] | None = None,
    ) -> MemoryRoutes:
        others: dict[bytes, list[Sighting]] = {}
        for shared, key, holder in foreign:
            seen = Sighting(route.expand(shared, key), holder=holder)
            others.setdefault(identity(shared, key), []).append(seen)
        return cls(frozenset(body(*one) for one in own), others, links)

    def pack(self, batch: Batch) -> list[bytes] | None:
        shared: RouteTemplate = batch.template
        devices = {nexthop.dev for nexthop in shared.nexthops if nexthop.dev}
        if self.links is not None and not devices <= self.links:
            return None
        return [body(shared, key) for key in batch.keys]

    def unpack(self, packed: bytes) -> tuple[RouteTemplate, bytes]:
        (family, table, metric, kind, nexthops, *rest), key = json.loads(packed)
        legs = tuple(Nexthop(*leg) for leg in nexthops)
        return RouteTemplate(family, table, metric, kind, legs, *rest), bytes.fromhex(key)

    def single(self, template: RouteTemplate, key: bytes) -> Sighting:
        carried = template.protocol or self.tag
        retag = self.tag if template.protocol else None
        return Sighting(route.expand(template, key), tag=f"protocol {carried}", retag=retag)
