"""What was seen of the routes, packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Batch
from holdfast.engine.kinds.route import RouteTemplate, expand
from holdfast.engine.observed import Sighting
from holdfast.host.netlink import tags
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.routes.route_codec import Shape, created
from holdfast.host.netlink.routes.route_decode import Reader
from holdfast.host.netlink.routes.route_order import Wanted, same
from holdfast.host.netlink.routes.route_read import legs_of


@dataclass(slots=True)
class RouteSighting:
    """A BulkSighting: bodies are netlink payloads in the form of a dump."""

    tag: int
    indexes: Mapping[str, int]
    reader: Reader
    former: frozenset[int] = frozenset()  # tags of before
    foreign: dict[bytes, list[Sighting]] = field(default_factory=dict)
    impaired: dict[bytes, str] = field(default_factory=dict)
    exact: bool = False
    _own: set[bytes] = field(default_factory=set)
    _listed: list[Dump] = field(default_factory=list)  # own ones not yet in the set
    _packed: dict[int, tuple[Batch, list[bytes] | None]] = field(default_factory=dict)

    @property
    def tag_text(self) -> str:
        return tags.tag_text(self.tag, self.tag)

    def is_own(self, protocol: int) -> bool:
        return protocol == self.tag or protocol in self.former

    @property
    def own(self) -> set[bytes]:
        if self._listed:
            for dump in self._listed:
                self._own.update(dump.bodies())
            self._listed = []
        return self._own

    def pack(self, batch: Batch) -> list[bytes] | None:
        held = self._packed.pop(id(batch), None)
        return held[1] if held is not None else self._pack(batch)

    def take_exact(self, batches: Sequence[Batch], dumped: Mapping[int, Dump]) -> bool:
        """Are the dumped routes of each family those of the batches, one by one?"""
        for family, dump in dumped.items():
            members = [batch for batch in batches if batch.template.family == family]
            if sum(map(len, members)) != len(dump):
                return False
            shapes = [self._shape(batch) for batch in members]
            wanted = [
                Wanted(shape, batch.keys)
                for shape, batch in zip(shapes, members, strict=True)
                if shape is not None
            ]
            if len(wanted) < len(members) or not same(wanted, dump):
                return False
        self.exact, self._listed = True, list(dumped.values())
        return True

    def missing(self, batch: Batch) -> Sequence[bytes]:
        """The keys of a batch that are not there exactly as wanted.

        What was packed for this is kept for the next `pack` of the same batch, once: packing is
        the dearest part of a pass, and keeping it longer would hold a second copy of every route.
        """
        own = self.own
        if not own:
            return batch.keys
        packed = self._pack(batch)
        self._packed[id(batch)] = batch, packed
        if packed is None:
            return batch.keys
        if own.issuperset(packed):
            return ()
        return [key for key, body in zip(batch.keys, packed, strict=True) if body not in own]

    def _pack(self, batch: Batch) -> list[bytes] | None:
        shape = self._shape(batch)
        return None if shape is None else shape.bodies(batch.keys)

    def _shape(self, batch: Batch) -> Shape | None:
        shared: RouteTemplate = batch.template
        legs = legs_of(shared, self.indexes)
        return None if isinstance(legs, str) else created(shared, legs, self.tag)

    def unpack(self, body: bytes) -> tuple[RouteTemplate, bytes]:
        return self.reader.read(body)

    def single(self, template: RouteTemplate, key: bytes) -> Sighting:
        carried = template.protocol or self.tag
        tag = tags.tag_text(carried, carried)
        retag = self.tag if template.protocol else None
        return Sighting(expand(template, key), tag=tag, retag=retag)
