"""The plan as a JSON document: what `plan -o json` prints and what a plan file holds.

The document is given as members, so that a writer can stream it: a batch of 100 000 artifacts
becomes 100 000 operations one after the other, and never all at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.difference import NOT_READ, Difference, Differences, Sign
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import (
    Candidate,
    Change,
    Conflict,
    Held,
    Marked,
    Operation,
    Orphan,
    Plan,
    Verb,
)

FORMAT_VERSION = "1.0"

Entry = dict[str, Any]

_CHANGES = {Sign.ADDED: "added", Sign.REMOVED: "removed", Sign.SAME: "context"}


@dataclass(frozen=True, slots=True)
class FileDigest:
    path: str  # absolute
    sha256: str


@dataclass(frozen=True, slots=True)
class About:
    """What a plan was made from."""

    holdfast_version: str
    root: str
    config: str  # absolute path of the Router document
    files: tuple[FileDigest, ...]


def members(
    plan: Plan, about: About, differences: Differences = NOT_READ
) -> Iterator[tuple[str, Any]]:
    """The document's members in order. A value that is an iterator stands for a list."""
    yield "format_version", FORMAT_VERSION
    yield "holdfast_version", about.holdfast_version
    yield "root", about.root
    files = [{"path": file.path, "sha256": file.sha256} for file in about.files]
    yield "config", {"path": about.config, "files": files}
    yield "digest", digest(plan, about.files)
    yield "summary", summary(plan)
    yield "refusal", plan.refusal
    yield "operations", operations(plan.operations, differences)
    yield "interruptions", interruptions(plan)
    yield "orphans", orphans(plan.orphans)
    yield "conflicts", (conflict(one, differences) for one in plan.conflicts)
    yield "adoption_candidates", map(candidate, plan.candidates)
    yield "recoverable", recoverable(plan.recoverable)
    yield "pending", map(held, plan.pending)
    yield "blocked", map(held, plan.blocked)
    yield "unknown", [{"kind": kind, "reason": reason} for kind, reason in plan.unknown]


def summary(plan: Plan) -> dict[str, int]:
    """How many artifacts each verb is about, and how many of the rest there are."""
    counts = {verb.value: 0 for verb in Verb}
    for operation_ in plan.operations:
        counts[operation_.verb.value] += operation_.count
    kept = (orphan for orphan in plan.orphans if not orphan.removed)
    return counts | {
        "orphans_kept": sum(count(orphan.subject) for orphan in kept),
        "conflicts": len(plan.conflicts),
        "adoption_candidates": len(plan.candidates),
        "recoverable": sum(count(one.subject) for one in plan.recoverable),
        "pending": len(plan.pending),
        "blocked": len(plan.blocked),
        "unknown": len(plan.unknown),
    }


def count(subject: Artifact | Batch) -> int:
    return len(subject) if isinstance(subject, Batch) else 1


def artifacts(subject: Artifact | Batch, limit: int | None = None) -> Iterator[Artifact]:
    """The artifacts of a subject, or the first few of them."""
    if isinstance(subject, Artifact):
        yield subject
        return
    keys = subject.keys if limit is None else subject.keys[:limit]
    for key in keys:
        yield subject.artifact(key)


def operations(given: Iterable[Operation], differences: Differences = NOT_READ) -> Iterator[Entry]:
    for each in given:
        shared = _shared(each)
        for artifact in artifacts(each.subject):
            entry = _about(artifact, {"action": each.verb.value}) | shared
            if differences and artifact.key in differences:
                entry["difference"] = difference(differences[artifact.key])
            yield entry


def operation(given: Operation, artifact: Artifact, differences: Differences = NOT_READ) -> Entry:
    """One artifact of an operation."""
    (entry,) = operations((replace(given, subject=artifact),), differences)
    return entry


def interruptions(plan: Plan) -> list[Entry]:
    """What stops while the plan is carried out, if only for a moment."""
    found = (
        (op.subject.key, KINDS[op.kind].interrupts(op))
        for op in plan.changes
        if isinstance(op.subject, Artifact)
    )
    return [{"artifact": name(key), "effect": effect} for key, effect in found if effect]


