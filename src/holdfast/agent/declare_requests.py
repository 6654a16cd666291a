"""Batches of increments that callers handed in: the next round takes all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Failure
from holdfast.engine.plan import Operation, Plan
from holdfast.errors import HoldfastError
from holdfast.runtime.increments import Answer, Batch, State

Failures = Sequence[tuple[Operation, Failure]]


class Seen(StrEnum):
    """What a pass saw of a resource that was put or withdrawn."""

    CONVERGED = "converged"
    PENDING = "pending"  # it waits, or somebody has to decide
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a caller is told."""

    answer: Answer
    seen: Mapping[str, tuple[Seen, str]] = field(default_factory=dict)  # by id, and why


@dataclass(frozen=True, slots=True)
class DeclareRequest:
    batch: Batch
    wait: bool  # for the pass that follows
    told: asyncio.Future[Declared]
    kept: asyncio.Future[Answer]  # once it is stored

    def stored(self, answer: Answer | HoldfastError) -> bool:
        """Whether the caller goes on waiting."""
        if isinstance(answer, HoldfastError):
            self.fail(answer)
            return False
        if not self.kept.done():
            self.kept.set_result(answer)
        if self.wait and any(outcome.state is not State.REFUSED for outcome in answer.outcomes):
            return True
        self._tell(Declared(answer))
        return False

    def passed(self, answer: Answer, left: Plan, failures: Failures) -> None:
        self._tell(Declared(answer, seen(answer, left, failures)))

    def fail(self, error: Exception) -> None:
        for one in (self.kept, self.told):
            if not one.done():
                one.set_exception(error)
                one.exception()  # whoever waits is told by one of them

    def _tell(self, declared: Declared) -> None:
        if not self.told.done():
            self.told.set_result(declared)


@dataclass(slots=True)
class DeclareRequests:
    """On the event loop."""

    _waiting: list[DeclareRequest] = field(default_factory=list)
    # Stored, and waiting for a pass.
    _stored: list[tuple[DeclareRequest, Answer]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, request: DeclareRequest) -> None:
        self._waiting.append(request)

    def take(self) -> list[DeclareRequest]:
        taken, self._waiting = self._waiting, []
        return taken

    def put_back(self, requests: Iterable[DeclareRequest]) -> None:
        self._waiting[:0] = requests

    def stored(
        self, requests: Iterable[DeclareRequest], answers: Iterable[Answer | HoldfastError]
    ) -> None:
        for request, answer in zip(requests, answers, strict=True):
            if request.stored(answer) and isinstance(answer, Answer):
                self._stored.append((request, answer))

    def passed(self, left: Plan, failures: Failures = ()) -> None:
        """left: what a pass of all that was stored has left to do."""
        stored, self._stored = self._stored, []
        for request, answer in stored:
            request.passed(answer, left, failures)

    def failed(self, error: Exception) -> None:
        """What they declared is stored, and the pass of it was not carried out."""
        stored, self._stored = self._stored, []
        for request, _ in stored:
            request.fail(error)


def seen(answer: Answer, left: Plan, failures: Failures) -> dict[str, tuple[Seen, str]]:
    """Of each resource that is not refused."""
    troubles = _troubles(left, {outcome.id for outcome in answer.outcomes})
    for operation, failure in failures:
        for owner in operation.owners:
            troubles[owner] = (Seen.FAILED, failure.error)
    return {
        outcome.id: troubles.get(outcome.id, (Seen.CONVERGED, ""))
        for outcome in answer.outcomes
        if outcome.state is not State.REFUSED
    }


def _troubles(left: Plan, ids: set[str]) -> dict[str, tuple[Seen, str]]:
    found: dict[str, tuple[Seen, str]] = {}
    for change in left.changes:
        for owner in ids.intersection(change.owners):
            found[owner] = Seen.PENDING, f"{change.verb} is still to be done: {change.reason}"
    for held in (*left.pending, *left.blocked):
        if held.owner in ids:
            found[held.owner] = Seen.PENDING, held.reason
    for conflict in left.conflicts:
        for owner in ids.intersection(conflict.owners):
            why = f"{conflict.desired.key} is held by {conflict.holder}"
            found[owner] = Seen.FAILED, why
    for candidate in left.candidates:
        for owner in ids.intersection(candidate.owners):
            why = f"{candidate.desired.key} is there, and not ours ({candidate.holder})"
            found[owner] = Seen.FAILED if candidate.changes else Seen.PENDING, why
    for orphan in left.orphans:
        for owner in ids.intersection(orphan.owners):
            what = orphan.subject.key if isinstance(orphan.subject, Artifact) else "a route"
            found[owner] = Seen.PENDING, f"{what} is still there: {orphan.reason}"
    return found
