"""The ledger as JSON, out and in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.dataclass import replace as change
from holdfast.engine.artifact import Key
from holdfast.errors import Refused
from holdfast.state import (
    actions,
    claims,
    declared,
    document,
    events,
    generations,
    latches,
    notes,
    parts,
    reference,
)
from holdfast.state.database import Database
from holdfast.state.document import Document, ReferenceDocument
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
        return document.write(
            Document(
                claims=tuple(claims.read(database).values()),
                generations=tuple(history),
                contents=dict(sorted(contents.items())),
                events=tuple(events.read(database, 0, 0)),
                notes=notes.read(database),
                parts=tuple(parts.read(database, newest=False)),
                declaring=tuple(declared.about(database)),
                declared=tuple(declared.read(database)),
                latches=tuple(latches.read(database)),
                actions=tuple(actions.read(database)),
            )
        )


def import_(
    database: Database,
    data: Mapping[str, Any],
    *,
    replace: bool,
    epoch: str,
    unit: reference.Unit | None,
) -> ImportSummary:
    parsed = document.parse(data)
    unmapped: list[Unmapped] = []
    if isinstance(parsed, ReferenceDocument):
        given, unmapped = reference.claims(parsed.artifacts, epoch, unit or reference.unseen)
    else:
        given = list(parsed.claims)
    incoming = {claim.key: claim for claim in given}
    present = claims.read(database)
    changed = sorted(
        key for key in incoming.keys() & present.keys() if incoming[key] != present[key]
    )
    if changed and not replace:
        raise _differing(changed)
    removed = sorted(present.keys() - incoming.keys()) if replace else []
    added = sorted(incoming.keys() - present.keys())
    native = isinstance(parsed, Document)
    has_history = bool(generations.read(database, 1)) or events.last(database) > 0
    takes_history = native and (replace or not has_history)
    with database.transaction():
        claims.remove_rows(database, removed)
        claims.put_rows(database, [incoming[key] for key in (*added, *changed)])
        if isinstance(parsed, Document) and takes_history:
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


def _restore_history(database: Database, parsed: Document) -> None:
    contents = parsed.contents
    generations.restore(
        database,
        [
            change(
                generation,
                files=tuple(
                    change(file, size=len(contents[file.sha256])) for file in generation.files
                ),
            )
            for generation in parsed.generations
        ],
        [generations.pack(sha256, content) for sha256, content in contents.items()],
    )
    events.restore(database, parsed.events)
    notes.restore(database, parsed.notes)
    parts.restore(database, parsed.parts)
    declared.restore(database, parsed.declaring, parsed.declared)
    latches.restore(database, parsed.latches)
    actions.restore(database, parsed.actions)


def _differing(keys: list[Key]) -> Refused:
    lines = [f"  {key}" for key in keys[:_SHOWN]]
    if len(keys) > _SHOWN:
        lines.append(f"  and {len(keys) - _SHOWN} more")
    return Refused(
        "\n".join(
            [
                f"the ledger already claims {len(keys)} of these objects otherwise:",
                *lines,
                "The ledger is as it was. Import with --replace to make it hold what the file says"
                " and nothing else; export it first.",
            ]
        )
    )
