"""The ledger as JSON, out and in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.config.part import Part
from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.errors import Refused
from holdfast.state import (
    actions,
    claims,
    document,
    events,
    generations,
    latches,
    notes,
    parts,
    reference,
)
from holdfast.state.actions import Action
from holdfast.state.database import Database
from holdfast.state.events import StoredEvent
from holdfast.state.generations import Generation, GenerationFile
from holdfast.state.latches import Latch
from holdfast.state.reference import Unmapped

_SHOWN = 10  # differing claims named in a refusal; the rest is counted


@dataclass(frozen=True, slots=True)
class ImportSummary:
    added: tuple[Key, ...]
    changed: tuple[Key, ...]
    removed: tuple[Key, ...]
    unchanged: int
    generations: int
    events: int
    history_kept: bool  # the ledger had a history of its own, so the import's was left out
    unmapped: tuple[Unmapped, ...]  # reference format: what no claim could be made of


def export(database: Database) -> dict[str, Any]:
    with database.snapshot():
        history = sorted(generations.read(database, 0), key=lambda generation: generation.number)
        contents: dict[str, bytes] = {}
        for generation in history:
            stored = generations.files(database, generation.number)
            contents |= {file.sha256: stored[file.path] for file in generation.files}
        return {
            "format_version": document.FORMAT_VERSION,
            "claims": [_claim(claim) for claim in claims.read(database).values()],
            "generations": [_generation(generation) for generation in history],
            "contents": {
                sha256: document.encode_content(contents[sha256]) for sha256 in sorted(contents)
            },
            "events": [_event(event) for event in events.read(database, 0, 0)],
            "notes": notes.read(database),
            "parts": [_part(part) for part in parts.read(database, newest=False)],
            "latches": [_latch(latch) for latch in latches.read(database)],
            "actions": [_action(action) for action in actions.read(database)],
        }


def import_(database: Database, data: Mapping[str, Any], *, replace: bool) -> ImportSummary:
    parsed = document.parse(data)
    unmapped: list[Unmapped] = []
    if isinstance(parsed, document.ReferenceDocument):
        given, unmapped = reference.claims(parsed.artifacts)
    else:
        given = [part.claim() for part in parsed.claims]
    incoming = {claim.key: claim for claim in given}
    present = claims.read(database)
    changed = sorted(
        key for key in incoming.keys() & present.keys() if incoming[key] != present[key]
    )
    if changed and not replace:
        raise _differing(changed)
    removed = sorted(present.keys() - incoming.keys()) if replace else []
    added = sorted(incoming.keys() - present.keys())
    native = isinstance(parsed, document.Document)
    has_history = bool(generations.read(database, 1)) or events.last(database) > 0
    takes_history = native and (replace or not has_history)
    with database.transaction():
        claims.remove_rows(database, removed)
        claims.put_rows(database, [incoming[key] for key in (*added, *changed)])
        if isinstance(parsed, document.Document) and takes_history:
            _restore_history(database, parsed)
    return ImportSummary(
        added=tuple(added),
        changed=tuple(changed),
        removed=tuple(removed),
        unchanged=len(incoming) - len(added) - len(changed),
        generations=len(generations.read(database, 0)) if takes_history else 0,
        events=len(events.read(database, 0, 0)) if takes_history else 0,
        history_kept=native and not takes_history,
        unmapped=tuple(unmapped),
    )


def _restore_history(database: Database, parsed: document.Document) -> None:
    contents = {sha256: part.content() for sha256, part in parsed.contents.items()}
    generations.restore(
        database,
        [
            Generation(
                part.number,
                part.state,
                part.created.timestamp(),
                part.finished.timestamp() if part.finished else None,
                tuple(
                    GenerationFile(file.path, file.sha256, len(contents[file.sha256]))
                    for file in part.files
                ),
            )
            for part in parsed.generations
        ],
        [generations.pack(sha256, content) for sha256, content in contents.items()],
    )
    events.restore(
        database,
        [
            StoredEvent(
                part.sequence,
                part.time.timestamp(),
                part.kind,
                part.subject,
                part.message,
                part.generation,
                part.data,
            )
            for part in parsed.events
        ],
    )
    notes.restore(database, parsed.notes)
    parts.restore(database, [given.part() for given in parsed.parts])
    latches.restore(database, [given.latch() for given in parsed.latches])
    actions.restore(database, [given.action() for given in parsed.actions])


def _differing(keys: list[Key]) -> Refused:
    lines = [f"  {key}" for key in keys[:_SHOWN]]
    if len(keys) > _SHOWN:
        lines.append(f"  and {len(keys) - _SHOWN} more")
    return Refused(
        "\n".join(
            [
                f"the ledger already claims {len(keys)} of these objects otherwise:",
                *lines,
                "The ledger is as it was. Import with replace to make it hold what the file says"
                " and nothing else; export it first.",
            ]
        )
    )


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "kind": claim.key.kind,
        "name": claim.key.name,
        "owners": list(claim.owners),
        "provenance": claim.provenance.value,
        "state": claim.state.value,
        "fields": _plain(claim.fields),
        "fingerprint": claim.fingerprint,
        "origin": claim.origin,
        "generation": claim.generation,
        "epoch": claim.epoch,
        "nonce": claim.nonce,
        "original": None if claim.original is None else _plain(claim.original),
        "revert": claim.revert,
    }


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(fields.items())
    }


def _generation(generation: Generation) -> dict[str, Any]:
    return {
        "number": generation.number,
        "state": generation.state,
        "created": _time(generation.created),
        "finished": None if generation.finished is None else _time(generation.finished),
        "files": [{"path": file.path, "sha256": file.sha256} for file in generation.files],
    }


def _event(event: StoredEvent) -> dict[str, Any]:
    return {
        "sequence": event.sequence,
        "time": _time(event.time),
        "kind": event.kind,
        "subject": event.subject,
        "message": event.message,
        "generation": event.generation,
        "data": dict(event.data),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "source": part.source,
        "generation": part.generation,
        "observed": _time(part.observed),
        "expires": None if part.expires is None else _time(part.expires),
        "digest": part.digest,
        "resources": list(part.resources),
        "directives": [
            {"op": one.op, "target": one.target._asdict(), "reason": one.reason}
            for one in part.directives
        ],
        "action_plans": list(part.action_plans),
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "key": action.key,
        "source": action.source,
        "generation": action.generation,
        "state": action.state,
        "epoch": action.epoch,
        "created": _time(action.created),
        "changed": _time(action.changed),
        "deadline": _time(action.deadline),
        "approved_by": action.approved_by,
        "reason": action.reason,
        "undoes": action.undoes,
        "plan": dict(action.plan),
        "result": dict(action.result),
    }


def _latch(latch: Latch) -> dict[str, Any]:
    return {
        "digest": latch.digest,
        "generation": latch.generation,
        "time": _time(latch.time),
        "reason": latch.reason,
    }


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
