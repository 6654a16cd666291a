"""Two databases of the ledger: whether they hold the same, and what of one goes to the other."""

from __future__ import annotations

import hashlib

from holdfast.state import claims, confirmations, events, installation, notes
from holdfast.state.database import Database, Row

# A table that only a working copy has: about itself.
ABOUT = "working_copy"


def digest(of: Database) -> str:
    """The digest of all rows: the same for the same ledger, however its file came about."""
    made = hashlib.sha256()
    for table in _tables(of):
        made.update(table.encode())
        for row in of.query(f"SELECT * FROM {table} ORDER BY 1, 2"):  # noqa: S608 (its own tables)
            made.update(repr(row).encode())
    return made.hexdigest()


def make_equal(own: Database, other: Database) -> None:
    """Within a transaction. Table by table: rows that go take those along that refer to them."""
    own.execute("PRAGMA defer_foreign_keys=ON")
    for table in _tables(own):
        columns = own.query(f"PRAGMA table_info({table})")
        keys = [(at, name) for at, name, _, _, _, key in columns if key]
        before, after = _rows(own, table), _rows(other, table)
        where = " AND ".join(f"{name}=?" for _, name in keys)
        own.execute_many(
            f"DELETE FROM {table} WHERE {where}",  # noqa: S608 (its own tables)
            [tuple(row[at] for at, _ in keys) for row in before - after],
        )
        marks = ",".join("?" * len(columns))
        fresh = sorted(after - before) if table == "events" else after - before
        own.execute_many(f"INSERT INTO {table} VALUES ({marks})", fresh)  # noqa: S608 (its own tables)


def add(own: Database, other: Database, last: int) -> None:
    """Within a transaction. Neither comes from the other: what either claims is claimed, what
    either remembers is remembered, and nothing is taken away. What both know is as the other says,
    for that was in force until now. last: events up to this one are known."""
    known = claims.read(own)
    claims.put_rows(
        own, [claim for key, claim in claims.read(other).items() if known.get(key) != claim]
    )
    notes.join_memories(own, other)
    installation.join_own_namespace(own, other)
    for table in ("parts", "declaring", "declared", "actions", "latches"):
        for row in _rows(other, table):
            marks = ",".join("?" * len(row))
            own.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608 (its own tables)
    confirmations.take_decisions(own, other)
    for event in events.read(other, last, 0):
        events.append_rows(own, [event], event.time)


def _tables(of: Database) -> list[str]:
    """As they were made: what others refer to comes before them."""
    rows = of.query("SELECT name FROM sqlite_master WHERE type='table' ORDER BY rowid")
    return [name for (name,) in rows if not name.startswith("sqlite_") and name != ABOUT]


def _rows(of: Database, table: str) -> set[Row]:
    return set(of.query(f"SELECT * FROM {table}"))  # noqa: S608 (its own tables)
