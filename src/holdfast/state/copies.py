"""Copies of the ledger's file: also where there is no room beside it, and of one that an earlier
version left half made."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import LedgerError
from holdfast.state import database, faults, folder
from holdfast.state.database import Database, wal

_PAGE = 4096


def read_copy(path: Path, scratch: Iterable[Path]) -> Database:
    """All of the database in memory, brought up to date, also where not even its -shm file can be
    made beside it; empty where there is none yet. The caller holds the lock.

    scratch: folders that may have room for its files. What is in its write-ahead log counts, and
    only SQLite itself reads that, from a place where it can write."""
    half_made = finished(path, scratch)
    if half_made is not None:
        return half_made
    if not database.present(path):
        return database.new(path)
    copy = database.in_memory(path)
    try:
        database.need_access(path, os.R_OK)
        _copy_in_place(path, copy, scratch)
        database.bring_up_to_date(copy)
    except faults.NotWritableError as error:
        copy.close()
        raise faults.UnusableError(f"{error}") from error  # it cannot be read either
    except BaseException:
        copy.close()
        raise
    return copy


def open_writer(path: Path, scratch: Iterable[Path]) -> Database:
    """As `database.open_writer`, also of one that is half made."""
    half_made = finished(path, scratch)
    if half_made is not None:
        database.put_whole(path, half_made)
        half_made.close()
    return database.open_writer(path)


def is_half_made(path: Path) -> bool:
    """Whether the log of a new ledger was left behind, as earlier versions did on a full disk."""
    return os.path.lexists(wal(database.staged_name(path)))


def finished(path: Path, scratch: Iterable[Path]) -> Database | None:
    """What a half-made ledger was to be; None where there is none such.

    It was renamed without its log. Nothing was written to it since, for it could not be opened:
    a file that holds any page that is not in the log is not one of those."""
    log = wal(database.staged_name(path))
    if not is_half_made(path) or folder.refuse_unsafe(path, folder=False) is None:
        return None
    folder.refuse_unsafe(log, folder=False)
    if wal(path).exists() and wal(path).stat().st_size:
        return None
    made = database.in_memory(path)
    try:
        if any(_copy_elsewhere(path, log, made, place) for place in scratch):
            there, whole = path.read_bytes(), made.image(logged=True)
            # The first page counts changes; of the others, it has the first few.
            if there[_PAGE:] == whole[_PAGE : len(there)]:
                database.bring_up_to_date(made)
                return made
    except LedgerError:
        pass  # damaged in another way: whoever opens it says so
    made.close()
    return None


def _copy_in_place(path: Path, copy: Database, scratch: Iterable[Path]) -> None:
    logged = wal(path).exists() and wal(path).stat().st_size > 0
    try:
        _copy(path, "mode=ro", copy)
    except faults.NotWritableError:
        if not logged:
            _copy(path, "mode=ro&immutable=1", copy)
        elif not any(_copy_elsewhere(path, wal(path), copy, place) for place in scratch):
            raise


def _copy_elsewhere(path: Path, log: Path, copy: Database, place: Path) -> bool:
    """With what is in the log. Whether there is room for both. Closing them here drops SQLite's
    locks of this process on them, which is no loss while nobody writes."""
    import shutil  # these take longer to import than the whole ledger does
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-", dir=place) as own:
            there = Path(own, path.name)
            shutil.copyfile(path, there)
            shutil.copyfile(log, wal(there))
            _copy(there, "mode=rw", copy)
            return True
    except (OSError, faults.NotWritableError):
        return False


def _copy(path: Path, options: str, copy: Database) -> None:
    source = database.connect(path, options)
    try:
        source.copy_to(copy)
    finally:
        source.close()
