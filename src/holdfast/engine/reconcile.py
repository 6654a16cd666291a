"""The pass: observe, plan, apply, observe again, record.

A pass goes in rounds. Each round writes the claims it is about to make good, applies its plan
stage by stage, and observes anew; what the kernel did on the side (secondary addresses gone with
their primary, routes gone with an address) shows up there and is repaired in the next round. What
resources depend on may have changed by it as well (the address of a link that a DHCP scope is made
for): what is declared is asked for again, so that what was made of it is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import decide, diff, make_before_break, order, ownership, record, unrecovered
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.driver import Coming, Failure, Memory, Result, Scope
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy

# Side effects of a delete settle in the second round; a third finds out that they did.
MAX_ROUNDS = 3
_STAYS = Coming()
NOTHING_REMEMBERED: Mapping[str, Memory] = MappingProxyType({})


class Host(Protocol):
    """All drivers together."""

    epoch: str

    def observe(self, scope: Scope) -> Observed:
        """What is there; kinds that could not be read are named in `unknown`."""

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        """Carry out one stage: operations of one kind."""

    def to_remember(
        self, planned: Sequence[Operation], remembered: Mapping[str, Memory]
    ) -> Mapping[str, Memory]:
        """What drivers have to remember otherwise from now on, before these are carried out."""

    def sweep(self, claims: Iterable[Claim]) -> None:
        """Nobody writes these objects now: what an interrupted write left beside them may go."""

    def settle(self, claims: Iterable[Claim]) -> None:
        """These claims are durable now: the marks on their objects may go."""


class Claims(Protocol):
    """The part of the ledger that the pass needs."""

    def claims(self) -> dict[Key, Claim]: ...

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None: ...

    @property
    def lasting(self) -> Lasting:
        """How long what is written now is kept at least."""

    def remembered(self) -> Mapping[str, Memory]:
        """What drivers remember, by their names."""

    def remember(self, driver: str, memory: Memory) -> None: ...


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did, and what is true after it."""

    before: Plan  # what was to be done
    results: tuple[Result, ...]  # what became of it, in order
    after: Plan  # what is still to be done, by what was observed last
    rounds: int

    @property
    def failures(self) -> tuple[tuple[Operation, Failure], ...]:
        return tuple(
            (result.operation, failure) for result in self.results for failure in result.failures
        )

    @property
    def converged(self) -> bool:
        """Everything that can be there was seen there, and what was to go is gone. Pending
        resources wait for others, which only prevents this where what they wait for is declared to
        be required."""
        left = self.after
        required = any(held.required for held in left.pending)
        open_ = left.changes or left.conflicts or left.blocked or left.unknown or required
        return not (open_ or self.undeleted)

    @property
    def undeleted(self) -> frozenset[Key]:
        """What was to be deleted and was not, and is kept now. An orphan that is kept as planned is
        none of them."""
        failed = (failure.key for op, failure in self.failures if op.verb is Verb.DELETE)
        kept = (orphan.subject for orphan in self.after.orphans if not orphan.removed)
        return frozenset(failed).intersection(
            subject.key for subject in kept if isinstance(subject, Artifact)
        )

    @property
    def nothing_left(self) -> bool:
        """Nothing of ours is there any more, as far as could be seen."""
        left = self.after
        kept = any(not orphan.removed for orphan in left.orphans)
        there = any(op.verb is not Verb.FORGET for op in left.operations)
        return self.converged and not (kept or there or left.recoverable)


