"""What sources declare resource by resource, beside the parts that others hand in whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from holdfast.config.part import Amendment, Declared, Part, Raw, id_of
from holdfast.dataclass import dataclass, field
from holdfast.state import values
from holdfast.state.database import Database, Row
from holdfast.state.rows import INTEGER, MOMENT, TEXT, Table

_ABOUT_TYPES = {"source": TEXT, "generation": INTEGER, "observed": MOMENT, "syncing": INTEGER}
_TYPES = {
    "number": INTEGER,
    "source": TEXT,
    "kind": TEXT,
    "name": TEXT,
    "asserted": INTEGER,
    "digest": TEXT,
    "document": TEXT,
}


@dataclass(frozen=True, slots=True)
class Declaring:
    """A source that declares by increments, or did once."""

    source: str
    generation: int = 0
    observed: float = 0.0
    syncing: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """What a batch writes: all of it, or nothing."""

    about: Declaring
    amendment: Amendment | None  # None: what is declared stays as it is
    begins: bool = False  # a sync: nothing was asserted again yet
    asserted: tuple[int, ...] = ()  # numbers of what was put as it is


@dataclass(frozen=True, slots=True)
class _Entry:
    source: str
    asserted: bool
    declared: Declared = field(default_factory=lambda: Declared(0, {}))


def write(database: Database, given: Iterable[Write]) -> None:
    """In one transaction."""
    with database.transaction():
        for one in given:
            _write(database, one)


def _write(database: Database, one: Write) -> None:
    about, source = one.about, one.about.source
    database.execute(
        "INSERT OR REPLACE INTO declaring VALUES (?,?,?,?)",
        (source, about.generation, about.observed, int(about.syncing)),
    )
    if one.begins:
        database.execute("UPDATE declared SET asserted=0 WHERE source=?", (source,))
    database.execute_many(
        "UPDATE declared SET asserted=1 WHERE number=?", [(number,) for number in one.asserted]
    )
    if one.amendment is None:
        return
    database.execute_many(
        "DELETE FROM declared WHERE number=?", [(number,) for number in one.amendment.withdrawn]
    )
    rows = [_row(_Entry(source, asserted=True, declared=put)) for put in one.amendment.put]
    database.execute_many("INSERT OR REPLACE INTO declared VALUES (?,?,?,?,?,?,?)", rows)


def forget(database: Database, source: str) -> None:
    """It declares nothing by increments any more. Within a transaction."""
    database.execute("DELETE FROM declared WHERE source=?", (source,))
    database.execute(
        "UPDATE declaring SET generation=generation+1, syncing=0 WHERE source=?", (source,)
    )


def restore(database: Database, about: Iterable[Declaring], parts: Iterable[Part]) -> None:
    """Within a transaction: these in place of those there."""
    database.execute("DELETE FROM declared")
    database.execute("DELETE FROM declaring")
    database.execute_many(
        "INSERT INTO declaring VALUES (?,?,?,?)",
        [
            (declaring.source, declaring.generation, declaring.observed, int(declaring.syncing))
            for declaring in about
        ],
    )
    for part in parts:
        found = zip(part.numbers or (), part.resources, strict=True)
        entries = (_Entry(part.source, True, Declared(*one)) for one in found)
        database.execute_many(
            "INSERT INTO declared VALUES (?,?,?,?,?,?,?)", list(map(_row, entries))
        )


def rows(database: Database) -> dict[int, Row]:
    """As they are stored, by their numbers."""
    return {row[0]: row for row in database.query("SELECT * FROM declared")}


def with_written(known: Mapping[int, Row], given: Iterable[Write]) -> dict[int, Row]:
    """The rows once this is written, but for what was asserted: whoever goes on from them begins
    its sync again."""
    found = dict(known)
    for one in given:
        if one.amendment is not None:
            for number in one.amendment.withdrawn:
                found.pop(number, None)
            entries = (_Entry(one.about.source, True, put) for put in one.amendment.put)
            found.update((entry.declared.number, _row(entry)) for entry in entries)
    return found


def last_number(database: Database) -> int:
    """The highest that was given out, whether or not its resource is still declared."""
    found = database.query("SELECT seq FROM sqlite_sequence WHERE name='declared'")
    return int(found[0][0]) if found else 0


def about(database: Database) -> list[Declaring]:
    return _about().read(database, "ORDER BY source")


def index(database: Database) -> tuple[tuple[str, int, float | None], ...]:
    """Source, generation and last call of each that declares something."""
    found = database.query(
        "SELECT source FROM declaring WHERE EXISTS"
        " (SELECT 1 FROM declared WHERE declared.source=declaring.source)"
    )
    live = {source for (source,) in found}
    return tuple(
        (declaring.source, declaring.generation, declaring.observed)
        for declaring in about(database)
        if declaring.source in live
    )


def read(database: Database) -> list[Part]:
    """Of each source that declares something by increments."""
    entries: dict[str, list[Declared]] = {}
    for entry in _table().read(database, "ORDER BY number"):
        entries.setdefault(entry.source, []).append(entry.declared)
    return [
        Part(
            declaring.source,
            declaring.generation,
            declaring.observed,
            None,
            tuple(each.document for each in entries[declaring.source]),
            numbers=tuple(each.number for each in entries[declaring.source]),
        )
        for declaring in about(database)
        if declaring.source in entries
    ]


def unasserted(database: Database, source: str) -> list[int]:
    """What was not put again since the sync under way began."""
    found = database.query(
        "SELECT number FROM declared WHERE source=? AND asserted=0 ORDER BY number", (source,)
    )
    return [number for (number,) in found]


def problems(database: Database) -> Iterator[str]:
    yield from _about().problems(database)
    yield from _table().problems(database)


def _about() -> Table[Declaring]:
    return Table("declaring", _ABOUT_TYPES, _decode_about, lambda row: f"increments of {row[0]}")


def _table() -> Table[_Entry]:
    return Table("declared", _TYPES, _decode, lambda row: f"{row[1]} {row[2]}/{row[3]}")


def _decode_about(row: Row) -> Declaring:
    source, generation, observed, syncing = row
    return Declaring(source, generation, observed, bool(syncing))


def _row(entry: _Entry) -> Row:
    document = entry.declared.document
    text = values.dump(document)
    kind, name = id_of(document)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return entry.declared.number, entry.source, kind, name, int(entry.asserted), digest, text


def _decode(row: Row) -> _Entry:
    number, source, kind, name, asserted, digest, text = row
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise ValueError("what it holds does not have the digest it was stored under")
    document: Raw = json.loads(text)
    if not isinstance(document, Mapping) or id_of(document) != (kind, name):
        raise ValueError("it is not the document of this resource")
    return _Entry(source, bool(asserted), Declared(number, document))
