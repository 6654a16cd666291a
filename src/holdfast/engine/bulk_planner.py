"""The part of plan() for bulk kinds: set algebra first, objects only for what is left over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from holdfast.dataclass import replace
from holdfast.engine import contradictions, decide, diff, make_before_break, ownership, risk
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key
from holdfast.engine.bulk_keys import few_of
from holdfast.engine.claim import Claim
from holdfast.engine.contradictions import Contested
from holdfast.engine.draft import Draft, Wanted
from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.observed import BulkSighting, Sighting
from holdfast.engine.plan import Held, Operation, Orphan, Risk, Verb
from holdfast.engine.unmatched import Unmatched


def plan_bulk(kind: ArtifactKind, intents: Sequence[BulkIntent], draft: Draft) -> None:
    if kind.name in draft.observed.unknown:
        why = f"cannot be observed: {draft.observed.unknown[kind.name]}"
        for intent in intents:
            draft.hold(intent, why, blocked=True, unknown=True)
        return
    seen = draft.observed.bulk[kind.name]
    found = diff.bulk(intents, seen)
    contested = contradictions.contested(intents, found.missing)
    for intent, keys in contradictions.without(found.present, contested):
        _keep(intent, keys, seen, draft)
    _tell_impaired(found.present, seen, draft)
    extras = Unmatched(kind, found.extra, seen.unpack)
    _block(intents, contested, extras, draft)
    waiting = [
        (intent.batch.scope, keys)
        for intent, keys in _once(contradictions.without(found.missing, contested))
        if not _missing(intent, keys, seen, extras, draft)
    ]
    tagged = ownership.by_tag(seen.tag_text)
    kept = _kept_by_claim(kind, extras, tagged, draft)
    _orphans(extras, seen, waiting, draft)
    _claimed(kind, intents, seen, kept, draft)


def _tell_impaired(
    present: Sequence[tuple[BulkIntent, Sequence[bytes]]], seen: BulkSighting, draft: Draft
) -> None:
    if not seen.impaired:
        return
    for intent, keys in present:
        scope = intent.batch.scope
        here = {
            identity[len(scope) :]: reason
            for identity, reason in seen.impaired.items()
            if identity.startswith(scope)
        }
        for key in sorted(few_of(here, keys)) if here else ():
            named = intent.batch.artifact(key).key
            draft.blocked.append(Held(intent.owner, intent.origin, here[key], impaired=named))


def _block(
    intents: Sequence[BulkIntent], contested: Contested, extras: Unmatched, draft: Draft
) -> None:
    for intent, reason in contradictions.reasons(intents, contested) if contested else ():
        draft.hold(intent, reason, blocked=True)
    for scope, keys in contested.items():
        for key in keys:  # whichever of them is there stays
            extras.take(scope, key)


def _once(
    missing: Sequence[tuple[BulkIntent, Sequence[bytes]]],
) -> Iterator[tuple[BulkIntent, Sequence[bytes]]]:
    """What several resources declare is made once."""
    sharing = Counter(intent.batch.scope for intent, _ in missing)
    made: dict[bytes, set[bytes]] = defaultdict(set)
    for intent, keys in missing:
        if sharing[intent.batch.scope] > 1:
            others = made[intent.batch.scope]
            keys = [key for key in keys if key not in others]
            others.update(keys)
        yield intent, keys


def _keep(intent: BulkIntent, keys: Sequence[bytes], seen: BulkSighting, draft: Draft) -> None:
    draft.operations.append(
        Operation(
            Verb.KEEP,
            replace(intent.batch, keys=keys),
            (intent.owner,),
            reason="as declared",
            origin=intent.origin,
            proof=ownership.by_tag(seen.tag_text),
        )
    )


def _missing(
    intent: BulkIntent,
    keys: Sequence[bytes],
    seen: BulkSighting,
    extras: Unmatched,
    draft: Draft,
) -> bool:
    """False: they wait."""
    scope = intent.batch.scope
    waits = intent.lacks or draft.waits_for(intent.requires) or _unfit(intent, draft)
    if waits:
        # A fact may be lacking for a mistake in the file: that is no success.
        required = bool(intent.lacks)
        draft.pending.append(Held(intent.owner, intent.origin, waits, required=required))
        for key in keys:  # what stands in their place now is no orphan
            extras.take(scope, key)
        return False
    if seen.foreign or extras.copies:
        free = []
        for key in keys:
            if scope + key in seen.foreign or scope + key in extras.copies:
                _occupied(intent, key, extras.take(scope, key), seen, draft)
            else:
                free.append(key)
        keys = free
    changed, keys = _changed(keys, extras.only(scope))
    for old, held in changed.items():
        _settle(intent, Batch(intent.batch.kind, old, held), seen, draft)
    if keys:
        batch = replace(intent.batch, keys=keys)
        level, note = risk.assess(Verb.CREATE, batch)
        draft.operations.append(
            Operation(
                Verb.CREATE,
                batch,
                (intent.owner,),
                reason="declared and not there",
                origin=intent.origin,
                risk=level,
                risk_note=note,
                requires=intent.requires,
            )
        )
    return True


def _unfit(intent: BulkIntent, draft: Draft) -> str:
    """What it requires and is there, but not so that anything can be made on it."""
    for key in intent.requires:
        if key not in draft.unfit:
            draft.unfit[key] = _why_unfit(intent.batch.kind, key, draft)
        if draft.unfit[key]:
            return f"waits for {key}: {draft.unfit[key]}"
    return ""


def _why_unfit(kind: ArtifactKind, key: Key, draft: Draft) -> str:
    """By what was seen of it, and what this plan makes of that."""
    seen = draft.observed.sightings.get(key, ())
    if not seen or not kind.packing.unfit(key, seen[0].artifact.fields):
        return ""
    changes = (op.subject for op in draft.operations if op.verb.changes_host)
    made = [
        change.fields for change in changes if isinstance(change, Artifact) and change.key == key
    ]
    fields = {**seen[0].artifact.fields, **(made[0] if made else {})}
    return kind.packing.unfit(key, fields)


def _changed(
    keys: Sequence[bytes], only: dict[bytes, Any]
) -> tuple[dict[Any, list[bytes]], Sequence[bytes]]:
    """The keys that something of ours is at, by its template, and the others."""
    if not only:
        return {}, keys
    changed: dict[Any, list[bytes]] = defaultdict(list)
    free: list[bytes] = []
    last, held = None, free
    for key in keys:
        old = only.pop(key, None)
        if old is None:
            free.append(key)
            continue
        if old is not last:  # to hash a template costs more than all the rest
            last, held = old, changed[old]
        held.append(key)
    return changed, free


def _settle(intent: BulkIntent, there: Batch, seen: BulkSighting, draft: Draft) -> None:
    """Artifacts of ours that share a template now, and shall share another: as that is all that
    tells them apart, they all differ alike."""
    wanted = replace(intent.batch, keys=there.keys)
    first = there.keys[0]
    before = there.artifact(first).fields
    differing = diff.changes(wanted.kind, wanted.artifact(first).fields, before)
    sighting = seen.single(there.template, first)
    carried = sighting.artifact.fields.get(wanted.kind.writer_field)
    differing += diff.retagging(wanted.kind, carried, sighting.retag)
    verb, reason = decide.settling(wanted.kind, differing, before)
    level, note = risk.assess(verb, wanted, differing) if differing else (Risk.NONE, "")
    draft.operations.append(
        Operation(
            verb,
            wanted,
            (intent.owner,),
            reason=reason,
            origin=intent.origin,
            proof=ownership.by_tag(sighting.tag),
            risk=level,
            risk_note=note,
            changes=differing,
            requires=intent.requires,
            observed=there,
        )
    )


def _occupied(
    intent: BulkIntent,
    key: bytes,
    ours: Sequence[Any],
    seen: BulkSighting,
    draft: Draft,
) -> None:
    """One artifact of a batch whose identity several hold, or others do: the same decision as for
    any artifact."""
    kind = intent.batch.kind
    tagged = [seen.single(shared, key) for shared in ours]
    foreign = seen.foreign.get(intent.batch.scope + key, ())
    single = Intent(
        intent.owner, intent.batch.artifact(key), intent.origin, requires=intent.requires
    )
    decide.ensure(Wanted(single, (intent.owner,)), kind, [*tagged, *foreign], draft)


def _kept_by_claim(kind: ArtifactKind, extras: Unmatched, proof: str, draft: Draft) -> set[Key]:
    """A few tagged artifacts have a claim too, and it names owners who may be waiting. What is
    kept stays claimed."""
    kept: set[Key] = set()
    if not any(waiting.keeps for waiting in draft.waiting):
        return kept
    for key, claim in draft.claims.items():
        if key.kind != kind.name:
            continue
        scope, packed = kind.packing.identify(claim.fields)
        keepers = draft.keepers(claim.owners) or draft.keepers_of_group(kind, scope)
        for shared in extras.take(scope, packed) if keepers else ():
            draft.keep(Batch(kind, shared, [packed]), claim.owners, keepers, proof)
            kept.add(key)
    return kept


def _orphans(
    extras: Unmatched,
    seen: BulkSighting,
    waiting: Sequence[tuple[bytes, Sequence[bytes]]],
    draft: Draft,
) -> None:
    for batch in extras.batches():
        proof = ownership.by_tag(seen.single(batch.template, batch.keys[0]).tag)
        stays = make_before_break.awaited(batch, waiting, draft.operations)
        if stays:
            draft.await_successor(replace(batch, keys=sorted(stays)), (), proof)
            batch = replace(batch, keys=[key for key in batch.keys if key not in stays])
            if not batch.keys:
                continue
        keepers = draft.keepers_of_group(batch.kind, batch.scope)
        if keepers:
            owners = tuple(dict.fromkeys(keeper.owner for keeper in keepers))
            draft.keep(batch, owners, keepers, proof)
            continue
        level, note = risk.assess(Verb.DELETE, batch)
        reason = "nothing declares it any more"
        draft.orphans.append(Orphan(batch, (), True, reason, proof))
        draft.operations.append(
            Operation(
                Verb.DELETE,
                batch,
                (),
                reason=reason,
                proof=proof,
                risk=level,
                risk_note=note,
            )
        )


def _claimed(
    kind: ArtifactKind,
    intents: Sequence[BulkIntent],
    seen: BulkSighting,
    kept: Set[Key],
    draft: Draft,
) -> None:
    """Adopted artifacts carry no tag of ours: without a declaration they are orphans by claim."""
    mine = {
        key: claim
        for key, claim in draft.claims.items()
        if key.kind == kind.name and key not in kept
    }
    if not mine:
        return
    there: dict[Key, list[Sighting]] = defaultdict(list)
    for sightings in seen.foreign.values():
        for sighting in sightings:
            there[sighting.artifact.key].append(sighting)
    declared = _declared(kind, intents, mine)
    for key, claim in mine.items():
        if key in declared:
            continue
        ours, _ = ownership.split(kind, there.get(key, ()), claim, draft.policy.epoch)
        for sighting, proof in ours:
            decide.orphan(sighting, kind, proof, claim.owners, draft)
        if not ours:
            decide.forget(claim, "already gone, or no longer what was claimed", draft)


def _declared(
    kind: ArtifactKind, intents: Sequence[BulkIntent], claims: Mapping[Key, Claim]
) -> set[Key]:
    """Which of a few claimed artifacts are declared, without expanding every one declared."""
    found: set[Key] = set()
    for key, claim in claims.items():
        scope, packed = kind.packing.identify(claim.fields)
        if any(intent.batch.scope == scope and packed in intent.batch.keys for intent in intents):
            found.add(key)
    return found
