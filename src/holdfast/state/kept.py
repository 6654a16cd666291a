"""The ledger of a program that stays: opened and checked once, locked for each use of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import claims, database, folder
from holdfast.state.ledger import Ledger
from holdfast.state.lock import Lock

if TYPE_CHECKING:
    from holdfast.state.transfer import ImportSummary


class KeptLedger:
    """One thread uses it: SQLite's connections belong to the thread that opened them."""

    def __init__(self, paths: Paths, command: str) -> None:
        self._paths = paths
        self._command = command
        self._opened: _Remembering | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def locked(self, wait: float) -> Iterator[Ledger]:
        """The ledger, alone. What other commands wrote meanwhile is seen; LedgerError where one of
        them holds it for longer than `wait` seconds."""
        paths = self._paths
        folder.ensure_folder(paths.state_dir)
        folder.refuse_unsafe(paths.state_dir, folder=True)
        lock = Lock.acquire(
            paths.state_dir / "lock", command=self._command, wait=wait, clock=time.time
        )
        try:
            try:
                yield self._current()
            except LedgerError:
                # Whatever is wrong with it, the next use opens and checks it anew.
                self.close()
                raise
        finally:
            lock.release()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _current(self) -> Ledger:
        place = self._paths.ledger
        if self._opened is not None and self._file != _identity(place):
            # Somebody put another file in its place, or took it away: writes to the old one would
            # go with it.
            self.close()
        if self._opened is None:
            self._opened = _Remembering(database.open_writer(place), None, time.time)
            self._file = _identity(place)
        return self._opened


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        found = place.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Remembering(Ledger):
    """Reads claims again only after another connection wrote something."""

    _version = -1
    _claims: dict[Key, Claim] | None = None

    def claims(self) -> dict[Key, Claim]:
        """Not to be changed by whoever asks: the next one gets the same."""
        # It changes with what other connections commit, and not with what this one does.
        version = int(self._database.query("PRAGMA data_version")[0][0])
        if self._claims is None or version != self._version:
            self._claims = claims.read(self._database)
            self._version = version
        return self._claims

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        written, removed = list(put), list(remove)
        before, self._claims = self._claims, None
        super().write_claims(written, removed)
        if before is not None:
            fresh = dict(before)
            for key in removed:
                fresh.pop(key, None)
            fresh.update((claim.key, claim) for claim in written)
            self._claims = fresh

    def import_(self, data: Mapping[str, Any], *, replace: bool = False) -> ImportSummary:
        self._claims = None
        return super().import_(data, replace=replace)
