"""What a plan would leave the router without. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb

_LEAVES = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.KEEP)


def lost(operations: Sequence[Operation]) -> dict[str, Artifact]:
    """What the router has and would have no more, by name, with an artifact that it had for it.

    Nothing is lost with an artifact that another takes the place of: an address by another of its
    family on the same link, or by itself on another one.
    """
    gone = [one for op in operations if op.verb is Verb.DELETE for one in _weighed(op)]
    if not gone:
        return {}
    left = [one for op in operations if op.verb in _LEAVES for one in _weighed(op)]
    names = set(map(named, left))
    moved = set(_addresses(left))
    return {
        named(one): one
        for one in gone
        if named(one) not in names and one.fields.get("address") not in moved
    }


def named(artifact: Artifact) -> str:
    """What the router is without, without this and all like it; empty for most."""
    return KINDS[artifact.key.kind].vital(artifact)


def _addresses(artifacts: Iterable[Artifact]) -> Iterator[object]:
    return (one.fields["address"] for one in artifacts if "address" in one.fields)


def _weighed(operation: Operation) -> Iterator[Artifact]:
    """Those of its artifacts that are vital. Of many routes a default route has the least key:
    none of a million others need be looked at."""
    subject = operation.subject
    if isinstance(subject, Batch):
        subject = subject.artifact(min(subject.keys))
    if named(subject):
        yield subject
