"""Rows that a disk may have changed: read as what was stored, or LedgerError.

SQLite sees a damaged page, and not a value that is another one by now. Whatever comes out of a
table is therefore of the types that were stored, its moments lie in years that can be told, and
what a row holds can be decoded, whatever that takes: nobody further on meets half of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Generic, TypeVar

from holdfast.characters import escaped
from holdfast.state import faults
from holdfast.state.database import Database, Row

T = TypeVar("T")
_NONE = type(None)

TEXT: tuple[type, ...] = (str,)
INTEGER: tuple[type, ...] = (int,)
BLOB: tuple[type, ...] = (bytes,)
TEXT_OR_NONE: tuple[type, ...] = (str, _NONE)
INTEGER_OR_NONE: tuple[type, ...] = (int, _NONE)
# Seconds, since 1970 or of anything else: never before, and never without an end.
MOMENT: tuple[type, ...] = (float,)
MOMENT_OR_NONE: tuple[type, ...] = (float, _NONE)
LAST_MOMENT = 253_402_300_799.0  # of the year 9999, the last one that has a name in Python


class Table(Generic[T]):
    """What is read of one table, and how."""

    def __init__(
        self,
        name: str,
        columns: Mapping[str, tuple[type, ...]],  # in the order that `decode` gets them in
        decode: Callable[[Row], T],
        named: Callable[[Row], str],  # a row, for people
    ) -> None:
        self.columns = ", ".join(columns)
        self._select = f"SELECT {self.columns} FROM {name}"  # noqa: S608 (constants only)
        self._forms = frozenset(product(*columns.values()))
        self._moments = tuple(
            number for number, types in enumerate(columns.values()) if float in types
        )
        self._decode = decode
        self._named = named

    def read(self, database: Database, rest: str = "", given: Sequence[Any] = ()) -> list[T]:
        """rest: of the statement. LedgerError for a row that cannot be decoded."""
        found: list[T] = []
        for row in database.query(f"{self._select} {rest}", given):
            try:
                found.append(self._checked(row))
            except Exception as error:  # of whatever kind: it is all the same to whoever reads
                which = self._name(row)
                raise faults.undecodable(database.path, which, _words(error)) from error
        return found

    def problems(self, database: Database) -> Iterator[str]:
        """Each row that cannot be decoded, and why."""
        for row in database.query(self._select):
            try:
                self._checked(row)
            except Exception as error:  # as above
                yield f"{self._name(row)}: {_words(error)}"

    def _checked(self, row: Row) -> T:
        if tuple(map(type, row)) not in self._forms:
            raise ValueError("a column holds what was never stored there")
        for number in self._moments:
            moment = row[number]
            if moment is not None and not 0 <= moment <= LAST_MOMENT:
                raise ValueError(f"{moment} is no point in time")
        return self._decode(row)

    def _name(self, row: Row) -> str:
        return escaped(self._named(row)[:200])


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else repr(error)
