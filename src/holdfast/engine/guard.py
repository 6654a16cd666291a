"""The guard against removing much by accident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.intent import Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import FREE_DELETES, Policy

# What there is after them.
_LEAVES = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.KEEP)


def stray(elsewhere: Sequence[Claim]) -> str:
    """Why nothing is claimed here in a ledger with claims of another network namespace; empty
    where it has none.

    There is no option to go on: claims of this namespace would take the place of those of the
    other, and what it has would be nobody's.
    """
    if not elsewhere:
        return ""
    example = min(claim.key for claim in elsewhere)
    more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
    return (
        "this ledger belongs to another network namespace of this boot, where it claims"
        f" {example}{more}; go there, or use another --root here. If that namespace is gone for"
        " good: holdfast forget --other-namespaces"
    )


def tag_in_use(tag: str, others: Sequence[Key]) -> str:
    """Why a tag that was never given before is not given: what carries it would be taken for ours,
    and deleted as nobody declares it. Empty where nothing does."""
    if not others:
        return ""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return (
        f"ownership.tag changes to {tag.rpartition(' ')[2]}, which {others[0]}{more} of others'"
        " carry already; choose a number that no other program uses"
    )


def refusal(
    operations: Sequence[Operation],
    desired: Desired,
    elsewhere: Sequence[Claim],
    policy: Policy,
    misnamed: str = "",
) -> str:
    """Why this is not done, or must be asked for twice; empty where it need not be. misnamed: of a
    link whose name may be mistyped (`absent_links`)."""
    if elsewhere and any(op.verb.changes_host for op in operations):
        return stray(elsewhere)
    if policy.held_by and any(op.verb.changes_host for op in operations):
        return policy.held_by
    if policy.allow_mass_delete:
        return ""
    deletes = _count(operations, Verb.DELETE)
    changes = _count(operations, Verb.UPDATE, Verb.REPLACE)
    gone = sum(op.count for op in operations if op.cleans_up)
    doubted = doubtful(policy.doubt, policy.remedy, operations)
    if doubted:
        return doubted
    if misnamed and not policy.held_to:
        return misnamed
    if gone and not desired.intents and not desired.waiting:
        how = " or ".join(["deleted"] * (deletes > 0) + ["set back"] * (gone > deletes))
        return (
            f"the configuration declares nothing, so all {gone} owned artifacts would be {how};"
            " if that is meant, say --allow-mass-delete"
        )
    if not deletes:
        return ""
    if policy.unattended:
        missed = lost(operations)
        if missed:
            return _without(missed)
    owned = deletes + changes + _count(operations, Verb.KEEP)
    share = deletes * 100 // owned
    if deletes > FREE_DELETES and share > policy.max_delete_share:
        return (
            f"{deletes} of {owned} owned artifacts ({share} %) would be deleted, more than the"
            f" {policy.max_delete_share} % allowed; if that is meant, say --allow-mass-delete"
        )
    return ""


def lost(operations: Sequence[Operation]) -> dict[str, Artifact]:
    """What the router has and would have no more, by name, with an artifact that it had for it.

    Nothing is lost with an artifact that another takes the place of: an address by another of its
    family on the same link, or by itself on another one.
    """
    gone = [artifact for op in operations if op.verb is Verb.DELETE for artifact in _weighed(op)]
    if not gone:
        return {}
    left = [artifact for op in operations if op.verb in _LEAVES for artifact in _weighed(op)]
    names = set(map(vital_name, left))
    moved = set(_addresses(left))
    return {
        vital_name(artifact): artifact
        for artifact in gone
        if vital_name(artifact) not in names and artifact.fields.get("address") not in moved
    }


def vital_name(artifact: Artifact) -> str:
    """What the router is without, without this and all like it; empty for most."""
    return KINDS[artifact.key.kind].vital(artifact)


def _addresses(artifacts: Iterable[Artifact]) -> Iterator[object]:
    return (artifact.fields["address"] for artifact in artifacts if "address" in artifact.fields)


def _weighed(operation: Operation) -> Iterator[Artifact]:
    """Those of its artifacts that are vital. Of many routes a default route has the least key:
    none of a million others need be looked at."""
    subject = operation.subject
    if isinstance(subject, Batch):
        subject = subject.artifact(min(subject.keys))
    if vital_name(subject):
        yield subject


def _without(missed: Mapping[str, Artifact]) -> str:
    """Few deletes cut a router off as well as many: the last address of the LAN will do."""
    *first, last = (f"{name} ({artifact.key})" for name, artifact in sorted(missed.items()))
    said = f"{', '.join(first)} and {last}" if first else last
    return (
        f"the router would be without {said}, and nothing that is declared takes its place;"
        " `holdfast apply` does it if that is meant"
    )


def _count(operations: Sequence[Operation], *verbs: Verb) -> int:
    return sum(op.count for op in operations if op.verb in verbs)


def doubtful(doubt: str, remedy: str, operations: Sequence[Operation]) -> str:
    """Half of a line is often a line: 192.0.2.2 is the start of 192.0.2.254. So what is there is
    neither deleted nor changed for it; what is new stands in nobody's way."""
    deletes = _count(operations, Verb.DELETE)
    changes = _count(operations, Verb.UPDATE, Verb.REPLACE)
    if not doubt or not (deletes or changes):
        return ""
    each = ((deletes, "deleted"), (changes, "changed"))
    said = " and ".join(f"{count} {verb}" for count, verb in each if count)
    what = "artifact" if deletes + changes == 1 else "artifacts"
    first, _, rest = said.partition(" ")
    return f"{doubt}, and {first} {what} would be {rest}; {remedy}, or say --allow-mass-delete"
