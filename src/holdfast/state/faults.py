"""What can be wrong with the ledger's file, said so that somebody can act on it."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from holdfast.errors import LedgerError

UNTOUCHED = "Nothing was touched."


class NotWritableError(LedgerError):
    """The ledger's file takes no writes: no room, a file system that is read-only, a disk that
    fails. What was in it is as it was."""


class UnusableError(LedgerError):
    """What is there cannot be read, is no ledger, or proves nothing. The daemon goes on without
    it (ADR 0042); everybody else stops."""


def restore(path: Path) -> str:
    return (
        f"{UNTOUCHED} Move {path.name}, {path.name}-wal and {path.name}-shm away together; then"
        " restore an export with `holdfast ledger import FILE`, or go on without one:"
        " `holdfast adopt --recover` takes back what carries Holdfast's mark; the rest must be"
        " adopted again."
    )


def reason(error: LedgerError) -> str:
    """Why the file is not used, for those who go on without it: with what to do where they wait for
    somebody to do it."""
    if isinstance(error, UnusableError):
        return str(error).replace(f" {UNTOUCHED}", "").rstrip(".")
    return str(error).partition(". ")[0]


_ADVICE = {
    sqlite3.SQLITE_FULL: "The ledger is as it was before. Free some space, then run it again.",
    sqlite3.SQLITE_READONLY: "The ledger is as it was before. Make its folder and file system"
    " writable, then run it again.",
    sqlite3.SQLITE_BUSY: "The ledger is as it was before. Another program has the file open"
    " (a database shell, a backup); end it, then run it again.",
    sqlite3.SQLITE_IOERR: "The ledger holds whole transactions only. Look at the disk (dmesg),"
    " then run `holdfast ledger check`.",
    sqlite3.SQLITE_CANTOPEN: f"{UNTOUCHED} Look at the permissions of the file and its folder.",
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A file that is read in WAL mode wants its -shm made too: on a full disk that is an I/O error, and
# on a read-only file system the file cannot be opened (both seen with SQLite 3.40).
_NOT_WRITABLE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)
_NO_WRITES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def _is_full(path: Path) -> bool:
    try:
        return os.statvfs(path.parent).f_bfree == 0
    except OSError:
        return False


def from_sqlite(error: sqlite3.Error, path: Path, tried: str) -> LedgerError:
    extended: int = getattr(error, "sqlite_errorcode", 0)
    code, why = extended & 0xFF, str(error)
    # There is no room for its -shm file, or none at all.
    if code == sqlite3.SQLITE_IOERR and (
        extended == sqlite3.SQLITE_IOERR_SHMSIZE or _is_full(path)
    ):
        code, why = sqlite3.SQLITE_FULL, "there is no room on the disk"
    said = f"{path}: could not {tried}: {why}"
    if code in _DAMAGED:
        return UnusableError(f"{said}. The ledger is damaged. {restore(path)}")
    advice = _ADVICE.get(code, "Run `holdfast ledger check`.")
    kind = NotWritableError if code in _NOT_WRITABLE else LedgerError
    return kind(f"{said}. {advice}")


def unspeakable(error: Exception, path: Path, tried: str) -> LedgerError:
    said = f"{path}: could not {tried}: {error}"
    if isinstance(error, UnicodeDecodeError):
        return UnusableError(f"{said}. The ledger is damaged. {restore(path)}")
    return LedgerError(f"{said}. The ledger is as it was before.")


def from_system(error: OSError, path: Path, tried: str) -> LedgerError:
    said = error.strerror or str(error)
    kind = NotWritableError if error.errno in _NO_WRITES else UnusableError
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "The disk is full. Free some space, then run it again."
    elif error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0:
        advice = "This takes root: run it with sudo."
    else:
        advice = "Holdfast needs to read and write this folder, as the user that owns it (root)."
    return kind(f"{path}: could not {tried}: {said}. {UNTOUCHED} {advice}")


def undecodable(path: Path, row: str, why: str) -> LedgerError:
    return UnusableError(f"{path}: {row} cannot be read: {why}. {restore(path)}")
