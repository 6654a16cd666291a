"""The ledger of a program that stays: opened and checked once, locked for each use of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from holdfast.config.part import Part
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import claims, declared
from holdfast.state.database import Database, Row
from holdfast.state.declared import Write
from holdfast.state.faults import UnusableError
from holdfast.state.known import Known
from holdfast.state.ledger import Ledger
from holdfast.state.storage import Storage

if TYPE_CHECKING:
    from holdfast.state.transfer import ImportSummary


class KeptLedger:
    """One thread uses it: SQLite's connections belong to the thread that opened them."""

    def __init__(self, paths: Paths, command: str) -> None:
        self._storage = Storage(paths, command)
        self._opened: _Remembering | None = None
        self._known = Known()
        self._known_as = (0, 0)

    @contextmanager
    def locked(self, wait: float) -> Iterator[Ledger]:
        """The ledger, alone. What other commands wrote meanwhile is seen; LedgerError where one of
        them holds it for longer than `wait` seconds, UnusableError where it cannot be used
        (`go_on_without`)."""
        self._storage.acquire(wait, lambda _seconds: None)
        try:
            self._storage.check()
            try:
                current = self._current()
                yield current
                with suppress(LedgerError):  # the next use says it
                    self._remember(current)
            except UnusableError:
                raise  # what is open may still be whole
            except LedgerError:
                # Whatever is wrong with it, the next use opens and checks it anew.
                self.close()
                raise
        finally:
            self._storage.release()

    def go_on_without(self, why: UnusableError, wait: float) -> bool:
        """On a working copy: of the ledger as it is open here, or as it was known last, or of none
        at all, as if it were lost. Its file stays as it is. False: there is a working copy, and
        that is what cannot be used."""
        self._storage.acquire(wait, lambda _seconds: None, despite=True)
        try:
            return self._storage.replace_by_copy(why, self._known)
        finally:
            self.close()
            self._storage.release()

    def close(self) -> None:
        self._storage.close()
        self._opened = None

    def _current(self) -> _Remembering:
        current = self._storage.current()
        if self._opened is None or not self._opened.of(current):
            self._opened = _Remembering(current, self._storage, time.time)
            self._known_as = (0, 0)
        return self._opened

    def _remember(self, ledger: _Remembering) -> None:
        """There is no need to, of a working copy: whoever finds the file unusable goes by that."""
        opened = ledger.database()
        version = opened.version()
        if version != self._known_as and not ledger.trouble:
            self._known.remember(opened, ledger.claims(), ledger.declared_rows())
            self._known_as = version


class _Remembering(Ledger):
    """Reads claims, and what was declared by increments, again only after another connection wrote
    something."""

    _version = -1
    _claims: dict[Key, Claim] | None = None
    _declared: dict[int, Row] | None = None
    _read: Database | None = None  # what they were read from

    def of(self, opened: Database) -> bool:
        return self._database is opened

    def database(self) -> Database:
        return self._database

    def claims(self) -> dict[Key, Claim]:
        """Not to be changed by whoever asks: the next one gets the same."""
        self._forget_what_others_wrote()
        if self._claims is None:
            self._claims = claims.read(self._database)
        return self._claims

    def declared_rows(self) -> dict[int, Row]:
        """As of `claims`."""
        self._forget_what_others_wrote()
        if self._declared is None:
            self._declared = declared.rows(self._database)
        return self._declared

    def write_declared(self, given: Sequence[Write]) -> None:
        before, self._declared = self._declared, None
        super().write_declared(given)
        if before is not None and self._read is self._database:
            self._declared = declared.with_written(before, given)

    def put_part(self, part: Part, keep: int = 0) -> None:
        self._declared = None
        super().put_part(part, keep)

    def end_parts(self, source: str) -> None:
        self._declared = None
        super().end_parts(source)

    def forget_parts(self, source: str) -> None:
        self._declared = None
        super().forget_parts(source)

    def _forget_what_others_wrote(self) -> None:
        # It changes with what other connections commit, and not with what this one does.
        version = int(self._database.query("PRAGMA data_version")[0][0])
        if self._read is not self._database or version != self._version:
            self._claims = self._declared = None
            self._version, self._read = version, self._database

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        written, removed = list(put), list(remove)
        before, self._claims = self._claims, None
        super().write_claims(written, removed)
        if before is not None and self._read is self._database:
            fresh = dict(before)
            for key in removed:
                fresh.pop(key, None)
            fresh.update((claim.key, claim) for claim in written)
            self._claims = fresh

    def import_(
        self,
        data: Mapping[str, Any],
        *,
        replace: bool = False,
        epoch: str = "",
        unit: Callable[[str], Artifact] | None = None,
    ) -> ImportSummary:
        self._claims = self._declared = None
        return super().import_(data, replace=replace, epoch=epoch, unit=unit)
