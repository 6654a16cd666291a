"""What an operation may cost whoever uses the network meanwhile."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, Batch, Fields
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.address import LOST
from holdfast.engine.kinds.route import DEFAULTS
from holdfast.engine.plan import Change, Risk, Verb

_IPV6_LEAST_MTU = 1280


def assess(
    verb: Verb, subject: Artifact | Batch, changes: tuple[Change, ...] = ()
) -> tuple[Risk, str]:
    """The risk of an operation, and a few words on what would be noticed."""
    kind = subject.kind.name if isinstance(subject, Batch) else subject.key.kind
    if [change.field for change in changes] == [KINDS[kind].writer_field]:
        return Risk.LOW, "its tag changes, and nothing else"
    if kind == "route":
        return _route(verb, subject)
    fields: Fields = subject.fields if isinstance(subject, Artifact) else {}
    if kind == "link":
        return _link(verb, changes)
    if kind == "address" and verb is not Verb.CREATE:
        if [change.before for change in changes] == [LOST]:
            return Risk.LOW, "the kernel's route to its prefix comes back"
        return Risk.HIGH, f"connections to {fields.get('address')} end"
    if kind == "nft":
        return _nft(verb)
    if kind == "service" and verb is not Verb.CREATE:
        goes_on = {change.field for change in changes} == {"reload"}
        goes_on = goes_on or any(one.field == "active" and not one.before for one in changes)
        return (Risk.LOW, "") if goes_on else (Risk.MEDIUM, "what it serves is interrupted")
    if kind == "wireguard" and verb is not Verb.CREATE:
        return _wireguard(verb, changes)
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
        return subject.fields.get("destination") in DEFAULTS
    # A key begins with the length of its prefix; the least of a million is found without a step of
    # Python's for each.
    return bool(subject.keys) and min(subject.keys)[0] == 0


def _nft(verb: Verb) -> tuple[Risk, str]:
    if verb is Verb.DELETE:
        return Risk.HIGH, "what its rules dropped, marked or translated passes as it is"
    if verb is Verb.CREATE:
        return Risk.HIGH, "new connections go by its rules at once"
    return Risk.MEDIUM, "replaced in one transaction; new connections go by the new rules"


def _link(verb: Verb, changes: tuple[Change, ...]) -> tuple[Risk, str]:
    if verb in (Verb.REPLACE, Verb.DELETE):
        return Risk.HIGH, "its addresses and routes go with it"
    changed = {change.field: change.after for change in changes}
    if changed.get("up") is False:
        return Risk.HIGH, "traffic through it stops"
    if changed.keys() & {"master", "mac"}:
        return Risk.HIGH, "traffic through it is interrupted"
    mtu = changed.get("mtu")
    if isinstance(mtu, int) and mtu < _IPV6_LEAST_MTU:
        return Risk.HIGH, "there is no IPv6 over it with an MTU that small"
    if mtu is not None:
        return Risk.MEDIUM, "large packets are treated differently at once"
    return Risk.LOW, ""


def _wireguard(verb: Verb, changes: tuple[Change, ...]) -> tuple[Risk, str]:
    if verb is Verb.DELETE:
        return Risk.HIGH, "nothing passes the tunnel any more"
    if any(change.field in ("public_key", "listen_port") for change in changes):
        return Risk.HIGH, "its peers have to know the new key or port"
    return Risk.MEDIUM, "traffic of the peers that differ is treated differently at once"
