"""Notes: small values by name, such as the last pass's report for `status`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from holdfast.state import values
from holdfast.state.database import Database, Row
from holdfast.state.rows import TEXT, Table
from holdfast.state.values import JSON

# Not exported: a ledger restored from an older export must look for routes in all tables again.
TABLES = "route-tables"
_TABLE_MAX = 0xFFFFFFFF


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
    return dict(_table().read(database, "WHERE name != ? ORDER BY name", (TABLES,)))


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[tuple[str, JSON]]:
    types = {"name": TEXT, "value": TEXT}
    return Table("notes", types, _decode, lambda row: f"note {row[0]}")


def _decode(row: Row) -> tuple[str, JSON]:
    name, text = row
    value: JSON = json.loads(text)
    if name == TABLES:
        tables_of(value)
    return name, value


def tables_of(value: JSON) -> frozenset[int]:
    """What is noted under TABLES."""
    found = frozenset(map(int, str(value).split()))
    if not all(0 < table <= _TABLE_MAX for table in found):
        raise ValueError(f"{value!r} are no routing tables")
    return found
