"""Networks of ours, as a driver would say they were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.engine.artifact import Batch
from holdfast.engine.kinds import bgp_network
from holdfast.engine.kinds.bgp_network import NetworkTemplate
from holdfast.engine.observed import Sighting


class Networks:
    """A BulkSighting of networks that are ours."""

    tag = 0
    tag_text = "map HF-…"
    exact = False
    foreign: ClassVar[Mapping[bytes, Sequence[Sighting]]] = {}
    impaired: ClassVar[Mapping[bytes, str]] = {}

    def __init__(self, *there: tuple[NetworkTemplate, bytes]) -> None:
        self.there = {repr(one).encode(): one for one in there}

    @property
    def own(self) -> frozenset[bytes]:
        return frozenset(self.there)

    def pack(self, batch: Batch) -> list[bytes]:
        return [repr((batch.template, key)).encode() for key in batch.keys]

    def unpack(self, body: bytes) -> tuple[NetworkTemplate, bytes]:
        return self.there[body]

    def single(self, template: NetworkTemplate, key: bytes) -> Sighting:
        return Sighting(bgp_network.expand(template, key), tag=self.tag_text)
