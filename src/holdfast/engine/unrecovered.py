"""Objects that carry the mark of a Holdfast where nothing says that it was this one.

A tag proves *a* Holdfast. Until a network namespace is known to be this installation's, what is
tagged in it counts as others' do: it is named, never changed, never deleted, and taken back when
somebody says so (`holdfast adopt --recover`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import ownership
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import BulkSighting, Observed, Sighting
from holdfast.engine.plan import Marked
from holdfast.engine.unmatched import Unmatched


def marked(observed: Observed, claims: Mapping[Key, Claim], epoch: str) -> tuple[Marked, ...]:
    """What carries our tag, and no claim of ours is on."""
    return (*_singles(observed, claims, epoch), *_batches(observed, claims))


def carrying(
    tag: str, observed: Observed, claims: Mapping[Key, Claim], epoch: str
) -> Iterator[Key]:
    """What carries a tag of the kernel's, and no claim of ours is on."""
    for one in marked(observed, claims, epoch):
        if isinstance(one.subject, Artifact):
            if one.mark == tag:
                yield one.subject.key
            continue
        seen = observed.bulk[one.subject.kind.name]
        for key in one.subject.keys:
            if seen.single(one.subject.template, key).tag == tag:
                yield one.subject.artifact(key).key


def without_tags(observed: Observed) -> Observed:
    """The same as it looks to somebody to whom a tag proves nothing."""
    sightings = {key: tuple(map(_untagged, several)) for key, several in observed.sightings.items()}
    bulk = {name: _Untagged.of(KINDS[name], seen) for name, seen in observed.bulk.items()}
    return replace(observed, sightings=sightings, bulk=bulk)


def _untagged(sighting: Sighting) -> Sighting:
    if not sighting.tag:
        return sighting
    return replace(sighting, tag="", holder=_holder(sighting.tag), unproven=True, retag=None)


def _holder(tag: str) -> str:
    return f"{tag}: the mark of a Holdfast, and nothing in this ledger says that it was this one"


def _singles(observed: Observed, claims: Mapping[Key, Claim], epoch: str) -> Iterator[Marked]:
    for key, several in observed.sightings.items():
        for sighting in several:
            if sighting.tag and not ownership.proof(
                KINDS[key.kind], _untagged(sighting), claims.get(key), epoch
            ):
                yield Marked(sighting.artifact, sighting.tag)


def _batches(observed: Observed, claims: Mapping[Key, Claim]) -> Iterator[Marked]:
    for name, seen in observed.bulk.items():
        kind = KINDS[name]
        left = Unmatched(kind, seen.own, seen.unpack)
        for key, claim in claims.items():
            if key.kind == name:
                left.take(*kind.packing.identify(claim.fields))
        yield from (Marked(batch, seen.tag_text) for batch in left.batches())


@dataclass(frozen=True, slots=True)
class _Untagged:
    """A BulkSighting of which nothing is ours by its tag."""

    seen: BulkSighting
    foreign: Mapping[bytes, Sequence[Sighting]]
    tag: int
    tag_text: str
    exact: bool = False
    own: frozenset[bytes] = frozenset()
    impaired: Mapping[bytes, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: ArtifactKind, seen: BulkSighting) -> _Untagged:
        foreign = {identity: list(several) for identity, several in seen.foreign.items()}
        for body in seen.own:
            template, key = seen.unpack(body)
            artifact = kind.packing.expand(template, key)
            # Whoever adopts one has to know it again by its writer.
            fields = {kind.writer_field: seen.tag, **artifact.fields}
            sighting = Sighting(
                Artifact(artifact.key, fields), holder=_holder(seen.tag_text), unproven=True
            )
            foreign.setdefault(kind.packing.scope(template) + key, []).append(sighting)
        return cls(seen, foreign, seen.tag, seen.tag_text, impaired=seen.impaired)

    def pack(self, batch: Batch) -> list[bytes] | None:
        return self.seen.pack(batch)

    def unpack(self, body: bytes) -> tuple[Any, bytes]:
        return self.seen.unpack(body)

    def single(self, template: Any, key: bytes) -> Sighting:
        return self.seen.single(template, key)
