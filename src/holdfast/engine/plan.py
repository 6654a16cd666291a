"""The plan: data that says what will be done, why, and by what right."""

from __future__ import annotations

from enum import StrEnum

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Artifact, Batch, Key, Value
from holdfast.engine.observed import Along


class Verb(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    KEEP = "keep"
    FORGET = "forget"  # stop claiming it; the object itself is not touched

    @property
    def changes_host(self) -> bool:
        return self in (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.DELETE)

    @property
    def past(self) -> str:
        return _PAST[self]


_PAST = {
    Verb.CREATE: "created",
    Verb.UPDATE: "updated",
    Verb.REPLACE: "replaced",
    Verb.DELETE: "deleted",
    Verb.KEEP: "kept",
    Verb.FORGET: "forgotten",
}

AWAITED = "kept: what shall take its place waits"
CARRIES = "kept: what stands on it waits for what shall take its place"


class Risk(StrEnum):
    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs: what it is, what it shall be."""

    field: str
    before: Value
    after: Value


Changes = tuple[Change, ...]
Cost = tuple[Risk, str]  # how likely somebody is to notice, and what


@dataclass(frozen=True, slots=True)
class Operation:
    verb: Verb
    subject: Artifact | Batch  # as desired; for delete and forget: as observed or claimed
    owners: tuple[str, ...]
    reason: str
    origin: str = ""
    proof: str = ""  # by what right: "protocol 72", "created in generation 3"
    risk: Risk = Risk.NONE
    risk_note: str = ""
    changes: tuple[Change, ...] = ()
    requires: tuple[Key, ...] = ()
    # Update, replace, delete: what is there now; of a batch, a batch with the same keys.
    observed: Artifact | Batch | None = None
    nonce: str = ""  # create: the mark by which a pending claim finds its object again
    # Settings: no claim proves that it is ours to set; that it is declared is the right to do so.
    by_declaration: bool = False
    revert: bool = False  # settings: the claim on it asks for it to be set back some day
    sets_back: bool = False  # settings: nothing declares it any more, and that day has come
    # What others lose by it, each with its holder. More than that it must not take.
    losses: tuple[str, ...] = ()
    along: tuple[Along, ...] = ()  # what of ours the kernel takes with it

    @property
    def kind(self) -> str:
        return self.subject.kind.name if isinstance(self.subject, Batch) else self.subject.key.kind

    @property
    def count(self) -> int:
        return len(self.subject) if isinstance(self.subject, Batch) else 1

    @property
    def cleans_up(self) -> bool:
        """Does it take something away, if only a value?"""
        return self.verb is Verb.DELETE or self.sets_back


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something of ours that nothing declares any more."""

    subject: Artifact | Batch
    owners: tuple[str, ...]  # who declared it, where that is known
    removed: bool
    reason: str  # why it is, or is not, removed
    proof: str = ""
    losses: tuple[str, ...] = ()  # what others would lose with it, which is why it is kept


@dataclass(frozen=True, slots=True)
class Conflict:
    """A declared artifact whose identity something foreign holds with other fields."""

    desired: Artifact
    owners: tuple[str, ...]
    origin: str
    observed: Artifact
    holder: str
    changes: tuple[Change, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A declared artifact that exists and is not ours: what `adopt` offers."""

    desired: Artifact
    owners: tuple[str, ...]
    origin: str
    observed: Artifact
    holder: str
    changes: tuple[Change, ...]  # empty: it can be adopted as it is
    unproven: bool = False  # it carries our tag where that is no proof


@dataclass(frozen=True, slots=True)
class Marked:
    """What carries the mark of a Holdfast that nothing says was this one."""

    subject: Artifact | Batch
    mark: str  # "protocol 72"


@dataclass(frozen=True, slots=True)
class Held:
    """A resource, or one artifact of it, that this plan does nothing about yet."""

    owner: str
    origin: str
    reason: str
    key: Key | None = None
    required: bool = False  # declared so: without it no pass has converged
    losses: tuple[str, ...] = ()  # what others would lose, which is why it is blocked
    impaired: Key | None = None  # ours and as declared, but others are in its way
    unknown: bool = False  # it could not be observed, which is why it is blocked
    fault: bool = False  # what it asks for cannot be told for a fault of Holdfast's


@dataclass(frozen=True, slots=True)
class Plan:
    operations: tuple[Operation, ...]  # in the order they will be carried out
    orphans: tuple[Orphan, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    pending: tuple[Held, ...] = ()  # waits for something that is not there yet
    blocked: tuple[Held, ...] = ()  # cannot go on until somebody decides or repairs
    unknown: tuple[tuple[str, str], ...] = ()  # kinds not observed, or not all of it, and why
    refusal: str = ""  # why this plan must not be applied without being told twice
    recoverable: tuple[Marked, ...] = ()  # left alone until somebody says that it is ours

    # What is asked for again and again, of which there may be few among very many.
    _changes: list[tuple[Operation, ...]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )

    _forgets: list[tuple[Operation, ...]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )

    @property
    def forgets(self) -> tuple[Operation, ...]:
        if not self._forgets:
            self._forgets.append(tuple(op for op in self.operations if op.verb is Verb.FORGET))
        return self._forgets[0]

    @property
    def changes(self) -> tuple[Operation, ...]:
        if not self._changes:
            self._changes.append(tuple(op for op in self.operations if op.verb.changes_host))
        return self._changes[0]

    def with_operations(self, changes: tuple[Operation, ...], kept: tuple[Operation, ...]) -> Plan:
        """With others in their place, of which it is known which ones change something; none of
        them forgets a claim."""
        made = replace(self, operations=(*changes, *kept), refusal="")
        made._changes.append(changes)
        made._forgets.append(())
        return made
