"""What an operation may cost whoever uses the network meanwhile."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, Batch, Fields
from holdfast.engine.plan import Change, Risk, Verb

_DEFAULTS = ("0.0.0.0/0", "::/0")


def assess(
    verb: Verb, subject: Artifact | Batch, changes: tuple[Change, ...] = ()
) -> tuple[Risk, str]:
    """The risk of an operation, and a few words on what would be noticed."""
    kind = subject.kind.name if isinstance(subject, Batch) else subject.key.kind
    if kind == "route":
        return _route(verb, subject)
    fields: Fields = subject.fields if isinstance(subject, Artifact) else {}
    if kind == "link":
        return _link(verb, changes)
    if kind == "address" and verb is not Verb.CREATE:
        return Risk.HIGH, f"connections to {fields.get('address')} end"
    if kind in ("rule", "sysctl"):
        return Risk.MEDIUM, "changes how packets are treated at once"
    return Risk.LOW, ""


def _route(verb: Verb, subject: Artifact | Batch) -> tuple[Risk, str]:
    if _has_default(subject):
        note = {
            Verb.CREATE: "sends what no other route matches this way",
            Verb.DELETE: "what no other route matches is no longer reachable",
        }
        return Risk.HIGH, note.get(verb, "moves what no other route matches")
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.MEDIUM, "the destination may become unreachable"
    return (
        Risk.MEDIUM,
        "traffic moves to the new path; the new route is in place before the old goes",
    )


def _has_default(subject: Artifact | Batch) -> bool:
    if isinstance(subject, Artifact):
        return subject.fields.get("destination") in _DEFAULTS
    return any(key[0] == 0 for key in subject.keys)


def _link(verb: Verb, changes: tuple[Change, ...]) -> tuple[Risk, str]:
    if verb in (Verb.REPLACE, Verb.DELETE):
        return Risk.HIGH, "its addresses and routes go with it"
    changed = {change.field: change.after for change in changes}
    if changed.get("up") is False:
        return Risk.HIGH, "traffic through it stops"
    if changed.keys() & {"master", "mac"}:
        return Risk.HIGH, "traffic through it is interrupted"
    if "mtu" in changed:
        return Risk.MEDIUM, "large packets are treated differently at once"
    return Risk.LOW, ""
