"""plan(): from what is wanted, seen and claimed to what shall be done. Pure.

For one declared artifact (intent `ensure`):

| seen                     | then |
|--------------------------|------|
| nothing                  | create; a setting or a NIC that is not there: pending |
| ours, as declared        | keep |
| ours, other fields       | update, or replace where a field cannot be changed in place |
| ours, several            | the first as above, the others are deleted |
| foreign, a setting       | keep or update: settings always exist, setting them is what was asked |
| foreign, as declared     | nothing: an adoption candidate |
| foreign, other fields    | nothing: a conflict |

What is ours and not declared is an orphan; its kind's cleanup rule says whether it goes. What one
of its owners may still declare, once the fact it waits for is known, stays. Nothing is deleted
while any kind could not be observed, or while a source has not said yet what it contributes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import chain

from holdfast.dataclass import replace
from holdfast.engine import (
    bulk_planner,
    decide,
    diff,
    guard,
    make_before_break,
    ownership,
    unrecovered,
)
from holdfast.engine.artifact import Artifact, ArtifactKind, Key
from holdfast.engine.claim import Claim, ClaimState
from holdfast.engine.draft import Draft, Wanted
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.order import depths, rank
from holdfast.engine.plan import CARRIES, Held, Orphan, Plan
from holdfast.engine.policy import Policy

ELSEWHERE = "kept: claimed in another network namespace of this boot"


def plan(desired: Desired, observed: Observed, claims: Mapping[Key, Claim], policy: Policy) -> Plan:
    elsewhere = ownership.elsewhere(claims.values(), policy.epoch)
    if elsewhere:
        away = {claim.key for claim in elsewhere}
        claims = {key: claim for key, claim in claims.items() if key not in away}
    marked = () if policy.recovered else unrecovered.marked(observed, claims, policy.epoch)
    if marked:
        observed = unrecovered.without_tags(observed)
    draft = Draft(observed, claims, policy, desired.waiting, elsewhere, marked)
    draft.pending.extend(
        Held(
            waiting.owner,
            waiting.origin,
            waiting.reason,
            required=waiting.required,
            fault=waiting.fault,
        )
        for waiting in desired.waiting
    )
    wanted = _merge(desired.intents, draft)
    for key in _dependency_order(wanted):
        _decide_intent(wanted[key], draft)
    batches: dict[str, list[BulkIntent]] = defaultdict(list)
    for intent in desired.intents:
        if isinstance(intent, BulkIntent):
            batches[intent.batch.kind.name].append(intent)
    for name in sorted(batches.keys() | observed.bulk.keys()):
        bulk_planner.plan_bulk(KINDS[name], batches.get(name, []), draft)
    _decide_orphans(wanted, draft)
    for claim in elsewhere:
        if claim.key not in wanted:
            artifact = Artifact(claim.key, claim.fields)
            draft.orphans.append(Orphan(artifact, claim.owners, removed=False, reason=ELSEWHERE))
    made = draft.finish(desired)
    if policy.new_tag and not made.refusal:
        taken = tuple(unrecovered.carrying(policy.new_tag, observed, claims, policy.epoch))
        return replace(made, refusal=guard.tag_in_use(policy.new_tag, taken))
    return made


def _merge(intents: Sequence[Intent | BulkIntent], draft: Draft) -> dict[Key, Wanted]:
    """Several owners may declare one artifact as long as they do not contradict each other."""
    merged: dict[Key, Intent] = {}
    owners: dict[Key, dict[str, None]] = defaultdict(dict)
    for intent in intents:
        if isinstance(intent, BulkIntent):
            continue
        key = intent.artifact.key
        first = merged.setdefault(key, intent)
        if not _same(first, intent):
            clash = _contradiction(first, intent)
            if clash:
                reason = f"{key}: {clash} of {first.owner} ({first.origin})"
                draft.blocked.append(Held(intent.owner, intent.origin, reason, key))
                continue
            merged[key] = _joined(first, intent)
        owners[key][intent.owner] = None
    return {key: Wanted(intent, tuple(owners[key])) for key, intent in merged.items()}


def _same(first: Intent, second: Intent) -> bool:
    """Thousands of resources may share a file: one artifact then, which need not be compared."""
    return first is second or (
        first.artifact is second.artifact
        and (first.action, first.requires, first.creates, first.revert)
        == (second.action, second.requires, second.creates, second.revert)
    )


def _joined(first: Intent, second: Intent) -> Intent:
    actions = (first.action, second.action)
    return replace(
        first,
        action=Action.ENSURE if Action.ENSURE in actions else second.action,
        creates=any(intent.creates for intent in (first, second) if intent.action is Action.ENSURE),
        artifact=replace(
            first.artifact,
            fields={**first.artifact.fields, **second.artifact.fields},
            payload=first.artifact.payload or second.artifact.payload,
        ),
        requires=tuple(dict.fromkeys((*first.requires, *second.requires))),
        revert=first.revert or second.revert,
    )


def _contradiction(first: Intent, second: Intent) -> str:
    if (first.action is Action.DELETE) != (second.action is Action.DELETE):
        return f"{second.action} contradicts {first.action}"
    for name, value in second.artifact.fields.items():
        if name in first.artifact.fields and first.artifact.fields[name] != value:
            return f"{name} {value} contradicts {name} {first.artifact.fields[name]}"
    return ""


def _dependency_order(wanted: Mapping[Key, Wanted]) -> list[Key]:
    depth = depths({key: want.intent.requires for key, want in wanted.items()})
    return sorted(wanted, key=lambda key: (rank(key.kind), depth[key]))


def _decide_intent(want: Wanted, draft: Draft) -> None:
    intent = want.intent
    key = intent.artifact.key
    kind = KINDS[key.kind]
    want = _with_waiting_owners(want, draft)
    unknown = draft.observed.why_unknown(key)
    if unknown:
        draft.hold(intent, f"cannot be observed: {unknown}", blocked=True, unknown=True)
        return
    sightings = draft.observed.sightings.get(key, ())
    if intent.action is Action.OBSERVE:
        _await(intent, kind, sightings, draft)
        return
    if intent.action is Action.DELETE:
        decide.absent(want, kind, sightings, draft)
        return
    waits = draft.waits_for(intent.requires)
    if waits:
        draft.hold(intent, waits)
        return
    objection = _objection(want, kind, draft)
    if objection and not _in_force(key, kind, sightings, draft):
        draft.hold(intent, objection, blocked=True)
        return
    decide.ensure(want, kind, sightings, draft)
    if objection:
        # What others added since does not take away what was there first, nor keeps it from coming
        # back; somebody should look at it all the same.
        reason = f"stays in force, but {objection}"
        draft.blocked.append(Held(intent.owner, intent.origin, reason, key))


def _in_force(key: Key, kind: ArtifactKind, sightings: Sequence[Sighting], draft: Draft) -> bool:
    """Is it ours already, or was it until somebody took it away?"""
    claim = draft.claims.get(key)
    epoch = draft.policy.epoch
    made = claim is not None and claim.state is ClaimState.OWNED
    if made and claim is not None and ownership.in_force(claim, epoch):
        return True
    return bool(ownership.split(kind, sightings, claim, epoch)[0])


def _await(intent: Intent, kind: ArtifactKind, sightings: Sequence[Sighting], draft: Draft) -> None:
    """Others make it; the fields declared of it are what dependants need: a link that is up."""
    key = intent.artifact.key
    if not sightings:
        draft.hold(intent, f"{key} is not there yet")
        return
    seen = sightings[0].artifact.fields
    lacking = () if kind.setting else diff.changes(kind, intent.artifact.fields, seen)
    if lacking:
        fields = ", ".join(change.field for change in lacking)
        draft.hold(intent, f"{key} is there, but not yet as it has to be ({fields})")


def _with_waiting_owners(want: Wanted, draft: Draft) -> Wanted:
    """Whoever shared it before, and now waits, still has a part in it: the claim must not forget
    them, or the artifact would go with the last of the others."""
    claim = draft.claims.get(want.intent.artifact.key)
    waiting = draft.keepers(claim.owners) if claim is not None else ()
    if not waiting or want.intent.action is not Action.ENSURE:
        return want
    owners = dict.fromkeys((*want.owners, *(one.owner for one in waiting)))
    return replace(want, owners=tuple(owners))


def _objection(want: Wanted, kind: ArtifactKind, draft: Draft) -> str:
    """What other programs have that speaks against this artifact."""
    if kind.objection is None:
        return ""
    wanted = want.intent.artifact
    for other in draft.foreign(kind):
        why = "" if other.artifact.key == wanted.key else kind.objection(wanted, other.artifact)
        if why:
            return f"{why}: {other.artifact.key} is there too ({other.holder})"
    return ""


def _decide_orphans(wanted: Mapping[Key, Wanted], draft: Draft) -> None:
    observed = draft.observed
    bulk_names = {name for name, kind in KINDS.items() if kind.bulk}
    unseen = (key for key in draft.claims if key not in observed.sightings)
    orphans = [
        key
        for key in chain(observed.sightings, unseen)
        if key not in wanted and not observed.why_unknown(key) and key.kind not in bulk_names
    ]
    waiting = _waiting(wanted, draft)
    awaited = [
        sighting.artifact
        for key in (orphans if waiting else ())
        for sighting in observed.sightings.get(key, ())
        if not waiting.isdisjoint(make_before_break.purposes(sighting.artifact))
    ]
    carrying = make_before_break.carrying(
        [*awaited, *draft.awaited],
        [key for key in draft.missing if key in wanted],
        observed,
    )
    for key in orphans:
        _decide_orphan(key, waiting, carrying, draft)


def _decide_orphan(
    key: Key, waiting: Set[tuple[str, str]], carrying: Set[Key], draft: Draft
) -> None:
    """waiting: what is declared and cannot be made now. carrying: links that are needed so far."""
    kind, claim = KINDS[key.kind], draft.claims.get(key)
    sightings = draft.observed.sightings.get(key, ())
    ours, _ = ownership.split(kind, sightings, claim, draft.policy.epoch)
    owners = claim.owners if claim is not None else ()
    for sighting, proof in ours:
        artifact = sighting.artifact
        if not waiting.isdisjoint(make_before_break.purposes(artifact)):
            draft.await_successor(artifact, owners, proof)
        elif key in carrying:
            draft.orphans.append(Orphan(artifact, owners, False, CARRIES, proof))
        else:
            decide.orphan(sighting, kind, proof, owners, draft)
    if claim is not None and not ours:
        decide.forget(claim, _why_forget(claim, bool(sightings), draft), draft)


def _waiting(wanted: Mapping[Key, Wanted], draft: Draft) -> set[tuple[str, str]]:
    intents = (wanted[key].intent for key in draft.missing if key in wanted)
    return {
        purpose
        for intent in intents
        if intent.action is Action.ENSURE
        for purpose in make_before_break.purposes(intent.artifact)
    }


def _why_forget(claim: Claim, seen: bool, draft: Draft) -> str:
    if not ownership.in_force(claim, draft.policy.epoch):
        return "claimed before a reboot"
    if claim.state is ClaimState.PENDING and seen:
        return "its create was interrupted, and what is there now is not ours"
    return "what is there now is not what was claimed" if seen else "already gone"
