"""Partial passes: the part of the planning that what was touched has to do with. Pure.

A partial pass looks at some kinds, or at some artifacts of a kind, and leaves the rest to what an
earlier look knew. For what it looks at it comes to the same operations as a full pass would, while
nothing else changed. Wherever that cannot be told, it raises FullPassNeeded before anything is
changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import ownership, reconcile
from holdfast.engine.artifact import Artifact, Batch, Key, PartialLook
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.driver import Memory, Result, Scope
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.order import order
from holdfast.engine.plan import Held, Operation, Plan, Verb
from holdfast.engine.reconcile import Claims, Host, Report

_WHOLE = frozenset(name for name, kind in KINDS.items() if kind.partial_look is PartialLook.KIND)
# The others are left to full passes: much hangs on a link, and a service is what its files, its
# unit and its process are together.
ALONE = frozenset(
    name for name, kind in KINDS.items() if kind.partial_look is not PartialLook.NOTHING
)
_MAKING = frozenset({Verb.CREATE, Verb.UPDATE})


class FullPassNeeded(Exception):  # noqa: N818 (no error)
    """Why only a look at everything can tell. Nothing was changed for it."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What may have changed outside since the last look."""

    kinds: frozenset[str] = frozenset()
    keys: frozenset[Key] = frozenset()  # of other kinds, one by one

    @property
    def all_kinds(self) -> frozenset[str]:
        return self.kinds | {key.kind for key in self.keys}

    def __contains__(self, key: Key) -> bool:
        return key.kind in self.kinds or key in self.keys

    def joined(self, other: Touched) -> Touched:
        return Touched(self.kinds | other.kinds, self.keys | other.keys)


def touch(keys: Iterable[Key], kinds: Iterable[str] = ()) -> Touched:
    whole = frozenset(kinds)
    return Touched(whole, frozenset(key for key in keys if key.kind not in whole))


@dataclass(slots=True)
class PassContext:
    """What a pass declared, saw and left, for partial passes to stand on."""

    desired: Desired
    plan: Plan  # what is left to do
    standing: frozenset[Key] = frozenset()  # what others require, and is there
    # Where they stand in `desired`: the order of what is declared is that of what is done.
    _by_kind: dict[str, list[int]] = field(default_factory=dict)
    _by_key: dict[Key, list[int]] = field(default_factory=dict)

    def part(self, touched: Touched) -> Desired:
        """What is declared of it; whoever waits for a fact waits all the same."""
        intents = self.desired.intents
        if not self._by_kind and intents:
            self._index()
        places = [place for kind in touched.kinds for place in self._by_kind.get(kind, ())]
        places += [place for key in touched.keys for place in self._by_key.get(key, ())]
        return Desired(tuple(intents[place] for place in sorted(places)), self.desired.waiting)

    def _index(self) -> None:
        by_kind: dict[str, list[int]] = defaultdict(list)
        by_key: dict[Key, list[int]] = defaultdict(list)
        for place, intent in enumerate(self.desired.intents):
            if isinstance(intent, BulkIntent):
                by_kind[intent.batch.kind.name].append(place)
            else:
                by_kind[intent.artifact.key.kind].append(place)
                by_key[intent.artifact.key].append(place)
        self._by_kind, self._by_key = dict(by_kind), dict(by_key)


def context_after(
    desired: Desired, plan: Plan, seen: Mapping[Key, Sequence[Sighting]]
) -> PassContext:
    """After a full pass: its plan of what is left, and what its last look saw."""
    lacking = {held.key for held in (*plan.pending, *plan.blocked)}
    lacking.update(conflict.desired.key for conflict in plan.conflicts)
    # What is blocked may be there all the same, and is then not in the way of others.
    lacking.difference_update(
        op.subject.key
        for op in plan.operations
        if isinstance(op.subject, Artifact) and op.verb in _MAKING | {Verb.KEEP, Verb.REPLACE}
    )
    required = {key for intent in desired.intents for key in intent.requires}
    there = (key for key in required if seen.get(key) and key not in lacking)
    return PassContext(desired, plan, frozenset(there))


