"""Parts as sources handed them in: the newest of each source, and some before it to look back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from holdfast.config.part import Directive, Part, Target
from holdfast.state import defaults, faults, values
from holdfast.state.database import Database, Row

_COLUMNS = "source, generation, observed, expires, digest, resources, directives, action_plans"


def put(database: Database, part: Part, keep: int) -> None:
    """Adds it, and drops what lies too far back in its source, but for the generation `keep`."""
    with database.transaction():
        put_rows(database, [part])
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
                values.dump([[one.op, *one.target, one.reason] for one in part.directives]),
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


def forget(database: Database, source: str) -> None:
    """All of its generations."""
    with database.transaction():
        database.execute("DELETE FROM parts WHERE source=?", (source,))


def restore(database: Database, parts: Iterable[Part]) -> None:
    """Within a transaction: these parts in place of those there."""
    database.execute("DELETE FROM parts")
    put_rows(database, parts)


def read(database: Database, *, newest: bool) -> list[Part]:
    """By source, the newest generation of each first; with `newest`, that one alone."""
    return [_decoded(database, row) for row in _rows(database, newest=newest)]


def get(database: Database, source: str, generation: int) -> Part | None:
    found = database.query(
        f"SELECT {_COLUMNS} FROM parts WHERE source=? AND generation=?",  # noqa: S608 (constants only)
        (source, generation),
    )
    return _decoded(database, found[0]) if found else None


def index(database: Database) -> tuple[tuple[str, int, float | None], ...]:
    """Source, generation and end of the newest part of each: enough to see that others hold."""
    rows = database.query(
        "SELECT source, max(generation), expires FROM parts GROUP BY source ORDER BY source"
    )
    return tuple((source, generation, expires) for source, generation, expires in rows)


def problems(database: Database) -> Iterator[str]:
    for row in _rows(database, newest=False):
        try:
            _decode(row)
        except ValueError as error:
            yield f"{_name(row)}: {error}"


def _name(row: Row) -> str:
    return f"part {row[0]}#{row[1]}"


def _rows(database: Database, *, newest: bool) -> list[Row]:
    only = (
        " WHERE generation=(SELECT max(generation) FROM parts others WHERE"
        " others.source=parts.source)"
        if newest
        else ""
    )
    return database.query(
        f"SELECT {_COLUMNS} FROM parts{only}"  # noqa: S608 (constants only)
        " ORDER BY source, generation DESC"
    )


def _decoded(database: Database, row: Row) -> Part:
    try:
        return _decode(row)
    except ValueError as error:
        raise faults.undecodable(database.path, _name(row), str(error)) from error


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
