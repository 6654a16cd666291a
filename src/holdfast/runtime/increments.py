"""The door for sources that declare resource by resource: what is checked before a batch is stored.

A batch is checked as a part is, for its resources alone: all that is wrong with it is told at once.
Then it is merged with the rest; what would not be in force is not stored, nor is what would keep
out a resource that is. All of a batch is stored or nothing, unless it asks for `each`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from holdfast.config.part import Amendment, Declared, Id, Part, Raw, id_of
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import Refused
from holdfast.resources import registry
from holdfast.resources.dynamic import contribution
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.merger import unnamed
from holdfast.resources.dynamic.source_name import parse_source, plugin_of
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.runtime import part_checks
from holdfast.runtime.sources import MOST_SOURCES, Stored
from holdfast.state.declared import Declaring, Write
from holdfast.state.ledger import Ledger

# A merge of so many takes seconds, and happens whenever the startup file changes.
MOST_RESOURCES = 20_000
_TOGETHER = "not stored, because others of its batch are refused"


class State(StrEnum):
    DECLARED = "declared"
    UNCHANGED = "unchanged"  # it is declared so already
    WITHDRAWN = "withdrawn"
    NOT_DECLARED = "not-declared"  # and so there was nothing to withdraw
    REFUSED = "refused"  # nothing of it was stored


@dataclass(frozen=True, slots=True)
class Batch:
    source: str
    put: tuple[Raw, ...] = ()
    withdraw: tuple[Id, ...] = ()
    each: bool = False  # what is refused does not keep out the others
    begin: bool = False  # a sync: what is not put again until it is complete is withdrawn
    complete: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    id: str  # "IPv4Route/office"; "resources[3]" where it has no name
    state: State
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    source: str
    generation: int  # of what the source declares now
    outcomes: tuple[Outcome, ...]

    @property
    def refused(self) -> bool:
        return any(outcome.state is State.REFUSED for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Merged:
    effective: Effective
    stored: Stored


class Merging(Protocol):
    """How what is stored becomes the effective config, with a batch more."""

    def amended(
        self, known: Merged, part: Part, amendment: Amendment, given: Sequence[Resource]
    ) -> Effective | None:
        """Without merging everything; None where only that can tell."""

    def take(self, effective: Effective) -> None:
        """One that it made is in force from here on."""


@dataclass(slots=True)
class Register:
    """What one source declares by increments."""

    about: Declaring
    part: Part
    documents: dict[int, Raw] = field(init=False)  # by number
    numbers: dict[Id, int] = field(init=False)

    def __post_init__(self) -> None:
        found = zip(self.part.numbers or (), self.part.resources, strict=True)
        self.documents = dict(found)
        self.numbers = {id_of(one): number for number, one in self.documents.items()}

    def take(self, about: Declaring, amendment: Amendment | None) -> None:
        self.about = about
        if amendment is None:
            return
        for number in amendment.withdrawn:
            del self.numbers[id_of(self.documents.pop(number))]
        for declared in amendment.put:
            self.documents[declared.number] = declared.document
            self.numbers[id_of(declared.document)] = declared.number
        self.part = self.amended(amendment, self.documents)

    def after(self, amendment: Amendment) -> Part:
        documents = dict(self.documents)
        for number in amendment.withdrawn:
            del documents[number]
        documents.update((declared.number, declared.document) for declared in amendment.put)
        return self.amended(amendment, documents)

    def amended(self, amendment: Amendment, documents: Mapping[int, Raw]) -> Part:
        # Numbers rise: a new one is the last, and one that is there keeps its place.
        return replace(
            self.part,
            generation=amendment.generation,
            observed=amendment.observed,
            resources=tuple(documents.values()),
            numbers=tuple(documents),
        )


def registers(stored: Stored, declaring: Iterable[Declaring]) -> dict[str, Register]:
    parts = {part.source: part for part in stored.parts if part.by_increments}
    found = {}
    for about in declaring:
        part = parts.get(about.source)
        if part is None:
            part = Part(about.source, about.generation, about.observed, None, numbers=())
        found[about.source] = Register(about, part)
    return found


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A batch, once it was looked at by itself."""

    outcomes: dict[str, Outcome]
    amendment: Amendment | None  # None: nothing changes
    given: tuple[Resource, ...]  # what is put and not as it was
    asserted: tuple[int, ...]  # put as it was

    @property
    def refused(self) -> bool:
        return any(outcome.state is State.REFUSED for outcome in self.outcomes.values())


