"""What a program that stays knows of the ledger: enough to go on with once its file is unusable.

Not the history: files of past generations and past events may take many times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.errors import LedgerError
from holdfast.state import (
    actions,
    claims,
    confirmations,
    database,
    declared,
    latches,
    notes,
    parts,
    plugin_runs,
)
from holdfast.state.database import Database, Row

_TABLES = (
    "notes", "generations", "declaring", "plugin_runs", "actions", "confirmations", "latches"
)  # fmt: skip
# One part may hold more than all of the rest: it is read again only where this changed.
_PARTS = "SELECT source, generation, expires, digest FROM parts"


class Known:
    """As of the last use of the ledger that succeeded."""

    def __init__(self) -> None:
        self._claims: Mapping[Key, Claim] = {}
        self._rows: dict[str, list[Row]] = {}
        self._which_parts: list[Row] | None = None
        self._declared: Mapping[int, Row] = {}
        self._sequences: list[Row] = []

    @property
    def anything(self) -> bool:
        return bool(self._rows)

    def remember(
        self, opened: Database, claimed: Mapping[Key, Claim], declared: Mapping[int, Row]
    ) -> None:
        """claimed, declared: all claims in it, and all rows of resources that were declared one by
        one. Nobody changes them from here on."""
        rows = {table: _all(opened, table) for table in _TABLES}
        self._declared = declared
        which = opened.query(_PARTS)
        same = which == self._which_parts
        rows["parts"] = self._rows["parts"] if same else _all(opened, "parts")
        self._sequences = _all(opened, "sqlite_sequence")
        self._claims, self._rows, self._which_parts = claimed, rows, which

    def to_database(self, path: Path) -> Database:
        """In memory. path: what it is called in errors."""
        made = database.in_memory(path)
        database.fill(made)
        with made.transaction():
            claims.put_rows(made, self._claims.values())
            for table, rows in (*self._rows.items(), ("declared", list(self._declared.values()))):
                if rows:
                    marks = ",".join("?" * len(rows[0]))
                    made.execute_many(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 (constants only)
            # Numbers once given out are not given out again.
            made.execute("DELETE FROM sqlite_sequence")
            made.execute_many("INSERT INTO sqlite_sequence VALUES (?,?)", self._sequences)
        return made


def is_readable(opened: Database) -> bool:
    """Whether all that would be known of it can be read."""
    try:
        for part in (claims, notes, parts, declared, plugin_runs, actions, confirmations, latches):
            if any(part.problems(opened)):
                return False
    except LedgerError:
        return False
    return True


def _all(opened: Database, table: str) -> list[Row]:
    return opened.query(f"SELECT * FROM {table}")  # noqa: S608 (constants only)