@dataclass(slots=True)
class PartialPass:
    """The host and the claims of a Pass over what was touched. It makes and it mends; whatever
    would take something away is left to a full pass, which sees everything and counts it."""

    context: PassContext
    touched: Touched
    host: Host
    ledger: Claims
    epoch: str = ""
    desired: Desired = field(default_factory=lambda: Desired(()))

    def __post_init__(self) -> None:
        """Raises FullPassNeeded."""
        self.epoch = self.host.epoch
        beyond = self.touched.all_kinds - ALONE
        if beyond:
            raise FullPassNeeded(f"{', '.join(sorted(beyond))} cannot be looked at alone")
        if self.context.plan.unknown or self.context.plan.refusal:
            raise FullPassNeeded("the last look was not of everything")
        if ownership.elsewhere(self.ledger.claims().values(), self.epoch):
            raise FullPassNeeded("the ledger has claims of another network namespace")
        self.desired = self.context.part(self.touched)

    def approve(self, plan: Plan) -> None:
        """Raises FullPassNeeded where the plan is not for a partial pass to carry out."""
        if plan.unknown:
            raise FullPassNeeded(f"{plan.unknown[0][0]} could not be observed")
        for op in plan.operations:
            if op.cleans_up or op.verb not in _MAKING | {Verb.KEEP}:
                subject = op.subject.key if isinstance(op.subject, Artifact) else f"{op.kind}s"
                raise FullPassNeeded(f"{op.verb} {subject}")
        if plan.refusal:
            raise FullPassNeeded(plan.refusal)

    def settled(self, report: Report) -> Report:
        """The report as of everything, which the next partial pass stands on."""
        self.context.plan = joined(self.context.plan, report.after, self.touched)
        return replace(report, after=self.context.plan)

    # What a Pass asks of its host.

    def observe(self, scope: Scope) -> Observed:
        touched = self.touched
        kinds = touched.all_kinds
        whole = {key.kind for key in touched.keys} & _WHOLE
        claims = self.ledger.claims()
        if whole:
            # A driver that looks at all of a kind has to know of all that is declared of it: the
            # rest would look like orphans.
            wide = Touched(touched.kinds | whole, touched.keys)
            mine = {key: claim for key, claim in claims.items() if key in wide}
            wider = reconcile.scope(self.context.part(wide), mine, scope.remembered)
            scope = replace(wider, heard=scope.heard)
        seen = self.host.observe(replace(scope, kinds=kinds))
        sightings = {
            key: many
            for key, many in seen.sightings.items()
            if key in touched or _speaks_against(key, many, claims)
        }
        return replace(seen, sightings=sightings, standing=self.context.standing)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return self.host.apply(operations, progress)

    def to_remember(
        self, planned: Sequence[Operation], remembered: Mapping[str, Memory]
    ) -> Mapping[str, Memory]:
        return self.host.to_remember(planned, remembered)

    def sweep(self, claims: Iterable[Claim]) -> None:
        self.host.sweep(claims)

    def settle(self, claims: Iterable[Claim]) -> None:
        self.host.settle(claims)

    # What a Pass asks of its ledger: the claims on what was touched, and on nothing else.

    def claims(self) -> dict[Key, Claim]:
        claims = self.ledger.claims()
        if not self.touched.kinds:
            return {key: claims[key] for key in self.touched.keys if key in claims}
        return {key: claim for key, claim in claims.items() if key in self.touched}

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        self.ledger.write_claims(put, remove)

    @property
    def lasting(self) -> Lasting:
        return self.ledger.lasting

    def remembered(self) -> Mapping[str, Memory]:
        return self.ledger.remembered()

    def remember(self, driver: str, memory: Memory) -> None:
        self.ledger.remember(driver, memory)


def _speaks_against(key: Key, many: Sequence[Sighting], claims: Mapping[Key, Claim]) -> bool:
    """May others' artifact be in the way of one that was touched?"""
    if KINDS[key.kind].objection is None or key in claims:
        return False
    return not any(sighting.tag for sighting in many)


def joined(last: Plan, fresh: Plan, touched: Touched) -> Plan:
    """What is left to do, by the last look at everything and a later one at what was touched."""
    last = _without_forgotten(last)
    # Batches have no key to tell them by: what is held without one comes from whichever look saw
    # them last.
    bulk = any(KINDS[kind].bulk for kind in touched.kinds)
    if _telling(last, touched, bulk) == _telling(fresh, touched, bulk):
        return last
    return replace(
        last,
        operations=order(
            [
                *(op for op in last.operations if not _about(op, touched)),
                *(op for op in fresh.operations if _about(op, touched)),
            ]
        ),
        orphans=(
            *(orphan for orphan in last.orphans if not _of(orphan.subject, touched)),
            *(orphan for orphan in fresh.orphans if _of(orphan.subject, touched)),
        ),
        conflicts=(
            *(conflict for conflict in last.conflicts if conflict.desired.key not in touched),
            *fresh.conflicts,
        ),
        candidates=(
            *(candidate for candidate in last.candidates if candidate.desired.key not in touched),
            *fresh.candidates,
        ),
        pending=_held(last.pending, fresh.pending, touched, bulk),
        blocked=_held(last.blocked, fresh.blocked, touched, bulk),
    )


def _without_forgotten(plan: Plan) -> Plan:
    """The pass that made this plan has forgotten those claims: they are not left to do."""
    if not any(op.verb is Verb.FORGET for op in plan.operations):
        return plan
    left = tuple(op for op in plan.operations if op.verb is not Verb.FORGET)
    return replace(plan, operations=left)


def _telling(plan: Plan, touched: Touched, bulk: bool) -> tuple[object, ...]:
    """What is not simply as declared."""
    return (
        [op for op in plan.operations if op.verb is not Verb.KEEP and _about(op, touched)],
        [orphan for orphan in plan.orphans if _of(orphan.subject, touched)],
        [conflict for conflict in plan.conflicts if conflict.desired.key in touched],
        [candidate for candidate in plan.candidates if candidate.desired.key in touched],
        [held for held in plan.pending if (bulk if held.key is None else held.key in touched)],
        [held for held in plan.blocked if (bulk if held.key is None else held.key in touched)],
    )


def _held(
    last: Sequence[Held], fresh: Sequence[Held], touched: Touched, bulk: bool
) -> tuple[Held, ...]:
    nameless = fresh if bulk else last
    return (
        *(held for held in last if held.key is not None and held.key not in touched),
        *(held for held in fresh if held.key is not None and held.key in touched),
        *(held for held in nameless if held.key is None),
    )


def _about(operation: Operation, touched: Touched) -> bool:
    return _of(operation.subject, touched)


def _of(subject: Artifact | Batch, touched: Touched) -> bool:
    if isinstance(subject, Artifact):
        return subject.key in touched
    return subject.kind.name in touched.kinds
