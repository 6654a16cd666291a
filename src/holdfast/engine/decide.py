"""What to do about one artifact: the decisions that the truth table of `planner` names."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dataclass import replace
from holdfast.engine import diff, ownership, risk
from holdfast.engine.artifact import Artifact, ArtifactKind, Fields, Key
from holdfast.engine.claim import Claim, Provenance
from holdfast.engine.draft import Draft, Wanted
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Candidate, Change, Conflict, Operation, Orphan, Risk, Verb

# As many of what others would lose as can be read; a plan's document has them all.
_SHOWN = 10

_SETTING = "a setting: it always exists, and setting it is what was declared"
RECOVER_REMEDY = "`holdfast adopt --recover`, if it was made by this installation"
CONFLICT_REMEDY = "change the configuration to match it, remove it by hand, or leave it as it is"


def ensure(want: Wanted, kind: ArtifactKind, sightings: Sequence[Sighting], draft: Draft) -> None:
    intent = want.intent
    key = intent.artifact.key
    ours, foreign = ownership.split(kind, sightings, draft.claims.get(key), draft.policy.epoch)
    foreign = [sighting for sighting in foreign if not sighting.transient]
    if ours:
        # Killed while the tag was being changed, there may be one with each: the new one stays.
        (first, proof), *others = sorted(ours, key=lambda our: our[0].retag is not None)
        _settle(want, kind, first, proof, draft)
        for other, other_proof in others:
            remove(other, kind, other_proof, want.owners, "a second copy of it", draft)
    elif foreign and (kind.setting or not intent.creates):
        _offer(want, kind, foreign[0], draft, conflict=False)
        _settle(want, kind, foreign[0], "", draft)
    elif foreign and (not kind.coexists or any(sighting.unproven for sighting in foreign)):
        # Two may stand side by side by their tags, and one with ours is there already.
        foreign.sort(key=lambda sighting: not sighting.unproven)
        _offer(want, kind, foreign[0], draft, conflict=True)
    elif kind.setting or not intent.creates:
        draft.hold(intent, f"{key} is not there yet")
    else:
        if foreign:
            _offer(want, kind, foreign[0], draft, conflict=False)
        _create(want, draft)


def side_effects(losses: Sequence[str]) -> str:
    """Why something is not done that others would lose something by, and what to do about it."""
    more = f" and {len(losses) - _SHOWN} more" if len(losses) > _SHOWN else ""
    return (
        f"others would lose {', '.join(losses[:_SHOWN])}{more}; if that is meant, say"
        " --allow-side-effects"
    )


def _create(want: Wanted, draft: Draft) -> None:
    artifact = want.intent.artifact
    losses = draft.lost(artifact.key)
    if losses and not draft.policy.allow_side_effects:
        reason = f"not created: {side_effects(losses)}"
        draft.hold(want.intent, reason, blocked=True, losses=losses)
        return
    level, note = risk.assess(Verb.CREATE, artifact)
    draft.created.add(artifact.key)
    draft.operations.append(
        Operation(
            Verb.CREATE,
            artifact,
            want.owners,
            reason="declared and not there",
            origin=want.intent.origin,
            risk=level,
            risk_note=note,
            requires=want.intent.requires,
            losses=losses,
        )
    )


def settling(kind: ArtifactKind, differing: Sequence[Change], seen: Fields) -> tuple[Verb, str]:
    """What makes something of ours as declared, and why."""
    if not differing:
        return Verb.KEEP, "as declared"
    reason = _differ(differing)
    fixed = [
        change.field for change in differing if kind.immutable(seen, change.field, change.after)
    ]
    if fixed:
        return Verb.REPLACE, f"{reason}; {_joined(fixed)} cannot be changed in place"
    return Verb.UPDATE, reason


def _differ(differing: Sequence[Change]) -> str:
    names = [change.field for change in differing]
    # A field that holds several things is named for them: nexthops.
    verb = "differ" if len(names) > 1 or isinstance(differing[0].after, tuple) else "differs"
    return f"{_joined(names)} {verb}"


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _settle(want: Wanted, kind: ArtifactKind, seen: Sighting, proof: str, draft: Draft) -> None:
    """Keep, update or replace what is ours (or a setting) so that it is as declared."""
    artifact = want.intent.artifact
    differing = diff.changes(kind, artifact.fields, seen.artifact.fields)
    carried = seen.artifact.fields.get(kind.writer_field)
    differing += diff.retagging(kind, carried, seen.retag)
    verb, reason = settling(kind, differing, seen.artifact.fields)
    claim = draft.claims.get(artifact.key)
    if verb is Verb.REPLACE and not (proof and ownership.may_replace(kind, seen, claim)):
        draft.hold(
            want.intent, f"{reason}, and {artifact.key} is not ours to replace", blocked=True
        )
        return
    losses = draft.lost(artifact.key, [change.field for change in differing])
    if losses and not draft.policy.allow_side_effects:
        if verb is Verb.REPLACE:
            said = f"{reason}; {side_effects(losses)}"
            draft.hold(want.intent, said, blocked=True, losses=losses)
            return
        # What is there stays, and so does what stands on it; its other fields are set.
        kept, differing = _parted(artifact.key, differing, draft)
        artifact = _left(artifact, kept)
        draft.block(want.intent, f"{_differ(kept)}; {side_effects(losses)}", losses)
        names = _joined([change.field for change in kept])
        reason = (
            f"{_differ(differing)} (not changed: {names})"
            if differing
            else f"as declared but for {names}"
        )
        verb, losses = Verb.UPDATE if differing else Verb.KEEP, ()
    level, note = risk.assess(verb, artifact, differing) if differing else (Risk.NONE, "")
    draft.operations.append(
        Operation(
            verb,
            artifact,
            want.owners,
            reason=reason,
            origin=want.intent.origin,
            proof=proof or _SETTING,
            by_declaration=not proof,
            risk=level,
            risk_note=note,
            changes=differing,
            requires=want.intent.requires,
            observed=seen.artifact,
            revert=want.intent.revert and kind.setting,
            losses=losses,
        )
    )


def _left(artifact: Artifact, kept: Sequence[Change]) -> Artifact:
    """An artifact as it shall be while these changes wait: a way back must not ask for them."""
    left = {change.field: change.before for change in kept}
    fields = {name: left.get(name, value) for name, value in artifact.fields.items()}
    return replace(artifact, fields=fields)


def _parted(
    key: Key, differing: Sequence[Change], draft: Draft
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """The changes that others lose something by, and the others."""
    taking = {loss.field for loss in draft.observed.losses[key]}
    if "" in taking:
        return tuple(differing), ()
    kept = tuple(change for change in differing if change.field in taking)
    return kept, tuple(change for change in differing if change not in kept)


def _offer(
    want: Wanted, kind: ArtifactKind, seen: Sighting, draft: Draft, *, conflict: bool
) -> None:
    """Something foreign holds the identity: offer it for adoption, and name the conflict."""
    intent = want.intent
    differing = diff.changes(kind, intent.artifact.fields, seen.artifact.fields)
    candidate = Candidate(
        intent.artifact,
        want.owners,
        intent.origin,
        seen.artifact,
        seen.holder,
        differing,
        seen.unproven,
    )
    draft.candidates.append(candidate)
    if conflict and differing:
        draft.conflicts.append(
            Conflict(
                intent.artifact,
                want.owners,
                intent.origin,
                seen.artifact,
                seen.holder,
                differing,
                RECOVER_REMEDY if seen.unproven else CONFLICT_REMEDY,
            )
        )
        who = f" ({seen.holder})" if seen.holder else ""
        draft.missing[intent.artifact.key] = f"something else holds it{who}"


def absent(want: Wanted, kind: ArtifactKind, sightings: Sequence[Sighting], draft: Draft) -> None:
    key = want.intent.artifact.key
    claim = draft.claims.get(key)
    ours, foreign = ownership.split(kind, sightings, claim, draft.policy.epoch)
    foreign = [sighting for sighting in foreign if not sighting.transient]
    losses = draft.lost(key)
    for sighting, proof in ours:
        if claim is not None and claim.provenance is not Provenance.CREATED and not sighting.tag:
            reason = f"{key} was {claim.provenance}, not created by Holdfast, so it is not deleted"
            draft.hold(want.intent, reason, blocked=True)
        elif not ownership.untouched(kind, sighting, claim):
            reason = f"{key} is no longer what was claimed, so it is not deleted"
            draft.hold(want.intent, reason, blocked=True)
        elif losses and not draft.policy.allow_side_effects:
            reason = f"{key} is not deleted: {side_effects(losses)}"
            draft.hold(want.intent, reason, blocked=True, losses=losses)
        else:
            remove(sighting, kind, proof, want.owners, "declared absent", draft, keep_rule=False)
    if foreign:
        draft.hold(want.intent, f"{key} exists and is not ours, so it is not deleted", blocked=True)
    elif not ours and claim is not None:
        forget(claim, "declared absent and already gone", draft)


def forget(claim: Claim, reason: str, draft: Draft) -> None:
    draft.operations.append(
        Operation(
            Verb.FORGET,
            Artifact(claim.key, claim.fields),
            claim.owners,
            reason=reason,
            origin=claim.origin,
        )
    )


def orphan(
    sighting: Sighting, kind: ArtifactKind, proof: str, owners: tuple[str, ...], draft: Draft
) -> None:
    """Something of ours that nothing declares now."""
    keepers = draft.keepers(owners)
    if keepers:
        draft.keep(sighting.artifact, owners, keepers, proof)
    else:
        remove(sighting, kind, proof, owners, "nothing declares it any more", draft)


def _release(claim: Claim, kind: ArtifactKind, seen: Sighting, proof: str, draft: Draft) -> None:
    """A setting, or the settings of a NIC, that nothing declares any more."""
    original = claim.original
    if not (claim.revert and kind.setting and original):
        forget(claim, "nothing declares it any more; it stays as it is", draft)
    elif not diff.changes(kind, original, seen.artifact.fields):
        forget(claim, "nothing declares it any more, and it is what it was before", draft)
    elif not ownership.untouched(kind, seen, claim):
        reason = "nothing declares it any more, and somebody changed it since; it stays as it is"
        forget(claim, reason, draft)
    elif not kind.restores(original):
        forget(claim, "nothing declares it any more; what was before cannot be set", draft)
    else:
        artifact = Artifact(claim.key, original)
        differing = diff.changes(kind, original, seen.artifact.fields)
        level, note = risk.assess(Verb.UPDATE, artifact, differing)
        draft.operations.append(
            Operation(
                Verb.UPDATE,
                artifact,
                claim.owners,
                reason="no longer declared: set back to what it was before",
                origin=claim.origin,
                proof=proof,
                risk=level,
                risk_note=note,
                changes=differing,
                observed=seen.artifact,
                revert=True,
                sets_back=True,
            )
        )


def remove(
    sighting: Sighting,
    kind: ArtifactKind,
    proof: str,
    owners: tuple[str, ...],
    why: str,
    draft: Draft,
    *,
    keep_rule: bool = True,
) -> None:
    """Delete what is ours, if the cleanup rule of its kind allows."""
    artifact = sighting.artifact
    claim = draft.claims.get(artifact.key)
    losses = draft.lost(artifact.key)
    if keep_rule:
        if claim is not None and claim.provenance is Provenance.SET and not sighting.tag:
            # It was there before us, and was never ours but for the values we gave it.
            _release(claim, kind, sighting, proof, draft)
            return
        allowed, reason = ownership.may_delete_orphan(kind, sighting, claim)
        if allowed and losses and not draft.policy.allow_side_effects:
            reason = f"kept: {side_effects(losses)}"
            draft.orphans.append(Orphan(artifact, owners, False, reason, proof, losses))
            return
        draft.orphans.append(
            Orphan(artifact, owners, allowed, reason if not allowed else why, proof)
        )
        if not allowed:
            if claim is not None and claim.provenance is not Provenance.CREATED:
                forget(claim, "nothing declares it any more; it stays as it is", draft)
            return
    level, note = risk.assess(Verb.DELETE, artifact)
    draft.operations.append(
        Operation(
            Verb.DELETE,
            artifact,
            owners,
            reason=why,
            origin=claim.origin if claim is not None else "",
            proof=proof,
            risk=level,
            risk_note=note,
            observed=artifact,
            losses=losses,
        )
    )