@dataclass(slots=True)
class Batches:
    """Batches one after the other, and what comes of them: written together at the end."""

    ledger: Ledger
    startup: Router | None  # None: there is no valid one, and what would be in force is unknown
    now: float
    merged: Merged
    registers: dict[str, Register]
    last: int  # the highest number given out
    merging: Merging | None = None  # None: everything is merged
    amended: bool = True  # nothing had to be merged as a whole
    _proposed: Effective | None = None  # made by `merging`
    _writes: list[Write] = field(default_factory=list)

    def take(self, batch: Batch) -> Answer:
        """Raises HoldfastError for what is no batch."""
        if batch.complete:
            self.write()  # what was asserted is asked of the ledger
        register = self._register(batch.source)
        prepared, effective = self._prepared(batch, register, {})
        stops = batch.dry_run or (prepared.refused and not batch.each)
        changes = prepared.amendment is not None or batch.begin or batch.complete
        if not stops and (changes or self._renews(batch.source, register)):
            self._take(batch, register, prepared, effective)
        return Answer(batch.source, register.about.generation, tuple(prepared.outcomes.values()))

    def write(self) -> None:
        """Before anybody is told of it."""
        if self._writes:
            self.ledger.write_declared(self._writes)
            self._writes.clear()

    def _renews(self, source: str, register: Register) -> bool:
        """Where it is in force for a time alone, or asserts what is there in a sync."""
        if register.about.syncing:
            return True
        policy = self._policy(source)
        bounded = policy is not None and (
            policy.spec.ttl or (policy.spec.allow is not None and policy.spec.allow.lifetime)
        )
        return bool(bounded and register.documents)

    def _policy(self, source: str) -> Resource | None:
        found = self.startup.resources if self.startup is not None else ()
        admitting = registry.having(found, lambda kind: kind.admits_parts)
        return next(
            (resource for resource in admitting if resource.spec.contributor == source), None
        )

    def _register(self, source: str) -> Register:
        try:
            parse_source(source)
        except ValueError as error:
            raise Refused(str(error)) from None
        if plugin_of(source):
            raise Refused(
                f"{source}: a plugin hands in whole parts, by its runs; others have a source such"
                " as Owner/ci"
            )
        known = self.registers.get(source)
        whole = [part for part in self.merged.stored.parts if part.source == source]
        generation = max((part.generation for part in whole), default=0)
        part = next((part for part in whole if not part.by_increments), None)
        if (
            part is not None
            and not part.expired(self.now)
            and (known is None or not known.documents)
        ):
            raise Refused(
                f"{source} handed in a whole part, {part.ref}, which is in force: withdraw it"
                f" (`holdfast dynamic withdraw {source}`) before it declares by increments"
            )
        if known is None:
            live = sum(1 for register in self.registers.values() if register.documents)
            if live >= MOST_SOURCES:
                raise Refused(f"{MOST_SOURCES} sources contribute already: withdraw one of them")
            about = Declaring(source, generation, self.now)
            known = Register(about, Part(source, generation, self.now, None, numbers=()))
            self.registers[source] = known
        if known.about.generation < generation:
            known.about = replace(known.about, generation=generation)
        return known

    def _prepared(
        self, batch: Batch, register: Register, refused: Mapping[str, tuple[str, ...]]
    ) -> tuple[_Prepared, Effective | None]:
        """Looked at by itself, and then with all the rest. refused: known already."""
        prepared = self._alone(batch, register, refused)
        stops = prepared.refused and not batch.each
        if stops or prepared.amendment is None or self.startup is None:
            return prepared, None
        if self._policy(batch.source) is None:
            every = dict.fromkeys(prepared.outcomes, (unnamed(batch.source),))
            if every.keys() - refused.keys():
                return self._prepared(batch, register, {**every, **refused})
        part = register.after(prepared.amendment)
        effective = self._merge(part, prepared)
        found = dict(self._objections(batch.source, effective, prepared))
        if not found:
            return prepared, effective
        return self._prepared(batch, register, {**refused, **found})

    def _merge(self, part: Part, prepared: _Prepared) -> Effective:
        assert self.startup is not None and prepared.amendment is not None  # noqa: S101
        if self.merging is not None:
            done = self.merging.amended(self.merged, part, prepared.amendment, prepared.given)
            if done is not None:
                self._proposed = done
                return done
        self._proposed = None
        stored = self.merged.stored.with_part(part)
        return stored.merge(self.startup, self.now, self.merged.effective)

    def _objections(
        self, source: str, effective: Effective, prepared: _Prepared
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Why what is put would not be in force, or would keep others out."""
        before = self.merged.effective
        known = {(one.source, one.id) for one in before.refused}
        put = {resource.id for resource in prepared.given}
        mine = {one.id: one.reasons for one in effective.refused if one.source == source}
        for name in put & mine.keys():
            yield name, mine[name]
        others = [
            one
            for one in effective.refused
            if (one.source, one.id) not in known and not (one.source == source and one.id in put)
        ]
        if others and not put & mine.keys():
            first = others[0]
            reason = f"with it {first.source} {first.id} would be refused: {first.reasons[0]}"
            yield from ((name, (reason,)) for name in put)

    def _alone(
        self, batch: Batch, register: Register, refused: Mapping[str, tuple[str, ...]]
    ) -> _Prepared:
        outcomes: dict[str, Outcome] = {}
        put: list[Declared] = []
        given: list[Resource] = []
        asserted: list[int] = []
        withdrawn: dict[int, None] = {}
        last = self.last
        for at, raw in enumerate(batch.put):
            number = register.numbers.get(_id(raw) or ("", ""))
            name, reasons, resource = _read(batch.source, at, raw, number or last + 1)
            if name in outcomes:
                reasons = (*reasons, "is in the batch twice")
            reasons = refused.get(name, reasons)
            if reasons or resource is None:
                outcomes[name] = Outcome(name, State.REFUSED, reasons)
            elif number is not None and register.documents[number] == raw:
                outcomes[name] = Outcome(name, State.UNCHANGED, self._standing(batch.source, name))
                asserted.append(number)
            else:
                last += number is None
                outcomes[name] = Outcome(name, State.DECLARED)
                put.append(Declared(number or last, raw))
                given.append(resource)
        for one in batch.withdraw:
            name, number = "/".join(one), register.numbers.get(one)
            if name in outcomes:
                reason = ("is put and withdrawn in one batch",)
                outcomes[name] = Outcome(name, State.REFUSED, reason)
            elif number is None:
                outcomes[name] = Outcome(name, State.NOT_DECLARED)
            else:
                withdrawn[number] = None
                outcomes[name] = Outcome(name, State.WITHDRAWN)
        if batch.complete:
            kept = {*asserted, *(declared.number for declared in put)}
            for number in self._swept(batch, register):
                if number not in kept and number not in withdrawn:
                    withdrawn[number] = None
                    name = "/".join(id_of(register.documents[number]))
                    outcomes.setdefault(name, Outcome(name, State.WITHDRAWN))
        if len(register.documents) + last - self.last > MOST_RESOURCES:
            raise Refused(f"{batch.source} would declare more than {MOST_RESOURCES} resources")
        if any(outcome.state is State.REFUSED for outcome in outcomes.values()) and not batch.each:
            _refuse_together(outcomes)
        amendment = None
        if put or withdrawn:
            generation = register.about.generation + 1
            ordered = tuple(sorted(put, key=lambda declared: declared.number))
            amendment = Amendment(batch.source, generation, self.now, ordered, tuple(withdrawn))
        return _Prepared(outcomes, amendment, tuple(given), tuple(asserted))

    def _swept(self, batch: Batch, register: Register) -> Iterable[int]:
        if batch.begin:
            return tuple(register.documents)
        if not register.about.syncing:
            raise Refused(
                f"{batch.source} has begun no sync that could be complete: begin one, and put"
                " again what is to stay"
            )
        return self.ledger.unasserted(batch.source)

    def _standing(self, source: str, name: str) -> tuple[str, ...]:
        """Why something that is declared is not in force."""
        found = self.merged.effective.refused
        return next((one.reasons for one in found if (one.source, one.id) == (source, name)), ())

    def _take(
        self, batch: Batch, register: Register, prepared: _Prepared, effective: Effective | None
    ) -> None:
        amendment = prepared.amendment
        syncing = (register.about.syncing or batch.begin) and not batch.complete
        generation = amendment.generation if amendment else register.about.generation
        about = Declaring(batch.source, generation, self.now, syncing)
        self._writes.append(Write(about, amendment, batch.begin, prepared.asserted))
        if amendment is not None:
            self.last = max((self.last, *(declared.number for declared in amendment.put)))
        register.take(about, amendment)
        register.part = replace(register.part, observed=self.now)
        stored = self.merged.stored.with_part(register.part)
        self.merged = Merged(effective or self.merged.effective, stored)
        if effective is None:
            return
        if self.merging is not None and effective is self._proposed:
            self.merging.take(effective)
        else:
            self.amended, self.merging = False, None  # it goes by what was before


def _refuse_together(outcomes: dict[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        if outcome.state is not State.REFUSED:
            outcomes[name] = Outcome(name, State.REFUSED, (_TOGETHER,))


def _id(raw: Raw) -> Id | None:
    try:
        return id_of(raw)
    except (KeyError, TypeError):
        return None


def _read(
    source: str, at: int, raw: Raw, number: int
) -> tuple[str, tuple[str, ...], Resource | None]:
    """What it is called, everything that is wrong with it by itself, and what it says."""
    trouble = part_checks.trouble_of_resource(raw)
    named = _id(raw)
    name = "/".join(named) if named is not None and not trouble else f"resources[{at}]"
    if trouble:
        return name, (trouble,), None
    part = Part(source, 1, 0.0, None, (raw,), numbers=(number,))
    read = contribution.read(part, 0)
    reasons = tuple(
        f"{problem.path}: {problem.message}" if problem.path else problem.message
        for problem in read.problems
    )
    return name, reasons, read.resources[0] if read.resources else None


def declare(
    ledger: Ledger, batch: Batch, stored: Stored, startup: Router | None, now: float
) -> tuple[Answer, Merged]:
    """One batch, where no daemon runs. startup: None where none is valid."""
    before = stored.merge(startup, now) if startup is not None else _NOTHING
    batches = Batches(
        ledger,
        startup,
        now,
        Merged(before, stored),
        registers(stored, ledger.declaring()),
        ledger.last_number(),
    )
    answer = batches.take(batch)
    batches.write()
    return answer, batches.merged


_NOTHING = Effective(None, None)  # type: ignore[arg-type] # nothing is asked of it but what is refused
