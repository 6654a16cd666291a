"""The way back: what is ours and how it is, taken before a plan is carried out.

It is kept as what shall be again, not as a list of steps. Between the change and its revert others
may have written, passes may have repaired, facts may have come; so a revert is a pass like any
other, with the state before in the place of a configuration. Proof and exclusive creates hold for
it as they do for any plan, and one that was interrupted is simply begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from holdfast.dataclass import dataclass, replace
from holdfast.engine import ownership
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Fields, Key, MadeOf, Value
from holdfast.engine.claim import Claim, Provenance
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.link import link_key
from holdfast.engine.observed import BulkSighting, Observed, Sighting
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.unmatched import Unmatched
from holdfast.errors import Refused

BEFORE = "the state before"
_REMADE = (Verb.REPLACE, Verb.DELETE)
# Whether a program runs, or has read what it was given, is not brought back: it runs, and has.
_RUNS = ("active", "read")
# A table that is written anew reads otherwise than before, though it says the same.
_LISTING = "listing"

Payload = Callable[[Artifact], bytes]


@dataclass(frozen=True, slots=True)
class Snapshot:
    epoch: str
    tag: int  # that ours carry in the kernel
    claims: tuple[Claim, ...]
    intents: tuple[Intent, ...] = ()
    batches: tuple[Batch, ...] = ()
    # What others have on what the plan touches, as the host recorded it; empty where it did not.
    others: bytes = b""

    @property
    def boot(self) -> str:
        return self.epoch.partition("/")[0]


def take(
    plan: Plan,
    observed: Observed,
    claims: Mapping[Key, Claim],
    epoch: str,
    tag: int,
    known: Mapping[Key, Intent],
    payload: Payload,
) -> Snapshot:
    """The state before a plan, from the observation that the plan was made of.

    known: what the configuration in force declares. payload: the content of a file or block, or the
    keys of a WireGuard link, read where they stand. Refused where something could not be brought
    back.
    """
    if observed.unknown:
        kind, why = next(iter(observed.unknown.items()))
        raise Refused(
            f"nothing was touched: {kind} could not be observed ({why}), so what is there now could"
            " not be brought back"
        )
    taking = _Taking(plan, observed, claims, epoch, known, payload)
    intents = tuple(taking.intents())
    return Snapshot(epoch, tag, tuple(claims.values()), intents, tuple(taking.batches()))


def desired(before: Snapshot, claims: Mapping[Key, Claim], epoch: str) -> Desired:
    """What a revert asks for, by what is claimed when it begins."""
    if before.boot == epoch.partition("/")[0]:
        intents = before.intents
    else:
        # The boot took all the rest away; what the configuration says of it is made as at any boot.
        intents = tuple(_outlived(before.intents))
    wanted = {intent.artifact.key for intent in intents}
    old = {claim.key: claim for claim in before.claims}
    since = (
        _undone(claim)
        for key, claim in claims.items()
        # A claim that is as it was then is on nothing that was made since: what it was on was gone.
        if key not in wanted
        and claim != old.get(key)
        and not KINDS[key.kind].bulk
        and ownership.in_force(claim, epoch)
    )
    bulk = (BulkIntent(BEFORE, batch, BEFORE) for batch in before.batches)
    routes = tuple(bulk) if intents is before.intents else ()
    return Desired((*intents, *(intent for intent in since if intent is not None), *routes))


def claims_after(
    before: Snapshot, wanted: Desired, now: Mapping[Key, Claim], left: Plan, epoch: str
) -> tuple[list[Claim], list[Key]]:
    """The claims to put and to remove, once the state is as before: what was owned is owned by the
    same right, what was foreign is foreign, and settings remember what they were at first.

    wanted, left: what the revert asked for, and could not do. Claims on that stay as they are.
    """
    same_boot = before.boot == epoch.partition("/")[0]
    stuck = {key for key, _ in stuck_at(wanted, now, left)}
    old = {claim.key: claim for claim in before.claims}

    def counts(key: Key) -> bool:
        return key not in stuck and (same_boot or KINDS[key.kind].survives_reboot)

    put = []
    for key, claim in old.items():
        restored = _restored(claim, now.get(key))
        if counts(key) and restored != now.get(key):
            put.append(restored)
    return put, [key for key in now if key not in old and counts(key)]


def stuck_at(wanted: Desired, now: Mapping[Key, Claim], left: Plan) -> Iterator[tuple[Key, str]]:
    """What a revert could not bring back, and why."""
    for operation in left.changes:
        if isinstance(operation.subject, Artifact) and not KINDS[operation.kind].runs:
            yield operation.subject.key, f"{operation.verb} failed"
    for conflict in left.conflicts:
        yield conflict.desired.key, f"it is held by {conflict.holder}"
    going = {
        intent.artifact.key
        for intent in wanted.intents
        if isinstance(intent, Intent) and intent.action is Action.DELETE
    }
    for held in left.blocked:
        # Ours is gone, and what is there is somebody else's.
        if held.key is not None and (held.key not in going or held.key in now):
            yield held.key, held.reason


def _restored(old: Claim, now: Claim | None) -> Claim:
    if now is None:
        return old
    kind = KINDS[old.key.kind]
    # What tells this very object from others of its name: it may have been made anew.
    telling = (*kind.pins, kind.writer_field, _LISTING)
    fields = {
        name: now.fields.get(name, value) if name in telling else value
        for name, value in old.fields.items()
    }
    return replace(old, fields=fields, state=now.state, epoch=now.epoch, nonce=now.nonce)


def _undone(claim: Claim) -> Intent | None:
    """Something of ours that was not before."""
    owner = claim.owners[0] if claim.owners else BEFORE
    if claim.provenance is Provenance.CREATED:
        artifact = Artifact(claim.key, claim.fields)
        return Intent(owner, artifact, claim.origin, Action.DELETE)
    if claim.provenance is Provenance.SET and claim.original:
        artifact = Artifact(claim.key, claim.original)
        return Intent(owner, artifact, claim.origin, creates=False)
    return None


def _outlived(intents: Iterable[Intent]) -> Iterator[Intent]:
    for intent in intents:
        if KINDS[intent.artifact.key.kind].survives_reboot:
            requires = tuple(key for key in intent.requires if KINDS[key.kind].survives_reboot)
            yield replace(intent, requires=requires)


@dataclass(frozen=True, slots=True)
class _Taking:
    plan: Plan
    observed: Observed
    claims: Mapping[Key, Claim]
    epoch: str
    known: Mapping[Key, Intent]
    payload: Payload

    def intents(self) -> Iterator[Intent]:
        planned = self._planned()
        undecided = self._undecided()
        for key, sightings in self.observed.sightings.items():
            kind = KINDS[key.kind]
            if kind.bulk or not sightings:
                continue
            claim = self.claims.get(key)
            ours, foreign = ownership.split(kind, sightings, claim, self.epoch)
            seen = ours[0][0] if ours else foreign[0]
            operation = planned.get(key)
            if operation is not None and (ours or operation.verb is Verb.UPDATE):
                yield self._again(kind, operation, seen, claim)
            elif ours and key in undecided:
                yield self._stays_for_now(kind, seen, claim)
            elif ours:
                # No pass of the candidate touches it, and neither does the way back.
                yield Intent(_owner(claim), Artifact(key, {}), BEFORE, Action.OBSERVE)

    def batches(self) -> Iterator[Batch]:
        for name, seen in self.observed.bulk.items():
            kind = KINDS[name]
            if seen.exact:
                for op in self.plan.operations:
                    if isinstance(op.subject, Batch) and op.kind == name and op.verb is Verb.KEEP:
                        yield op.subject
            else:
                found = Unmatched(kind, seen.own, seen.unpack).batches()
                yield from (batch for batch in found if kind.packing.declarable(batch.template))
            yield from self._claimed(kind, seen)

    def _claimed(self, kind: ArtifactKind, seen: BulkSighting) -> Iterator[Batch]:
        """What was adopted carries no tag of ours."""
        for key, claim in self.claims.items():
            if key.kind == kind.name:
                scope, packed = kind.packing.identify(claim.fields)
                there = seen.foreign.get(scope + packed, ())
                for sighting, _ in ownership.split(kind, there, claim, self.epoch)[0]:
                    shared, _ = kind.packing.template_of(sighting.artifact)
                    yield Batch(kind, shared, [packed])

    def _planned(self) -> dict[Key, Operation]:
        """What is done to what is there; of several copies, to the one that stays."""
        found: dict[Key, Operation] = {}
        for op in self.plan.operations:
            if isinstance(op.subject, Artifact) and op.verb not in (Verb.CREATE, Verb.FORGET):
                found.setdefault(op.subject.key, op)
        return found

    def _undecided(self) -> set[Key]:
        """What this plan leaves alone for a reason that may be gone when the next pass is made, a
        moment later: an orphan that somebody still needs, what must not be replaced yet."""
        held = {held.key for held in self.plan.blocked if held.key is not None}
        orphans = {
            orphan.subject.key
            for orphan in self.plan.orphans
            if isinstance(orphan.subject, Artifact) and not orphan.removed
        }
        return held | {key for key in orphans if KINDS[key.kind].deletes_orphans}

    def _stays_for_now(self, kind: ArtifactKind, seen: Sighting, claim: Claim | None) -> Intent:
        there = seen.artifact
        gone = Operation(Verb.DELETE, there, (), "", observed=there)
        try:
            return self._again(kind, gone, seen, claim)
        except Refused:
            # The plan does not touch it, so that this is no reason against the trial.
            return Intent(_owner(claim), Artifact(there.key, {}), BEFORE, Action.OBSERVE)

    def _again(
        self, kind: ArtifactKind, operation: Operation, seen: Sighting, claim: Claim | None
    ) -> Intent:
        artifact = operation.subject
        assert isinstance(artifact, Artifact)  # noqa: S101 (no bulk kind comes here)
        requires = operation.requires
        if operation.verb is not Verb.KEEP:
            artifact, requires = self._as_it_is(kind, operation, artifact, seen)
        if kind.made_again_with:
            artifact = replace(artifact, fields={**artifact.fields, **kind.made_again_with})
        set_only = claim is None or claim.provenance is Provenance.SET
        return Intent(
            _owner(claim),
            artifact,
            BEFORE,
            requires=tuple(key for key in requires if self.observed.sightings.get(key)),
            creates=not kind.setting and (not set_only or bool(seen.tag)),
            revert=claim is not None and claim.revert,
        )

    def _as_it_is(
        self, kind: ArtifactKind, operation: Operation, wanted: Artifact, seen: Sighting
    ) -> tuple[Artifact, tuple[Key, ...]]:
        there = seen.artifact
        if kind.made_of in (MadeOf.DECLARATION, MadeOf.DECLARATION_NOW):
            known = self.known.get(there.key)
            if known is None or not (
                kind.made_of is MadeOf.DECLARATION_NOW
                or _is_as(kind, known.artifact.fields, there.fields)
            ):
                raise _lost(there.key, "what it is made of now is not as was declared last")
            return known.artifact, known.requires
        if kind.made_of is MadeOf.CONTENT:
            try:
                content = self.payload(there)
            except (OSError, ValueError) as error:
                raise _lost(there.key, str(error)) from error
            fields = {**_lasting(kind, there.fields), **_running(there.fields)}
            return Artifact(there.key, fields, content), ()
        if operation.verb in _REMADE:
            needs = (there.fields.get(name) for name in ("parent", "master", "dev"))
            links = tuple(link_key(str(name)) for name in needs if name)
            return Artifact(there.key, self._made_of(kind, there)), links
        before = {change.field: change.before for change in operation.changes}
        fields = _lasting(kind, {**wanted.fields, **before})
        fields = {name: value for name, value in fields.items() if value is not None}
        if kind.setting and not kind.restores(fields):
            raise _lost(there.key, f"{'; '.join(map(str, fields.values()))} cannot be set")
        return Artifact(there.key, fields), ()

    def _made_of(self, kind: ArtifactKind, there: Artifact) -> dict[str, Value]:
        """All but what follows others by itself, and would not any more if it were set."""
        known = self.known.get(there.key)
        declared = known.artifact.fields.keys() if known is not None else ()
        following = kind.follows(there.fields) - set(declared)
        fields = _lasting(kind, there.fields)
        return {name: value for name, value in fields.items() if name not in following}


def _owner(claim: Claim | None) -> str:
    return claim.owners[0] if claim is not None and claim.owners else BEFORE


def _lost(key: Key, why: str) -> Refused:
    return Refused(
        f"nothing was touched: {key} would be changed, and could not be brought back: {why}. Apply"
        " the configuration in force first (`holdfast apply`), or go on without --confirm-within"
    )


def _is_as(kind: ArtifactKind, declared: Fields, seen: Fields) -> bool:
    return all(
        kind.matches(name, declared[name], seen.get(name))
        for name in kind.fields
        if name in declared and name not in _RUNS
    )


def _lasting(kind: ArtifactKind, seen: Fields) -> dict[str, Value]:
    """Without what tells one object from another of the same name: it will be another. And without
    what nobody can declare, which is not made either."""
    passing = {*kind.pins, kind.writer_field} - set(kind.fields) | set(kind.surplus)
    return {name: value for name, value in seen.items() if name not in passing}


def _running(seen: Fields) -> dict[str, Value]:
    return {name: True for name in _RUNS if name in seen}