@dataclass(slots=True)
class Pass:
    desired: Desired
    host: Host
    ledger: Claims
    policy: Policy
    generation: int = 0
    progress: Callable[[int, int], None] = lambda _done, _total: None
    # Told what became of the operations of each stage, as soon as that is known.
    told: Callable[[Sequence[Result]], None] = lambda _results: None
    nonce: Callable[[], str] = lambda: ""
    # Which of the changes are made now: some may have to wait, for a reason of the caller's.
    ready: Callable[[Sequence[Operation]], Sequence[Operation]] = lambda changes: changes
    # Identities of bulk artifacts that others were at since the last look; None where nobody
    # listens.
    heard: frozenset[bytes] | None = None
    # Told what is there and what is to be done about it, before the first change.
    ahead: Callable[[Mapping[Key, Claim], Observed, Plan], None] = lambda *_seen: None
    # What is declared by what is known now: facts may come of what was just changed. The very same
    # where nothing changed.
    relearn: Callable[[Desired], Desired] = lambda desired: desired
    # By the last look, but for the many: those are too large to be kept.
    sightings: Mapping[Key, Sequence[Sighting]] = field(default_factory=dict)
    _results: list[Result] = field(default_factory=list)

    def plan(self) -> Plan:
        """Observe and plan; changes nothing."""
        return self._look()[2]

    def run(self, approve: Callable[[Plan], None]) -> Report:
        """Carry out the plan once `approve` has let it pass (it raises to refuse)."""
        claims, observed, first = self._look()
        approve(first)
        self.ahead(claims, observed, first)
        current, changes, rounds = first, self.ready(first.changes), 0
        if not changes:
            self._record(first, observed, claims)
        while changes and rounds < MAX_ROUNDS:
            rounds += 1
            self._remember(current)
            done = self._apply(changes, claims, current)
            self.desired = self.relearn(self.desired)
            claims, observed, current = self._look()
            claims = self._record(current, observed, claims)
            changes = self.ready(_approved(current, first)) if done else ()
        return Report(first, tuple(self._results), current, rounds)

    def _look(self) -> tuple[dict[Key, Claim], Observed, Plan]:
        claims = self.ledger.claims()
        wanted = scope(self.desired, claims, self.ledger.remembered())
        observed = self.host.observe(replace(wanted, heard=self.heard))
        self.sightings = observed.sightings
        return claims, observed, plan(self.desired, observed, claims, self.policy)

    def _remember(self, current: Plan) -> None:
        """Written ahead, as claims are."""
        found = self.host.to_remember(current.operations, self.ledger.remembered())
        for driver, memory in found.items():
            self.ledger.remember(driver, memory)

    def _apply(
        self, planned: Sequence[Operation], claims: Mapping[Key, Claim], current: Plan
    ) -> int:
        """Claim ahead, then apply stage by stage; answers how many objects changed."""
        changes, ahead = record.claim_ahead(
            planned, claims, self.generation, self.host.epoch, self.nonce
        )
        if ahead:
            self.ledger.write_claims(ahead)
        total = sum(op.count for op in changes)
        finished = 0

        def advance(count: int) -> None:
            nonlocal finished
            finished += count
            self.progress(finished, total)

        # Asked only now: the write ahead may be what found out that the disk is full.
        held = self._held_back(changes, claims)
        failed: set[Key] = set()
        done = 0
        before = len(self._results)
        for stage in order.stages(changes):
            going, kept = make_before_break.spare(stage, current.operations, self._results[before:])
            tried = [op for op in going if _key(op) not in held] if held else going
            ready = [op for op in tried if not failed.intersection(op.requires)]
            results = self.host.apply(ready, advance) if ready else []
            results += [_blocked(op, failed) for op in tried if failed.intersection(op.requires)]
            if held:
                unclaimed = (op for op in going if _key(op) in held)
                results += [_unclaimed(op, self.ledger.lasting) for op in unclaimed]
            results += kept
            for result in results:
                done += result.done
                if isinstance(result.operation.subject, Artifact) and not result.ok:
                    failed.add(result.operation.subject.key)
            self._results += results
            self.told(results)
        return done

    def _held_back(
        self, changes: Sequence[Operation], claims: Mapping[Key, Claim]
    ) -> frozenset[Key]:
        """What could not be told from others' things if the claim on it got lost, as it may."""
        lasting = self.ledger.lasting
        if lasting is Lasting.FOR_GOOD:
            return frozenset()
        epoch = self.host.epoch
        known = {key: claim for key, claim in claims.items() if ownership.in_force(claim, epoch)}
        found = ((_key(op), op) for op in changes)
        return frozenset(
            key
            for key, op in found
            if key is not None and record.needs_claim(op, known.get(key), lasting)
        )

    def _record(
        self, current: Plan, observed: Observed, claims: dict[Key, Claim]
    ) -> dict[Key, Claim]:
        if current.recoverable:
            observed = unrecovered.without_tags(observed)
        put, remove = record.settle(
            current, observed, claims, self._results, self.generation, self.host.epoch
        )
        half_done = [claim for claim in claims.values() if record.is_half_done(claim)]
        if half_done:
            # While the claims still tell of it: an object that is as declared by now is not
            # written again, nor one that is somebody else's.
            self.host.sweep(half_done)
        if put or remove:
            self.ledger.write_claims(put, remove)
        current_claims = {key: claim for key, claim in claims.items() if key not in remove}
        current_claims.update((claim.key, claim) for claim in put)
        marked = [
            claim for claim in current_claims.values() if record.is_marked(claim, self.host.epoch)
        ]
        if marked:
            # The mark may only go once the claim is durable, and the claim may only forget the
            # mark once it is gone: a crash between the two finds it again.
            self.host.settle(marked)
            unmarked = [replace(claim, nonce="") for claim in marked]
            self.ledger.write_claims(unmarked)
            current_claims.update((claim.key, claim) for claim in unmarked)
        return current_claims


