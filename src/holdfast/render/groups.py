"""Alike things side by side, so that 100 000 routes are a few lines and a number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import groupby, islice
from typing import Generic, TypeVar

from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.difference import NOT_READ, Differences
from holdfast.engine.plan import Marked, Operation, Orphan

# Enough to recognise what a group is about.
SHOWN = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    first: T  # stands for all of them
    shown: tuple[Artifact, ...]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.shown)


def operations(
    given: Iterable[Operation], differences: Differences = NOT_READ
) -> Iterator[Group[Operation]]:
    """What has a difference of its own to show is like no other."""

    def key(operation: Operation) -> Hashable:
        subject = operation.subject
        difference = differences.get(subject.key) if isinstance(subject, Artifact) else None
        own = difference is not None and (difference.hunks or difference.note)
        return _alike(operation), subject.key if own and isinstance(subject, Artifact) else None

    return _group(given, key if differences else _alike)


def orphans(given: Iterable[Orphan]) -> Iterator[Group[Orphan]]:
    return _group(given, lambda orphan: (orphan.owners, orphan.removed, orphan.reason))


def marked(given: Iterable[Marked]) -> Iterator[Group[Marked]]:
    return _group(given, lambda one: (_kind(one.subject), one.mark))


def _kind(subject: Artifact | Batch) -> str:
    return subject.key.kind if isinstance(subject, Artifact) else subject.kind.name


def alike(given: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[tuple[list[T], int]]:
    """The first few of each run of alike items, and how many there are."""
    for _, run in groupby(given, key):
        items = list(run)
        yield items[:SHOWN], len(items)


def _alike(operation: Operation) -> Hashable:
    return (
        operation.verb,
        operation.kind,
        operation.owners,
        operation.origin,
        operation.reason,
        operation.proof,
        operation.risk_note,
        operation.changes,
        operation.losses,
        operation.along,
    )


_Subjected = TypeVar("_Subjected", Operation, Orphan, Marked)


def _group(
    given: Iterable[_Subjected], key: Callable[[_Subjected], Hashable]
) -> Iterator[Group[_Subjected]]:
    for _, run in groupby(given, key):
        items = list(run)
        heads = (a for item in items for a in document.artifacts(item.subject, SHOWN))
        count = sum(document.count(item.subject) for item in items)
        yield Group(items[0], tuple(islice(heads, SHOWN)), count)
