"""Notes: small values by name, such as the last pass's report for `status`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from holdfast.state import faults, values
from holdfast.state.database import Database
from holdfast.state.values import JSON

# Not exported: a ledger restored from an older export must look for routes in all tables again.
TABLES = "route-tables"


def put(database: Database, name: str, value: JSON) -> None:
    text = values.dump(value)
    if database.query("SELECT value FROM notes WHERE name=?", (name,)) == [(text,)]:
        return
    with database.transaction():
        database.execute("INSERT OR REPLACE INTO notes VALUES (?,?)", (name, text))


def restore(database: Database, notes: Mapping[str, JSON]) -> None:
    """Within a transaction: these notes in place of those there."""
    database.execute("DELETE FROM notes")
    rows = [(name, values.dump(value)) for name, value in notes.items()]
    database.execute_many("INSERT INTO notes VALUES (?,?)", rows)


def get(database: Database, name: str) -> JSON:
    """None where there is no such note."""
    rows = database.query("SELECT value FROM notes WHERE name=?", (name,))
    return _decode(database, name, rows[0][0]) if rows else None


def read(database: Database) -> dict[str, JSON]:
    rows = database.query("SELECT name, value FROM notes WHERE name != ? ORDER BY name", (TABLES,))
    return {name: _decode(database, name, value) for name, value in rows}


def problems(database: Database) -> Iterator[str]:
    for name, value in database.query("SELECT name, value FROM notes"):
        try:
            json.loads(value)
        except ValueError as error:
            yield f"note {name}: {error}"


def _decode(database: Database, name: str, text: str) -> JSON:
    try:
        decoded: JSON = json.loads(text)
    except ValueError as error:
        raise faults.undecodable(database.path, f"note {name}", str(error)) from error
    return decoded
