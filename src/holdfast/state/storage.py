"""Where the ledger is written: its own file, or the working copy while that takes no writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.dataclass import dataclass, field
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import (
    copies,
    database,
    defaults,
    differences,
    faults,
    folder,
    working_copy,
)
from holdfast.state.database import Database
from holdfast.state.events import Event
from holdfast.state.faults import NotWritableError, UnusableError
from holdfast.state.known import Known, is_readable
from holdfast.state.lock import Lock
from holdfast.state.working_copy import WorkingCopy


@dataclass(slots=True)
class Storage:
    """One writer's. Belongs to one thread: SQLite's connections do."""

    paths: Paths
    command: str
    clock: Callable[[], float] = time.time
    durable: bool = False  # what is written has to outlive a boot: there is no working copy for it
    copy: WorkingCopy | None = None  # what is written now, where it is not the ledger's own file
    told: list[Event] = field(default_factory=list)  # what became of the ledger; recorded already
    _own: Database | None = None
    _file: tuple[int, int] = (0, 0)
    _locks: list[Lock] = field(default_factory=list)
    _unlocked: LedgerError | None = None  # why the ledger's own lock is not held
    _try_at: float = 0.0

    def acquire(
        self, wait: float, waiting: Callable[[float], None], *, despite: bool = False
    ) -> None:
        """LedgerError where another holds it for longer than `wait` seconds; UnusableError where
        its folder cannot be used, and there is no working copy. despite: nor is one needed."""
        place, self._unlocked = self.paths.state_dir, None
        try:
            folder.ensure_folder(place)
            folder.refuse_unsafe(place, folder=True)
            lock = Lock.acquire(
                place / "lock", command=self.command, wait=wait, clock=self.clock, waiting=waiting
            )
            self._locks.append(lock)
        except NotWritableError as error:
            if self.durable:
                raise
            self._unlocked = error
        except UnusableError as error:
            if self.durable or not (despite or working_copy.exists(self.paths)):
                raise
            self._unlocked = error
        try:
            if not self._locks or despite or working_copy.exists(self.paths):
                self._locks.append(working_copy.lock(self.paths, self.command, wait, self.clock))
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """UnusableError where that can be told by a look, and there is no working copy. What is
        open stays so."""
        if not working_copy.exists(self.paths) and not copies.is_half_made(self.paths.ledger):
            database.present(self.paths.ledger)

    def release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def close(self) -> None:
        for opened in (self._own, self.copy.database if self.copy is not None else None):
            if opened is not None:
                opened.close()
        self._own = self.copy = None

    def current(self) -> Database:
        """Opened and checked once, and again where somebody put another file in its place: writes
        to the old one would go with it."""
        if not working_copy.exists(self.paths):
            return self._use_own()
        self._use_copy()
        self._write_back()
        if self.copy is None:
            return self._use_own()
        if self.durable:
            self.need_durable(f"what `{self.command}` changes")
        return self.copy.database

    def fall_back(self, error: NotWritableError) -> Database:
        """What could not be written goes to a working copy from here on."""
        if self.durable:
            raise error
        if self.copy is not None:
            if self.copy.place is None:
                raise error
            old = self.copy.database
            self.copy, told = working_copy.move(self.paths, self.copy, self.clock)
            old.close()
        else:
            if self._own is not None:
                self._own.close()
                self._own = None
            self.copy, told = working_copy.make(self.paths, error, self.clock)
        self._file = working_copy.identity(self.paths)
        self._try_at = time.monotonic() + defaults.WRITE_BACK_S
        self.told.append(told)
        return self.copy.database

    def replace_by_copy(self, why: UnusableError, known: Known) -> bool:
        """False where there is a working copy already."""
        if working_copy.exists(self.paths):
            return False
        place, base = self.paths.ledger, ""
        content = self._read_open()
        if content is not None:
            base = differences.digest(content)
        elif known.anything:
            content = known.to_database(place)
        else:
            content, base = database.new(place), working_copy.LOST
        if self._own is not None:
            self._own.abandon()
            self._own = None
        made, told = working_copy.make_of(self.paths, content, base, why, self.clock)
        made.database.close()
        self.told.append(told)
        return True

    def _read_open(self) -> Database | None:
        """All of the file that is open; None where others can have written it, or it is not
        whole."""
        if self._own is None:
            return None
        copy = database.in_memory(self.paths.ledger)
        try:
            for file in (self.paths.ledger, database.wal(self.paths.ledger)):
                folder.refuse_unsafe(file, folder=False)
            self._own.copy_to(copy)
            database.bring_up_to_date(copy)
            if is_readable(copy):
                return copy
        except LedgerError:
            pass
        copy.close()
        return None

    def need_durable(self, what: str) -> None:
        """NotWritableError where it would be lost with the next boot."""
        if self.copy is not None:
            raise NotWritableError(
                f"{what} has to be kept for good, and {self.copy.told}. {faults.UNTOUCHED}"
                " Free some space or make the folder writable, then run it again."
            )

    def _use_copy(self) -> None:
        found = working_copy.identity(self.paths)
        if self.copy is not None and self._file == found:
            return
        self.close()
        self.copy = working_copy.open_(self.paths)
        self._file, self._try_at = working_copy.identity(self.paths), 0.0

    def _write_back(self) -> None:
        copy = self.copy
        if copy is None or time.monotonic() < self._try_at:
            return
        self._try_at = time.monotonic() + defaults.WRITE_BACK_S
        try:
            if self._unlocked is not None:
                raise self._unlocked
            self.told.append(working_copy.write_back(self.paths, copy, self.clock))
            self.copy = None
        except LedgerError as error:
            if not isinstance(error, NotWritableError):
                # A failing disk has left a file that is damaged, say. The copy is whole.
                copy.why = faults.reason(error)
            if copy.place is None:
                with suppress(NotWritableError):
                    self._move_below_run(copy)

    def _move_below_run(self, copy: WorkingCopy) -> None:
        self.copy, told = working_copy.move(self.paths, copy, self.clock)
        copy.database.close()
        self._file = working_copy.identity(self.paths)
        self.told.append(told)

    def _use_own(self) -> Database:
        place = self.paths.ledger
        if self.copy is not None or (self._own is not None and self._file != _identity(place)):
            self.close()
        if self._own is None:
            try:
                folder.ensure_folder(self.paths.state_dir)
                self._own = copies.open_writer(place, working_copy.scratch(self.paths))
            except NotWritableError as error:
                return self.fall_back(error)
            self._file = _identity(place)
        return self._own


def _identity(place: Path) -> tuple[int, int]:
    try:
        found = place.lstat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