def scope(
    desired: Desired,
    claims: Mapping[Key, Claim],
    remembered: Mapping[str, Memory] = NOTHING_REMEMBERED,
) -> Scope:
    keys: set[Key] = set()
    batches = []
    declared: dict[Key, list[Intent]] = {}
    for intent in desired.intents:
        keys.update(intent.requires)
        if isinstance(intent, BulkIntent):
            batches.append(intent.batch)
        else:
            keys.add(intent.artifact.key)
            declared.setdefault(intent.artifact.key, []).append(intent)

    def coming(seen: Artifact) -> Coming:
        if seen.key not in declared:
            kind, claim = KINDS[seen.key.kind], claims.get(seen.key)
            goes = ownership.goes_with_its_declaration(kind, seen, claim)
            return Coming(Verb.DELETE) if goes else _STAYS
        return _coming(declared[seen.key], seen)

    def wanted(key: Key) -> Artifact | None:
        ensured = (intent for intent in declared.get(key, ()) if intent.action is Action.ENSURE)
        first = next(ensured, None)
        return first.artifact if first is not None else None

    return Scope(frozenset(keys), tuple(batches), claims, remembered, coming, wanted)


def _coming(intents: Sequence[Intent], seen: Artifact) -> Coming:
    """What these intents, all about one object, would have done to it."""
    ensured: list[Fields] = []
    stays = True  # as almost all do; thousands of links are looked at this way
    for intent in intents:
        if intent.action is Action.DELETE:
            return Coming(Verb.DELETE)
        if intent.action is Action.ENSURE:
            ensured.append(intent.artifact.fields)
            stays = stays and intent.artifact.fields.items() <= seen.fields.items()
    kind = KINDS[seen.key.kind]
    if not ensured or (stays and seen.fields.keys().isdisjoint(kind.surplus)):
        return _STAYS
    wanted = {name: value for fields in reversed(ensured) for name, value in fields.items()}
    differing = diff.changes(kind, wanted, seen.fields)
    return Coming(decide.settling(kind, differing, seen.fields)[0], differing)


def _approved(current: Plan, first: Plan) -> tuple[Operation, ...]:
    """The changes of a later round: repairs, and no delete or replace that `first` did not name,
    nor anything that others lose by and did not before.

    What was unknown in the first round may be known by now; what that leads to is for the next
    pass to plan, and for whoever approves it to see.
    """
    agreed = {subject for op in first.changes for subject in _destroyed(op)}
    lost = {loss for op in first.changes for loss in op.losses}
    return tuple(
        op
        for op in current.changes
        if agreed.issuperset(_destroyed(op)) and lost.issuperset(op.losses)
    )


def _destroyed(operation: Operation) -> Iterable[object]:
    """What an operation takes away, artifact by artifact."""
    if not operation.cleans_up and operation.verb is not Verb.REPLACE:
        return ()
    subject = operation.subject
    if isinstance(subject, Artifact):
        return ((operation.verb, subject.key),)
    return ((operation.verb, subject.template, key) for key in subject.keys)


def _key(operation: Operation) -> Key | None:
    return operation.subject.key if isinstance(operation.subject, Artifact) else None


def _unclaimed(operation: Operation, lasting: Lasting) -> Result:
    key = _key(operation)
    why = (
        f"not tried: the ledger cannot be written, so that a claim would be kept {lasting} only,"
        " and without one nobody could tell later that it is Holdfast's"
    )
    return Result(operation, 0, (Failure(key, why),) if key is not None else ())


def _blocked(operation: Operation, failed: set[Key]) -> Result:
    cause = next(key for key in operation.requires if key in failed)
    if isinstance(operation.subject, Artifact):
        keys = [operation.subject.key]
    else:
        keys = [operation.subject.artifact(key).key for key in operation.subject.keys[:1]]
    return Result(
        operation, 0, tuple(Failure(key, f"not tried, because {cause} failed") for key in keys)
    )
