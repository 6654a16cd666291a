"""Parts as sources handed them in: the newest of each source, and some before it to look back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from holdfast.config.part import Directive, Part, Target
from holdfast.state import declared, defaults, values
from holdfast.state.database import Database, Row
from holdfast.state.rows import INTEGER, MOMENT, MOMENT_OR_NONE, TEXT, Table

_TYPES = {
    "source": TEXT,
    "generation": INTEGER,
    "observed": MOMENT,
    "expires": MOMENT_OR_NONE,
    "digest": TEXT,
    "resources": TEXT,
    "directives": TEXT,
    "action_plans": TEXT,
}


def put(database: Database, part: Part, keep: int) -> None:
    """Adds it, and drops what lies too far back in its source, but for the generation `keep`."""
    with database.transaction():
        # A disk may fail after it has taken a change, which is tried again then.
        database.execute(
            "DELETE FROM parts WHERE source=? AND generation=?", (part.source, part.generation)
        )
        put_rows(database, [part])
        declared.forget(database, part.source)
        database.execute(
            "DELETE FROM parts WHERE source=? AND generation!=? AND generation NOT IN (SELECT"
            " generation FROM parts WHERE source=? ORDER BY generation DESC LIMIT ?)",
            (part.source, keep, part.source, defaults.KEEP_PARTS),
        )


def put_rows(database: Database, parts: Iterable[Part]) -> None:
    """Within a transaction."""
    database.execute_many(
        "INSERT INTO parts VALUES (?,?,?,?,?,?,?,?)",
        [
            (
                part.source,
                part.generation,
                part.observed,
                part.expires,
                part.digest,
                values.dump(list(part.resources)),
                values.dump(
                    [
                        [directive.op, *directive.target, directive.reason]
                        for directive in part.directives
                    ]
                ),
                values.dump(list(part.action_plans)),
            )
            for part in parts
        ],
    )


def end(database: Database, source: str, moment: float) -> None:
    """What a source contributes is over at this moment. The part stays, to look back at and for
    the next generation to be above it."""
    with database.transaction():
        database.execute(
            "UPDATE parts SET expires=? WHERE source=? AND (expires IS NULL OR expires>?)",
            (moment, source, moment),
        )
        declared.forget(database, source)


def forget(database: Database, source: str) -> None:
    """All of its generations."""
    with database.transaction():
        database.execute("DELETE FROM parts WHERE source=?", (source,))
        declared.forget(database, source)


def restore(database: Database, parts: Iterable[Part]) -> None:
    """Within a transaction: these parts in place of those there."""
    database.execute("DELETE FROM parts")
    put_rows(database, parts)


def read(database: Database, *, newest: bool) -> list[Part]:
    """By source, the newest generation of each first; with `newest`, that one alone."""
    only = (
        "WHERE generation=(SELECT max(generation) FROM parts others WHERE"
        " others.source=parts.source) "
        if newest
        else ""
    )
    return _table().read(database, f"{only}ORDER BY source, generation DESC")


def get(database: Database, source: str, generation: int) -> Part | None:
    found = _table().read(database, "WHERE source=? AND generation=?", (source, generation))
    return found[0] if found else None


def index(database: Database) -> tuple[tuple[str, int, float | None], ...]:
    """Source, generation and end of the newest part of each: enough to see that others hold."""
    types = {"source": TEXT, "max(generation)": INTEGER, "expires": MOMENT_OR_NONE}
    ends: Table[tuple[str, int, float | None]] = Table("parts", types, _end, _named)
    return tuple(ends.read(database, "GROUP BY source ORDER BY source"))


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[Part]:
    return Table("parts", _TYPES, _decode, _named)


def _named(row: Row) -> str:
    return f"part {row[0]}#{row[1]}"


def _end(row: Row) -> tuple[str, int, float | None]:
    source, generation, expires = row
    return source, generation, expires


def _decode(row: Row) -> Part:
    source, generation, observed, expires, digest, resources, directives, plans = row
    part = Part(
        source,
        generation,
        observed,
        expires,
        _mappings(resources),
        tuple(_directive(one) for one in _list(directives)),
        _mappings(plans),
    )
    if part.digest != digest:
        raise ValueError("what it holds does not have the digest it was stored under")
    return part


def _list(text: str) -> list[values.JSON]:
    decoded = json.loads(text)
    if not isinstance(decoded, list):
        raise ValueError("not a JSON list")
    return decoded


def _mappings(text: str) -> tuple[dict[str, values.JSON], ...]:
    found = []
    for one in _list(text):
        if not isinstance(one, dict):
            raise ValueError("not a JSON list of objects")
        found.append(one)
    return tuple(found)


def _directive(stored: values.JSON) -> Directive:
    match stored:
        case [str(op), str(version), str(kind), str(name), str(reason)]:
            return Directive(op, Target(version, kind, name), reason)
    raise ValueError("a directive is not stored as one")
