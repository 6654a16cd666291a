"""Which operations of a plan are carried out now, and which have to wait: what failed backs off,
and what others undo again and again is fought for no longer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence, Set

from holdfast.agent.backoff import Backoff
from holdfast.agent.fights import Fights
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import document
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.route import ROUTE, identity
from holdfast.engine.partial_pass import Touched, touch
from holdfast.engine.plan import Operation
from holdfast.runtime.log import Level, Line

# Of more artifacts of a batch than this, nobody keeps books one by one: they have one cause.
MANY = 256

# A route by its identity, all of a batch by its kind and template, anything else by its key.
Name = Key | bytes | tuple[str, object]


def name_of(key: Key) -> Name:
    return identity(key) if KINDS[key.kind].bulk else key


def kind_of(name: Name) -> str:
    if isinstance(name, Key):
        return name.kind
    return name[0] if isinstance(name, tuple) else ROUTE.name


def whole(batch: Batch) -> Name:
    return batch.kind.name, batch.template


def names_in(subject: Artifact | Batch) -> Iterator[Name]:
    if isinstance(subject, Artifact):
        yield name_of(subject.key)
    elif len(subject) > MANY:
        yield whole(subject)
    else:
        scope = subject.scope
        yield from (scope + key for key in subject.keys)


def _failures(result: Result) -> Iterator[tuple[Name, Failure]]:
    subject = result.operation.subject
    if isinstance(subject, Batch) and len(result.failures) > MANY:
        yield whole(subject), result.failures[0]
        return
    for failure in result.failures:
        yield name_of(failure.key), failure


def _said(operation: Operation, failure: Failure) -> Line:
    owners = f" for {', '.join(operation.owners)}" if operation.owners else ""
    said = f"{operation.verb}-failed {failure.key}{owners}: {failure.error}"
    return Line(said, Level.ERROR)


@dataclass(slots=True)
class RetryPolicy:
    backoff: Backoff = field(default_factory=lambda: Backoff(random.uniform))
    fights: Fights = field(default_factory=lambda: Fights(random.uniform))

    def ready(self, operations: Sequence[Operation], now: float) -> Sequence[Operation]:
        """Without those that wait, and those that need something that waits."""
        if not (self.backoff.any or self.fights.any):
            return operations
        ready: list[Operation] = []
        held: set[Key] = set()
        for operation in operations:
            left = None if held.intersection(operation.requires) else self._left(operation, now)
            if left is not None:
                ready.append(left)
            elif isinstance(operation.subject, Artifact):
                held.add(operation.subject.key)
        return ready

    def _left(self, operation: Operation, now: float) -> Operation | None:
        subject = operation.subject
        if isinstance(subject, Artifact):
            return None if self.waits(name_of(subject.key), now) else operation
        if self.waits(whole(subject), now):
            return None
        scope = subject.scope
        keys = [key for key in subject.keys if not self.waits(scope + key, now)]
        if len(keys) == len(subject.keys):
            return operation
        there = operation.observed
        return (
            replace(
                operation,
                subject=replace(subject, keys=keys),
                observed=replace(there, keys=keys) if isinstance(there, Batch) else there,
            )
            if keys
            else None
        )

    def hurry(self, kinds: Set[str]) -> None:
        """Something of these kinds changed outside, and everything is looked at: what builds on
        them and failed may succeed now."""
        builds = {name for name, kind in KINDS.items() if not kinds.isdisjoint(kind.after)}
        names: Iterable[Name] = [name for name, _ in self.backoff.due()]  # type: ignore[misc]
        self.backoff.reset(name for name in names if kind_of(name) in builds)

    def waits(self, name: Name, now: float) -> bool:
        return self.backoff.waits(name, now) or self.fights.waits(name, now)

    def hear(self, results: Iterable[Result], looked: float, now: float) -> set[Key]:
        """What became of operations; answers the artifacts whose failure is news.

        looked: all that was due by then was looked at. What is no longer asked for waits no more.
        """
        overdue = {name for name, when in self.due() if when <= looked}
        news: set[Key] = set()
        failed: set[Name] = set()
        for result in results:
            missed = list(_failures(result))
            for name, failure in missed:
                if self.backoff.failed(name, _said(result.operation, failure), now):
                    news.add(failure.key)
            failed.update(name for name, _ in missed)
            if self.backoff.any or self.fights.any:
                overdue.update(names_in(result.operation.subject))
        for name in overdue - failed:
            self.backoff.done(name)
            self.fights.repaired(name, now)
        for name in failed:
            self.fights.postpone(name, now)
        return news

    def still_to_do(
        self, operations: Iterable[Operation], results: Iterable[Result], now: float
    ) -> bool:
        """Of what is left to do: that which was done, to no effect, backs off too. True where
        something is left that was not tried."""
        done = {
            name for result in results if result.ok for name in names_in(result.operation.subject)
        }
        untried = False
        for operation in operations:
            for name in names_in(operation.subject):
                if name in done:
                    first = next(document.artifacts(operation.subject, 1)).key
                    said = f"{operation.verb} {first} was done, and is still to be done"
                    self.backoff.failed(name, said, now)
                elif not self.waits(name, now):
                    untried = True
        return untried

    def troubles(self) -> list[str]:
        return [*self.backoff.standing(), *map(str, self.fights.standing())]

    def due(self) -> Iterator[tuple[Name, float]]:
        yield from self.backoff.due()  # type: ignore[misc]
        yield from self.fights.due()  # type: ignore[misc]

    def next_due(self) -> float | None:
        return min((when for _, when in self.due()), default=None)

    def overdue(self, now: float) -> Touched:
        """What is to be looked at again because its time has come; without single routes."""
        names = [name for name, when in self.due() if when <= now]
        keys = {name for name in names if isinstance(name, Key)}
        kinds = {name[0] for name in names if isinstance(name, tuple) and not isinstance(name, Key)}
        return touch(keys, kinds)

    def overdue_routes(self, now: float) -> list[bytes]:
        return [name for name, when in self.due() if when <= now and isinstance(name, bytes)]
