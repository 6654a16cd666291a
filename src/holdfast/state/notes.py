"""Notes: small values by name, such as the last pass's report for `status`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from holdfast.state import values
from holdfast.state.database import Database, Row
from holdfast.state.rows import TEXT, Table
from holdfast.state.values import JSON

# What drivers remember is noted under their names. It is not exported: by a ledger that was
# restored from an older export they must look everywhere again.
_MEMORY = "driver/"
_IS_MEMORY = f"substr(name, 1, {len(_MEMORY)}) = ?"

# Who this installation is.
IDENTITY = "installation"


def put(database: Database, name: str, value: JSON) -> None:
    text = values.dump(value)
    if database.query("SELECT value FROM notes WHERE name=?", (name,)) == [(text,)]:
        return
    with database.transaction():
        put_row(database, name, value)


def put_row(database: Database, name: str, value: JSON) -> None:
    """Within a transaction."""
    database.execute("INSERT OR REPLACE INTO notes VALUES (?,?)", (name, values.dump(value)))


def remove_row(database: Database, name: str) -> None:
    """Within a transaction."""
    database.execute("DELETE FROM notes WHERE name=?", (name,))


def restore(database: Database, notes: Mapping[str, JSON]) -> None:
    """Within a transaction: these notes in place of those there. An export of a Holdfast that knew
    no identities leaves the ledger its own."""
    database.execute("DELETE FROM notes WHERE name != ?", (IDENTITY,))
    if IDENTITY in notes:
        database.execute("DELETE FROM notes")
    rows = [(name, values.dump(value)) for name, value in notes.items()]
    database.execute_many("INSERT INTO notes VALUES (?,?)", rows)


def get(database: Database, name: str) -> JSON:
    """None where there is no such note."""
    found = _table().read(database, "WHERE name=?", (name,))
    return found[0][1] if found else None


def read(database: Database) -> dict[str, JSON]:
    return dict(_table().read(database, f"WHERE NOT {_IS_MEMORY} ORDER BY name", (_MEMORY,)))


def memories(database: Database) -> dict[str, frozenset[str]]:
    """What drivers remember, by their names; where nobody knows, they are not in it."""
    noted = _table().read(database, f"WHERE {_IS_MEMORY}", (_MEMORY,))
    return {
        name.removeprefix(_MEMORY): frozenset(map(str, value))
        for name, value in noted
        if isinstance(value, list)
    }


def put_memory(database: Database, driver: str, memory: frozenset[str]) -> None:
    put(database, _MEMORY + driver, [*sorted(memory)])


def join_memories(own: Database, other: Database) -> None:
    """Within a transaction: what either remembers; where one of them does not know, nobody does."""
    ours, theirs = memories(own), memories(other)
    for driver in {*ours, *theirs}:
        if driver in ours and driver in theirs:
            put_row(own, _MEMORY + driver, [*sorted(ours[driver] | theirs[driver])])
        else:
            remove_row(own, _MEMORY + driver)


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[tuple[str, JSON]]:
    types = {"name": TEXT, "value": TEXT}
    return Table("notes", types, _decode, lambda row: f"note {row[0]}")


def _decode(row: Row) -> tuple[str, JSON]:
    name, text = row
    value: JSON = json.loads(text)
    if name.startswith(_MEMORY):
        strings = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        if not strings:
            raise ValueError(f"{value!r} is nothing that a driver remembers")
    return name, value
