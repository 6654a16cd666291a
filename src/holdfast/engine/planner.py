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

What is ours and not declared is an orphan; its kind's cleanup rule says whether it goes. Nothing
is deleted while any kind could not be observed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from holdfast.engine import bulk_planner, decide, ownership
from holdfast.engine.artifact import ArtifactKind, Key
from holdfast.engine.claim import Claim, ClaimState
from holdfast.engine.draft import Draft, Wanted
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Observed
from holdfast.engine.order import depths, rank
from holdfast.engine.plan import Held, Plan
from holdfast.engine.policy import Policy


def plan(desired: Desired, observed: Observed, claims: Mapping[Key, Claim], policy: Policy) -> Plan:
    draft = Draft(observed, claims, policy)
    draft.pending.extend(Held(w.owner, w.origin, w.reason) for w in desired.waiting)
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
    return draft.finish(desired)


def _merge(intents: Sequence[Intent | BulkIntent], draft: Draft) -> dict[Key, Wanted]:
    """Several owners may declare one artifact as long as they do not contradict each other."""
    merged: dict[Key, Wanted] = {}
    for intent in intents:
        if isinstance(intent, BulkIntent):
            continue
        key = intent.artifact.key
        first = merged.get(key)
        if first is None:
            merged[key] = Wanted(intent, (intent.owner,))
            continue
        clash = _contradiction(first.intent, intent)
        if clash:
            where = f"{first.intent.owner} ({first.intent.origin})"
            reason = f"{key}: {clash} of {where}"
            draft.blocked.append(Held(intent.owner, intent.origin, reason, key))
            continue
        both = replace(
            first.intent,
            action=Action.ENSURE
            if Action.ENSURE in (first.intent.action, intent.action)
            else intent.action,
            creates=any(
                one.creates for one in (first.intent, intent) if one.action is Action.ENSURE
            ),
            artifact=replace(
                first.intent.artifact,
                fields={**first.intent.artifact.fields, **intent.artifact.fields},
                payload=first.intent.artifact.payload or intent.artifact.payload,
            ),
            requires=tuple(dict.fromkeys((*first.intent.requires, *intent.requires))),
        )
        merged[key] = Wanted(both, tuple(dict.fromkeys((*first.owners, intent.owner))))
    return merged


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
    if kind.name in draft.observed.unknown:
        draft.hold(intent, f"cannot be observed: {draft.observed.unknown[kind.name]}", blocked=True)
        return
    sightings = draft.observed.sightings.get(key, ())
    if intent.action is Action.OBSERVE:
        if not sightings:
            draft.hold(intent, f"{key} is not there yet")
        return
    if intent.action is Action.DELETE:
        decide.absent(want, kind, sightings, draft)
        return
    waits = draft.waits_for(intent.requires)
    if waits:
        draft.hold(intent, waits)
        return
    objection = _objection(want, kind, draft)
    if objection and not any(sighting.tag for sighting in sightings):
        draft.hold(intent, objection, blocked=True)
        return
    decide.ensure(want, kind, sightings, draft)
    if objection:
        draft.blocked.append(Held(intent.owner, intent.origin, objection, key))


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
    for key in chain(observed.sightings, unseen):
        if key in wanted or key.kind in observed.unknown or key.kind in bulk_names:
            continue
        kind = KINDS[key.kind]
        claim = draft.claims.get(key)
        ours, _ = ownership.split(kind, observed.sightings.get(key, ()), claim, draft.policy.epoch)
        owners = claim.owners if claim is not None else ()
        for sighting, proof in ours:
            decide.remove(sighting, kind, proof, owners, "nothing declares it any more", draft)
        if claim is not None and not ours:
            decide.forget(
                claim, _why_forget(claim, bool(observed.sightings.get(key)), draft), draft
            )


def _why_forget(claim: Claim, seen: bool, draft: Draft) -> str:
    if not ownership.in_force(claim, draft.policy.epoch):
        return "claimed before a reboot or in another network namespace"
    if claim.state is ClaimState.PENDING and seen:
        return "its create was interrupted, and what is there now is not ours"
    return "what is there now is not what was claimed" if seen else "already gone"
