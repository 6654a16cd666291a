"""The story of an artifact: from what is there back to who declared it, and on to what is next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.artifact import Batch, in_words
from holdfast.engine.document import Entry
from holdfast.engine.kinds import KINDS
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Change, Operation, Plan, Risk, Verb
from holdfast.render import artifact_words, plan_text
from holdfast.render import claim as claim_story
from holdfast.render.explain.findings import Finding
from holdfast.render.explain.selector import Selector
from holdfast.render.style import Style

_THIRD_PERSON = {
    Verb.CREATE: "creates it",
    Verb.UPDATE: "updates it",
    Verb.REPLACE: "replaces it",
    Verb.DELETE: "deletes it",
    Verb.KEEP: "keeps it",
    Verb.FORGET: "forgets the claim and leaves the object alone",
}
NOT_OURS = "Holdfast touches only what it can prove it owns"


@dataclass(frozen=True, slots=True)
class Next:
    """What the next apply would do."""

    action: str  # a verb, or "none"
    says: str
    changes: tuple[Change, ...] = ()
    risk: Risk = Risk.NONE
    risk_note: str = ""
    right: str = ""  # by which it may be done
    losses: tuple[str, ...] = ()  # what others lose, or would


def members(
    selector: Selector, findings: Sequence[Finding], plan: Plan, matched: str = ""
) -> Iterator[tuple[str, Any]]:
    """matched: the route that leads to the address that was asked for, where it was no other."""
    yield "format_version", document.FORMAT_VERSION
    yield "query", selector.text
    if matched:
        yield "longest_match", matched
    yield "findings", (_entry(finding, plan) for finding in findings)


def lines(finding: Finding, plan: Plan, style: Style) -> Iterator[str]:
    coming = what_next(finding, plan)
    shown = finding.sightings[0].artifact.fields if finding.sightings else None
    yield style(artifact_words.artifact(document.name(finding.key), shown), "bold")
    for label, said in (
        ("there now", _there(finding)),
        ("declared", _declared(finding)),
        ("ours", _ours(finding, coming)),
        ("claim", _claim(finding)),
        ("next apply", coming.says),
    ):
        if said:
            yield f"  {style(label.ljust(10), 'dim')}  {said}"
    for line in plan_text.changes(document.changes(coming.changes), style):
        yield " " * 14 + line
    if coming.risk in (Risk.MEDIUM, Risk.HIGH):
        yield " " * 14 + style(f"risk {coming.risk.value}: {coming.risk_note}", "yellow")
    if coming.action != "none":  # why it is held says what others would lose
        yield from (" " * 14 + line for line in plan_text.losses(coming.losses, style))


def what_next(finding: Finding, plan: Plan) -> Next:
    if finding.unknown:
        return Next("none", f"nothing: it cannot be observed ({finding.unknown})")
    for operation in plan.operations:
        if finding.concerns(operation):
            # One that is there, and cannot be wholly as declared, is kept and blocked.
            blocked = _held(finding, plan) if operation.verb is Verb.KEEP else None
            return blocked or _operation(operation, plan)
    for conflict in plan.conflicts:
        if conflict.desired.key == finding.key:
            says = f"leaves it alone: what is there is not ours. To resolve it: {conflict.remedy}"
            return Next("none", says, conflict.changes)
    if any(candidate.desired.key == finding.key for candidate in plan.candidates):
        says = "leaves it alone: as declared, but not ours; `holdfast adopt --apply` takes it over"
        return Next("none", says)
    return _held(finding, plan) or _left_alone(finding, plan)


def _operation(operation: Operation, plan: Plan) -> Next:
    says = f"{_THIRD_PERSON[operation.verb]}: {operation.reason}"
    if plan.refusal and operation.verb.changes_host:
        says = f"is refused; it would do this: {says}"
    return Next(
        operation.verb.value,
        says,
        operation.changes,
        operation.risk,
        operation.risk_note,
        operation.proof,
        operation.losses,
    )


def _held(finding: Finding, plan: Plan) -> Next | None:
    owners = {declaration.owner for declaration in finding.declared}
    for what, every in (("waits", plan.pending), ("is blocked", plan.blocked)):
        for held in every:
            if held.key == finding.key or (held.key is None and held.owner in owners):
                return Next("none", f"{what}: {held.reason}", losses=held.losses)
    return None


def _left_alone(finding: Finding, plan: Plan) -> Next:
    for orphan in plan.orphans:
        if not isinstance(orphan.subject, Batch) and orphan.subject.key == finding.key:
            return Next("none", f"leaves it: {orphan.reason}", losses=orphan.losses)
    if finding.declared:
        return Next("none", "does nothing about it: it is only observed")
    if finding.made_for:
        return Next("none", "leaves it to whoever made it for us, and keeps that going")
    if finding.sightings and not finding.proof:
        return Next("none", f"leaves it alone: it is not ours, and {NOT_OURS}")
    return Next("none", "does nothing about it")


def _there(finding: Finding) -> str:
    if finding.unknown:
        return f"unknown: {finding.unknown}"
    if not finding.sightings:
        return "no"
    said = [_holder(sighting) for sighting in finding.sightings]
    return "yes, " + "; and again, ".join(said) if any(said) else "yes"


def _holder(sighting: Sighting) -> str:
    if sighting.tag:
        return f"carrying our kernel tag ({sighting.tag})"
    return (
        f"held by {sighting.holder}" if sighting.holder.startswith("protocol") else sighting.holder
    )


def _declared(finding: Finding) -> str:
    if finding.declared:
        return ", and ".join(f"by {each.owner} at {each.place}" for each in finding.declared)
    if finding.masked:
        return f"not now: it would be by {', and by '.join(finding.masked)}"
    if finding.past is not None:
        past = finding.past
        return f"no longer; until generation {past.generation} by {past.owner} at {past.place}"
    if finding.claim is not None:
        owners = artifact_words.owners(finding.claim.owners)
        return f"no longer; it was by {owners} at {finding.claim.origin}"
    return "no"


def _ours(finding: Finding, coming: Next) -> str:
    if finding.proof:
        return f"yes, by {finding.proof}"
    if not finding.sightings:
        return ""
    if KINDS[finding.key.kind].setting:
        return "a setting: it always exists, and belongs to nobody"
    if coming.right:
        return "only its settings, because they are declared; it is never deleted"
    if finding.made_for:
        return f"not by itself; {finding.made_for}"
    return "no: neither a tag nor a claim says so"


def _claim(finding: Finding) -> str:
    claim = finding.claim
    if claim is None:
        return ""
    state = "" if claim.state == "owned" else f", {claim.state}"
    said = f"{claim.provenance}{state}, generation {claim.generation}, {claim.fingerprint}"
    if claim.original:
        before = ", ".join(f"{k} {in_words(v)}" for k, v in claim.original.items())
        said += f"; before that: {before}"
    return said


def _entry(finding: Finding, plan: Plan) -> Entry:
    coming = what_next(finding, plan)
    past = finding.past
    return {
        "artifact": document.name(finding.key),
        "observed": [
            {"fields": dict(s.artifact.fields), "tag": s.tag, "holder": s.holder}
            for s in finding.sightings
        ],
        "unknown": finding.unknown,
        "declared": [{"owner": each.owner, "place": each.place} for each in finding.declared],
        "masked": list(finding.masked),
        "made_for": finding.made_for,
        "declared_until": past
        and {"generation": past.generation, "owner": past.owner, "place": past.place},
        "claim": None if finding.claim is None else claim_story.entry(finding.claim),
        "proof": finding.proof,
        "next": {
            "action": coming.action,
            "says": coming.says,
            "changes": document.changes(coming.changes),
            "risk": coming.risk.value,
            "risk_note": coming.risk_note,
            "losses": list(coming.losses),
        },
    }
