"""The order of operations: dependencies first, make before break, deletes backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb

_MAKE = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE)


@cache
def rank(kind: str) -> int:
    """How many layers of kinds come before this one."""
    return 1 + max((rank(other) for other in KINDS[kind].after), default=-1)


def depths(requires: Mapping[Key, Sequence[Key]]) -> dict[Key, int]:
    """How deep each key stands on others of its own kind (a VLAN on a bond on a NIC).

    Configurations are checked for cycles when they are loaded; one that gets here all the same
    is cut where it closes, and the kernel has the last word.
    """
    found: dict[Key, int] = {}

    def depth(key: Key, seen: frozenset[Key]) -> int:
        if key not in found:
            below = [
                depth(other, seen | {key})
                for other in requires.get(key, ())
                if other.kind == key.kind and other not in seen
            ]
            found[key] = 1 + max(below) if below else 0
        return found[key]

    for key in requires:
        depth(key, frozenset({key}))
    return found


def order(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Creates and updates along the dependencies, then deletes against them, then the rest.

    The other way round for what makes way: break before make, as no two can hold one port.
    """
    depth = depths(
        {op.subject.key: op.requires for op in operations if isinstance(op.subject, Artifact)}
    )

    def position(op: Operation) -> tuple[int, int, str, int]:
        level = depth[op.subject.key] if isinstance(op.subject, Artifact) else 0
        others = KINDS[op.kind].makes_way_for
        if others and op.verb is Verb.DELETE:
            return 0, min(map(rank, others)), "", level  # no kind's name comes before that
        if others and op.verb in _MAKE:
            return 1, 1, op.kind, level  # after all deletes
        if op.verb in _MAKE:
            return 0, rank(op.kind), op.kind, level
        if op.verb is Verb.DELETE:
            return 1, -rank(op.kind), op.kind, -level
        return 2, rank(op.kind), op.kind, level

    return tuple(sorted(operations, key=position))


def stages(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Ordered operations cut where a later one may depend on an earlier one.

    Operations of one stage are of one kind and independent of each other, so that a driver can
    carry them out as a batch.
    """
    depth = depths(
        {op.subject.key: op.requires for op in operations if isinstance(op.subject, Artifact)}
    )

    def stage(op: Operation) -> tuple[bool, str, int]:
        level = depth[op.subject.key] if isinstance(op.subject, Artifact) else 0
        return op.verb is Verb.DELETE, op.kind, level

    return [list(group) for _, group in groupby(operations, key=stage)]
