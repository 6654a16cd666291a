"""Drift: what was found changed from outside since the last look, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from holdfast.agent.fights import Fight, Fights, Undoing
from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.retry_policy import MANY, Name, name_of, names_in
from holdfast.agent.watch.hint import Writer
from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import document, event_kinds
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.driver import Result
from holdfast.engine.event_kinds import EventKind
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.link import LINK, link_key
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.reconcile import Report
from holdfast.state import journal
from holdfast.state.events import Event
from holdfast.state.values import JSON

# Repairs of one thing, without a pause between them, that are each told of.
_TOLD = 10


@dataclass(slots=True)
class Before:
    """What was declared, and what was left to do, when there was a look last."""

    desired: Desired
    plan: Plan
    _left: set[Name] = field(default_factory=set)
    _held: set[Name] | None = None  # not asked for yet

    def __post_init__(self) -> None:
        self._left |= _names(self.plan)

    def then(self, desired: Desired, report: Report) -> Before:
        """After another pass. What that could not see may be as it was left: no drift."""
        unseen = self._left | _names(report.before) if report.after.unknown else set()
        return Before(desired, report.after, unseen)

    def held(self, operation: Operation) -> bool:
        """Did others have something in its place?"""
        if self._held is None:
            conflicts = (conflict.desired.key for conflict in self.plan.conflicts)
            candidates = (candidate.desired.key for candidate in self.plan.candidates)
            self._held = {name_of(key) for key in (*conflicts, *candidates)}
        return bool(self._held) and not self._held.isdisjoint(names_in(operation.subject))

    def drifted(self, operations: Sequence[Operation], desired: Desired) -> list[Operation]:
        """Those that neither the configuration asks for, nor what is left from before."""
        found = [op for op in operations if self._left.isdisjoint(names_in(op.subject))]
        if desired is self.desired or not found:
            return found
        before, now = _Declared(self.desired), _Declared(desired)
        return [op for op in found if before.of(op.subject) == now.of(op.subject)]


def _names(plan: Plan) -> set[Name]:
    return {name for op in plan.changes for name in names_in(op.subject)}


class _Declared:
    """What is declared of an artifact; of a batch, whether it comes from the very same lines."""

    def __init__(self, desired: Desired) -> None:
        self._single: dict[Key, list[object]] = {}
        self._many: set[int] = set()
        for intent in desired.intents:
            if isinstance(intent, BulkIntent):
                self._many.add(id(intent.batch.keys))
            else:
                said = (intent.action, intent.artifact.fields)
                self._single.setdefault(intent.artifact.key, []).append(said)

    def of(self, subject: Artifact | Batch) -> object:
        return self._single.get(subject.key) if isinstance(subject, Artifact) else self._many


@dataclass(slots=True)
class Drift:
    """Of one pass."""

    gathered: PendingHints
    known: Fights
    held: Callable[[Operation], bool]  # by others, before it was found
    beside: bool = False  # another command of Holdfast's applied something since the last look
    found: list[Operation] = field(default_factory=list)
    fights: list[Fight] = field(default_factory=list)

    def find(self, operations: Sequence[Operation], now: float) -> None:
        """operations: those that drift led to."""
        for key in self.gathered.keys:
            if key.kind == LINK.name:
                self.known.link_changed(key, now)
        for operation in operations:
            if self._own(operation):
                continue  # a trial that was taken back, a command beside us: no doing of others'
            self.found.append(operation)
            how = _habit(operation, held=self.held(operation))
            links = _links(operation) if operation.verb is Verb.CREATE else frozenset()
            for name, artifact, said in _named(operation.subject):
                writer = self.gathered.writer(name, operation.kind)
                if writer is None and self.known.went_with(name, links):
                    continue
                suffers = KINDS[artifact.key.kind].urgent(artifact, operation)
                undoing = Undoing(said, operation.owners, how, writer, suffers)
                fight = self.known.undone(name, undoing, now)
                if fight is not None:
                    self.fights.append(fight)

    def _own(self, operation: Operation) -> bool:
        """Was Holdfast itself the last that was seen at it? A command of it that has ended, as one
        that was killed has, is nobody any more: what nobody else was seen at is taken for its."""
        writers = (self.gathered.writer(n, operation.kind) for n in names_in(operation.subject))
        if self.beside:
            return all(writer is None or writer.own or not writer.name for writer in writers)
        return all(writer is not None and writer.own for writer in writers)

    def split(self, results: Sequence[Result]) -> tuple[list[Result], list[Result]]:
        """Repairs of drift, of this look or of one before, and the rest."""
        subjects = {name for op in self.found for name in names_in(op.subject)}
        mine: list[Result] = []
        others: list[Result] = []
        for result in results:
            names = names_in(result.operation.subject)
            repairs = any(name in subjects or self.known.is_undone(name) for name in names)
            repairs = repairs and result.ok and not result.others_stay
            (mine if repairs else others).append(result)
        return mine, others

    def events(
        self, mine: Sequence[Result], others: Report, generation: int, news: Set[Key], now: float
    ) -> list[Event]:
        """What is to be told of a pass: of repairs, and of the rest. news: failures that were not
        told of yet."""
        told = tuple(
            result
            for result in others.results
            if result.ok or result.done or any(failure.key in news for failure in result.failures)
        )
        repaired = {name for result in mine for name in names_in(result.operation.subject)}
        took = round((now - self.gathered.since) * 1000) if self.gathered else None
        return [
            *_told_once(journal.happened(replace(others, results=told), generation)),
            *(
                self._event(event_kinds.REPAIRED, operation, generation, {"milliseconds": took})
                for operation in _once(result.operation for result in mine)
                if self._is_told(operation)
            ),
            *(
                self._event(event_kinds.DRIFT, op, generation, {})
                for op in self.found
                if not repaired.issuperset(names_in(op.subject)) and not self._fought(op)
            ),
            *(fight_event(fight, generation) for fight in self.fights),
        ]

    def conflicts(self, before: Before | None, left: Plan, generation: int) -> list[Event]:
        """What others have put in the place of ours, since the last look."""
        known = (
            {conflict.desired.key for conflict in before.plan.conflicts}
            if before is not None
            else None
        )
        return [
            Event(
                event_kinds.CONFLICT,
                str(conflict.desired.key),
                f"is held by {conflict.holder or 'somebody else'} now",
                generation,
                {
                    "owners": list(conflict.owners),
                    "origin": conflict.origin,
                    "writer": _who(
                        self.gathered.writer(
                            name_of(conflict.desired.key), conflict.desired.key.kind
                        )
                    ),
                },
            )
            for conflict in left.conflicts
            if known is not None and conflict.desired.key not in known
        ]

    def _is_told(self, operation: Operation) -> bool:
        """What is undone hundreds of times in a row is told of less and less often."""
        row = max(map(self.known.row, names_in(operation.subject)), default=0)
        return row <= _TOLD or row.bit_count() == 1 or self._fought(operation)

    def _fought(self, operation: Operation) -> bool:
        return all(map(self.known.in_fight, names_in(operation.subject)))

    def _event(
        self, kind: EventKind, operation: Operation, generation: int, more: dict[str, JSON]
    ) -> Event:
        first = next(document.artifacts(operation.subject, 1)).key
        count = operation.count
        subject = str(first) if count == 1 else f"{count} {operation.kind}s, the first {first.name}"
        name = next(iter(_named(operation.subject)))[0]
        writer = self.gathered.writer(name, operation.kind)
        data: dict[str, JSON] = {
            "owners": list(operation.owners),
            "origin": operation.origin,
            "count": count,
            "verb": operation.verb.value,
            "fields": {
                change.field: {"found": _json(change.before), "declared": _json(change.after)}
                for change in operation.changes
            },
            "writer": _who(writer),
            "row": self.known.row(name),
        }
        by = f" by {writer}" if writer is not None else ""
        found = _finding(operation, held=self.held(operation))
        return Event(kind, subject, f"{found}{by}", generation, data | more)


def _once(operations: Iterable[Operation]) -> Iterator[Operation]:
    """What is undone while a pass runs is repaired more than once in it."""
    seen: set[Name] = set()
    for operation in operations:
        names = set(names_in(operation.subject))
        if not names <= seen:
            yield operation
        seen |= names


def _told_once(events: Iterable[Event]) -> Iterable[Event]:
    """What failed in one round of a pass fails in the next one, too."""
    return {(event.kind, event.subject, event.message): event for event in events}.values()


def fight_event(fight: Fight, generation: int) -> Event:
    undoing = fight.undoing
    data: dict[str, JSON] = {
        "owners": list(undoing.owners),
        "times": fight.times,
        "writer": _who(undoing.writer),
    }
    if fight.over:
        return Event(
            event_kinds.FIGHT_OVER, undoing.subject, "nobody undoes it any more", generation, data
        )
    after = (
        f"as {undoing.urgent} depends on it, it is put back each time"
        if undoing.urgent
        else "from now on it is put back less and less often"
    )
    message = f"{undoing.who} {undoing.how} again and again, {fight.times} times so far; {after}"
    return Event(event_kinds.FIGHT, undoing.subject, message, generation, data)


def _named(subject: Artifact | Batch) -> Iterator[tuple[Name, Artifact, str]]:
    """What books are kept of, with an artifact to judge it by and what it is called. Of very many
    routes a default route has the least key: none of the others need be looked at."""
    if isinstance(subject, Batch) and len(subject) > MANY:
        first = subject.artifact(subject.keys[0]).key.name
        said = f"{len(subject)} {subject.kind.name}s, the first {first}"
        yield next(names_in(subject)), subject.artifact(min(subject.keys)), said
        return
    for name, artifact in zip(names_in(subject), document.artifacts(subject), strict=True):
        yield name, artifact, str(artifact.key)


def _links(operation: Operation) -> frozenset[Key]:
    """That it stands on, itself or by its address."""
    names = (KINDS[key.kind].carrying_link(key) for key in operation.requires)
    return frozenset(link_key(name) for name in names if name)


def _finding(operation: Operation, *, held: bool) -> str:
    match operation.verb:
        case Verb.CREATE:
            return "its place was left" if held else "was deleted"
        case Verb.DELETE:
            return "was added"
        case _:
            fields = " and ".join(change.field for change in operation.changes)
            return f"{fields} changed" if fields else "was changed"


def _habit(operation: Operation, *, held: bool) -> str:
    match operation.verb:
        case Verb.CREATE:
            return "takes its place and leaves it" if held else "deletes it"
        case Verb.DELETE:
            return "adds it"
        case _:
            said = (f"{change.field} to {change.before}" for change in operation.changes)
            return f"sets {' and '.join(said)}"


def _who(writer: Writer | None) -> JSON:
    if writer is None:
        return None
    return {"pid": writer.pid, "name": writer.name, "of": writer.of}


def _json(value: object) -> JSON:
    return list(value) if isinstance(value, tuple) else value  # type: ignore[return-value]
