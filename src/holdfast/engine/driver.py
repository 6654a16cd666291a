"""The contract between the pass and the drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim
from holdfast.engine.difference import Difference
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Change, Operation, Verb

# What a driver remembers from pass to pass, in the ledger.
Memory = frozenset[str]


@dataclass(frozen=True, slots=True)
class Coming:
    """What is declared to become of an object, as far as it alone tells."""

    verb: Verb = Verb.KEEP
    changes: tuple[Change, ...] = ()  # of an update or replace

    @property
    def ends(self) -> bool:
        return self.verb in (Verb.DELETE, Verb.REPLACE)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a pass needs to know about: declared and claimed identities.

    A driver reports every object at these identities, every object that carries our tag, and
    nothing else it does not need: a million foreign routes must not matter.
    """

    keys: frozenset[Key] = frozenset()
    batches: tuple[Batch, ...] = ()
    claims: Mapping[Key, Claim] = field(default_factory=dict)
    # By its name, what each driver was to remember; it is not in it where nobody knows.
    remembered: Mapping[str, Memory] = field(default_factory=dict)
    # What is declared to become of an object, as it was seen. What others would lose by that may be
    # dear to find out, and is asked of no object that stays as it is.
    coming: Callable[[Artifact], Coming] = lambda _seen: Coming()
    # What is to be there under a key, for objects that have to be compared with all of it; None
    # where nothing is.
    declared: Callable[[Key], Artifact | None] = lambda _key: None
    # Keys of bulk artifacts, for people who ask about them: all that have such a key are reported,
    # whatever the rest of their identity and whoever made them, and no others.
    bulk_keys: frozenset[bytes] = frozenset()
    # Identities of bulk artifacts that others were at since the last look, by whoever listens all
    # along; None where nobody does.
    heard: frozenset[bytes] | None = None
    # Only drivers of these kinds are asked; None: all of them.
    kinds: frozenset[str] | None = None

    def named_kinds(self) -> frozenset[str]:
        """The kinds of what is declared or claimed."""
        named = {key.kind for keys in (self.keys, self.claims) for key in keys}
        return frozenset(named.union(batch.kind.name for batch in self.batches))


@dataclass(frozen=True, slots=True)
class Failure:
    """One object that an operation could not bring about."""

    key: Key
    error: str  # the system's own words: errno text and extended ack
    exists: bool = False  # an exclusive create met something foreign
    # Something of another name is in its way, which may be what shall go: the same VLAN.
    obstructed: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one operation. `done` counts objects; `failures` names the others."""

    operation: Operation
    done: int
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    # What claims must hold to tell ours from others' next time, where the tag alone does not.
    remember: Mapping[Key, Fields] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def others_stay(self) -> bool:
        """Ours is as declared, and something of others' is in it still."""
        return bool(self.remember)


class Driver:
    """Observes and changes one family of artifacts.

    observe: raises DriverError when what it saw is not complete. Never returns part of the truth.
    apply: carries out operations of its kinds in the order given and answers for each one, in the
    same order; it never raises for what a single object did. Create is exclusive: what exists
    already is a Failure with `exists`. Delete re-checks or lets the kernel check that the object
    is still the one planned for; what is already gone counts as done.
    memory: the name under which the ledger keeps what it has to remember; "" for nothing. Memories
    may get lost, or be joined with those of another ledger: more than is true must do no harm, and
    a driver that finds none in `Scope.remembered` looks everywhere.
    """

    memory = ""

    def observe(self, scope: Scope) -> Observed:
        raise NotImplementedError

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        raise NotImplementedError

    def to_remember(self, planned: Sequence[Operation], before: Memory | None) -> Memory | None:
        """All that it has to remember from now on; it is durable before these are carried out.
        before: what it remembers now; None where nobody knows, and then None leaves it so."""
        raise NotImplementedError

    def sweep(self, key: Key) -> None:
        """Nobody writes this object now: what an interrupted write left beside it may go, where it
        can be reached."""

    def settle(self, marks: Mapping[Key, str]) -> None:
        """The claims on these objects are durable now: the marks on them may go."""

    def content(self, seen: Artifact) -> bytes:
        """What stands behind the fields of an object, secrets among it, where its kind is
        `MadeOf.CONTENT`. OSError or ValueError where it is no longer what was seen."""
        raise TypeError(f"the fields of {seen.key} hold all of it")

    def difference(self, operation: Operation) -> Difference:
        """What differs in the content of an object, where its kind has `digests`. DriverError,
        OSError or ValueError where it cannot be told."""
        raise TypeError(f"the fields of {operation.kind}s hold all of it")

    def close(self) -> None:
        """Whatever it holds open ends."""
