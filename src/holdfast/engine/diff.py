"""The diff: what differs between what is wanted and what was seen.

One engine, two ways of knowing what is ours. Bulk objects carry a kernel tag, so whatever is
tagged and not wanted is an extra (two-way). The others are ours by proof, which may be a claim
of an earlier pass (three-way); `ownership` decides that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import ArtifactKind, Fields, Value
from holdfast.engine.intent import BulkIntent
from holdfast.engine.observed import BulkSighting
from holdfast.engine.plan import Change


def changes(kind: ArtifactKind, desired: Fields, seen: Fields) -> tuple[Change, ...]:
    """The declared fields that differ, and those that nobody may have. What else is not declared
    is not compared."""
    return tuple(
        Change(field, seen.get(field), desired.get(field))
        for field in kind.fields
        if (field in desired or field in kind.surplus)
        and not kind.matches(field, desired.get(field), seen.get(field))
    )


def retagging(kind: ArtifactKind, carried: Value, tag: Value) -> tuple[Change, ...]:
    """The tag of something of ours, where another is given by now."""
    return (Change(kind.writer_field, carried, tag),) if tag is not None else ()


@dataclass(frozen=True, slots=True)
class BulkDiff:
    missing: tuple[tuple[BulkIntent, Sequence[bytes]], ...]  # wanted, and not there exactly so
    present: tuple[tuple[BulkIntent, Sequence[bytes]], ...]  # wanted, and seen exactly so
    extra: Iterable[bytes]  # tagged bodies that nothing wants exactly so


def bulk(intents: Sequence[BulkIntent], sighting: BulkSighting) -> BulkDiff:
    """Set algebra over packed bodies: no object per artifact, whatever their number."""
    if sighting.exact:
        return BulkDiff((), tuple((intent, intent.batch.keys) for intent in intents), ())
    own = sighting.own
    if not own:
        return BulkDiff(tuple((intent, intent.batch.keys) for intent in intents), (), ())
    missing: list[tuple[BulkIntent, Sequence[bytes]]] = []
    present: list[tuple[BulkIntent, Sequence[bytes]]] = []
    wanted: list[list[bytes]] = []
    for intent in intents:
        keys = intent.batch.keys
        bodies = sighting.pack(intent.batch)
        if bodies is None:
            missing.append((intent, keys))
            continue
        wanted.append(bodies)
        if own.issuperset(bodies):
            present.append((intent, keys))
            continue
        absent = [key for key, body in zip(keys, bodies, strict=True) if body not in own]
        missing.append((intent, absent))
        if len(absent) < len(keys):
            there = [key for key, body in zip(keys, bodies, strict=True) if body in own]
            present.append((intent, there))
    return BulkDiff(tuple(missing), tuple(present), own.difference(*wanted))