def difference(given: Difference) -> Entry:
    """What differs in the content of an artifact: for people and programs to read, and no part of
    what makes a plan the same as another."""
    return {
        "note": given.note,
        "added": given.added,
        "removed": given.removed,
        "hunks": [
            {
                "where": hunk.where,
                "lines": [{"change": _CHANGES[sign], "text": text} for sign, text in hunk.lines],
            }
            for hunk in given.hunks
        ],
        "left_out": given.left_out,
    }


def conflict(given: Conflict, differences: Differences = NOT_READ) -> Entry:
    entry = _offered(given) | {"remedy": given.remedy}
    if given.desired.key in differences:
        entry["difference"] = difference(differences[given.desired.key])
    return entry


def candidate(given: Candidate) -> Entry:
    return _offered(given) | {"adoptable": not given.changes}


def orphan(given: Orphan, artifact: Artifact) -> Entry:
    return _about(artifact) | {
        "owners": list(given.owners),
        "removed": given.removed,
        "reason": given.reason,
        "proof": given.proof,
        "losses": list(given.losses),
    }


def held(given: Held) -> Entry:
    entry: Entry = {"owner": given.owner, "origin": given.origin, "reason": given.reason}
    entry["artifact"] = None if given.key is None else name(given.key)
    return entry | {"losses": list(given.losses)}


def name(key: Key) -> Entry:
    return {"kind": key.kind, "name": key.name}


def changes(given: Iterable[Change]) -> list[Entry]:
    return [
        {"field": change.field, "before": change.before, "after": change.after} for change in given
    ]


def digest(plan: Plan, files: Iterable[FileDigest]) -> str:
    """What a plan does and what it was made from, in one value.

    Two plans with the same digest do the same to the host. The order of independent operations
    does not count, so neither does the order in which the kernel listed its objects.
    """
    lines = sorted(_operation_digest(each) for each in plan.changes)
    lines += sorted(f"{file.path} {file.sha256}" for file in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _operation_digest(given: Operation) -> str:
    state = hashlib.sha256(f"{given.verb} {given.kind}\n".encode())
    if isinstance(given.subject, Batch):
        # A template is a frozen value whose repr names every field, in order.
        state.update(f"{given.subject.template!r}\n".encode())
        if isinstance(given.observed, Batch):
            state.update(f"{given.observed.template!r}\n".encode())
        state.update(b"".join(given.subject.keys))
    else:
        observed = given.observed.fields if isinstance(given.observed, Artifact) else None
        state.update(_canonical(given.subject.key.name, given.subject.fields, observed))
    if given.losses:
        # Whoever agrees to a plan agrees to what others lose by it.
        state.update("\n".join(("", *sorted(given.losses))).encode())
    return state.hexdigest()


def _canonical(name_: str, wanted: Fields, observed: Fields | None) -> bytes:
    return json.dumps([name_, wanted, observed], sort_keys=True, separators=(",", ":")).encode()


def _about(artifact: Artifact, first: Entry | None = None) -> Entry:
    return (first or {}) | {"artifact": name(artifact.key), "fields": dict(artifact.fields)}


def _shared(given: Operation) -> Entry:
    return {
        "owners": list(given.owners),
        "origin": given.origin,
        "reason": given.reason,
        "proof": given.proof,
        "risk": given.risk.value,
        "risk_note": given.risk_note,
        "changes": changes(given.changes),
        "requires": [name(key) for key in given.requires],
        "losses": list(given.losses),
        "along": [
            {"artifact": name(one.key), "what": one.what, "put_back": one.put_back}
            for one in given.along
        ],
    }


def orphans(given: Iterable[Orphan]) -> Iterator[Entry]:
    for each in given:
        for artifact in artifacts(each.subject):
            yield orphan(each, artifact)


def recoverable(given: Iterable[Marked]) -> Iterator[Entry]:
    for each in given:
        for artifact in artifacts(each.subject):
            yield _about(artifact) | {"mark": each.mark}


def _offered(given: Conflict | Candidate) -> Entry:
    return {
        "artifact": name(given.desired.key),
        "owners": list(given.owners),
        "origin": given.origin,
        "holder": given.holder,
        "desired": dict(given.desired.fields),
        "observed": dict(given.observed.fields),
        "changes": changes(given.changes),
    }
