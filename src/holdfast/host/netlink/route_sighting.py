"""What was seen of the routes, packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.engine.artifact import Batch
from holdfast.engine.kinds.route import RouteTemplate
from holdfast.engine.observed import Sighting
from holdfast.host.netlink import tags
from holdfast.host.netlink.route_codec import created
from holdfast.host.netlink.route_decode import Reader
from holdfast.host.netlink.route_read import Gateways, legs_of


@dataclass(slots=True)
class RouteSighting:
    """A BulkSighting: bodies are netlink payloads in the form of a dump."""

    tag: int
    indexes: Mapping[str, int]
    reader: Reader
    gateways: Gateways
    foreign: dict[bytes, list[Sighting]] = field(default_factory=dict)
    exact: bool = False
    _own: set[bytes] = field(default_factory=set)
    _listed: list[bytes] = field(default_factory=list)  # own ones not yet in the set
    _packed: dict[int, tuple[Batch, list[bytes] | None]] = field(default_factory=dict)

    @property
    def tag_text(self) -> str:
        return tags.tag_text(self.tag, self.tag)

    @property
    def own(self) -> set[bytes]:
        if self._listed:
            self._own.update(self._listed)
            self._listed = []
        return self._own

    def pack(self, batch: Batch) -> list[bytes] | None:
        held = self._packed.pop(id(batch), None)
        return held[1] if held is not None else self._pack(batch)

    def take_exact(self, batches: Sequence[Batch], dumped: list[bytes]) -> bool:
        """Are the dumped bodies those of the batches, one by one?

        The kernel dumps routes in the order of their addresses. Where they are declared in that
        order, comparing two lists is many times faster than looking a million of them up.
        """
        if sum(map(len, batches)) != len(dumped):
            return False
        packed: list[bytes] = []
        for batch in batches:
            packed += self._pack(batch) or ()
        if packed != dumped:
            return False
        self.exact, self._listed = True, dumped
        return True

    def missing(self, batch: Batch) -> Sequence[bytes]:
        """The keys of a batch that are not there exactly as wanted.

        What was packed for this is kept for the next `pack` of the same batch, once: packing is
        the dearest part of a pass, and keeping it longer would hold a second copy of every route.
        """
        packed = self._pack(batch)
        self._packed[id(batch)] = batch, packed
        if packed is None:
            return batch.keys
        if self.own.issuperset(packed):
            return ()
        own = self.own
        return [key for key, body in zip(batch.keys, packed, strict=True) if body not in own]

    def _pack(self, batch: Batch) -> list[bytes] | None:
        shared: RouteTemplate = batch.template
        legs = legs_of(shared, self.indexes, self._link_of)
        if isinstance(legs, str):
            return None
        return created(shared, legs, self.tag).bodies(batch.keys)

    def _link_of(self, gateway: str) -> str:
        """Routes outlive the address that made their gateway reachable; they still say its link."""
        found = self.gateways.link(gateway)
        if found:
            return found
        for shared in {self.reader.read(body)[0] for body in self.own}:
            for nexthop in shared.nexthops:
                if nexthop.gateway == gateway and nexthop.dev in self.indexes:
                    return nexthop.dev
        return ""

    def unpack(self, body: bytes) -> tuple[RouteTemplate, bytes]:
        return self.reader.read(body)
