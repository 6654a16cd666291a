"""The one SQLite file: opened safely, changed in whole transactions, never repaired by itself."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.errors import LedgerError
from holdfast.state import defaults, faults, folder, schema

Row = tuple[Any, ...]


class OlderLedgerError(LedgerError):
    """The ledger has an older format, and whoever only reads cannot change that."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(message)
        self.version = version


class Database:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        """In the place of `close`, which brings the write-ahead log into the file: nothing is
        written to it any more. It stays open until the process ends, for Python 3.11 cannot tell
        SQLite to leave the log alone."""
        import ctypes  # no ledger is well that needs this

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))

    def version(self) -> tuple[int, int]:
        """Changes with whatever anybody commits."""
        # The first is of other connections, the second of this one.
        return int(self.query("PRAGMA data_version")[0][0]), self._connection.total_changes

    def copy_to(self, other: Database) -> None:
        """All of it, in place of whatever the other holds."""
        with self._translated("copy the ledger"):
            plain = sqlite3.connect(":memory:")
            try:
                # Memory has no write-ahead log, and that which connections share would not be
                # opened if it said so.
                plain.deserialize(self.image(logged=False))
                plain.backup(other._connection)
            finally:
                plain.close()

    def image(self, *, logged: bool) -> bytes:
        """As a file holds it that has a write-ahead log, or none."""
        with self._translated("copy the ledger"):
            plain = sqlite3.connect(":memory:")
            try:
                self._connection.backup(plain)
                image = bytearray(plain.serialize())
            finally:
                plain.close()
        image[18:20] = b"\2\2" if logged else b"\1\1"
        return bytes(image)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._translated("read the ledger"):
            return self._connection.execute(statement, parameters).fetchall()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Runs one change; answers with the row id of an insert."""
        with self._translated("write the ledger"):
            return self._connection.execute(statement, parameters).lastrowid or 0

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._translated("write the ledger"):
            self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the changes within, durably, or none."""
        with self._translated("begin a change of the ledger"):
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._translated("commit a change to the ledger"):
                self._connection.execute("COMMIT")
        except BaseException:
            # A full disk may have rolled it back already, or not even let it be said.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads that see one state, whatever a writer commits in between."""
        with self._translated("read the ledger"):
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _translated(self, tried: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise faults.from_sqlite(error, self.path, tried) from error
        except (UnicodeError, OverflowError) as error:
            # What SQLite says of a damaged schema may be no text itself; and it has no words for
            # numbers beyond 64 bits, or for half of a character.
            raise faults.unspeakable(error, self.path, tried) from error


def open_writer(path: Path) -> Database:
    """Opens or creates the database. The caller holds the lock."""
    if not present(path):
        put_whole(path, new(path))
    need_access(path, os.R_OK | os.W_OK)
    database = connect(path, "mode=rw")
    try:
        version = _version(database)
        # The whole file before the first change: a damaged page met halfway through a pass
        # would leave the host changed and the change unrecorded.
        _refuse_damaged(database)
        _make_durable(database)
        if version < schema.VERSION:
            with database.transaction():
                _migrate(database, version)
    except BaseException:
        database.close()
        raise
    return database


def open_reader(path: Path) -> Database:
    """Opens the database beside a writer, without its lock; empty where there is none yet."""
    if not present(path):
        return _empty(path)
    need_access(path, os.R_OK)
    # A database in WAL mode wants to make its -shm file even to be read. Where nothing can be
    # written there is no writer to watch out for either.
    frozen = os.statvfs(path).f_flag & os.ST_RDONLY and not wal(path).exists()
    database = connect(path, "mode=ro&immutable=1" if frozen else "mode=ro")
    try:
        version = _version(database)
        if version < schema.VERSION:
            raise OlderLedgerError(
                f"{path}: the ledger has format {version}, an older Holdfast's. {faults.UNTOUCHED}"
                " The next command that writes (`holdfast apply`) brings it up to date.",
                version,
            )
    except BaseException:
        database.close()
        raise
    return database


def in_memory(path: Path, name: str = ":memory:") -> Database:
    """Without any tables. path: what it is called in errors."""
    connection = sqlite3.connect(
        name, uri=True, timeout=defaults.BUSY_TIMEOUT_S, isolation_level=None
    )
    return Database(connection, path)


def put_whole(path: Path, content: Database) -> None:
    """Makes the file anew, under another name first, so that a half-made one is never taken for it.

    Not by SQLite: with no room to bring its write-ahead log into the file it says nothing, and
    leaves the log behind under the other name."""
    staged = staged_name(path)
    try:
        staged.unlink(missing_ok=True)
        descriptor = os.open(staged, os.O_CREAT | os.O_EXCL | os.O_WRONLY, folder.FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.image(logged=True))
            file.flush()
            os.fsync(file.fileno())
        staged.rename(path)
        for leftover in (wal(staged), staged.with_name(f"{staged.name}-shm")):
            leftover.unlink(missing_ok=True)
        holder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(holder)
        finally:
            os.close(holder)
    except OSError as error:
        with suppress(OSError):
            staged.unlink(missing_ok=True)
        raise faults.from_system(error, path, "make the ledger") from error


def staged_name(path: Path) -> Path:
    """What it is called until it is whole."""
    return path.with_name(path.name + ".new")


def bring_up_to_date(copy: Database) -> None:
    version = _version(copy)
    _refuse_damaged(copy)
    if version < schema.VERSION:
        with copy.transaction():
            _migrate(copy, version)


def present(path: Path) -> bool:
    """Raises UnusableError for what is no ledger of ours, or not all of one."""
    found = folder.refuse_unsafe(path, folder=False)
    if found is None:
        # Its log alone: SQLite would replay it into whatever database is made next to it.
        if wal(path).exists():
            raise faults.UnusableError(
                f"{path}: the ledger is missing, but its write-ahead log {wal(path).name} is"
                f" there. Put the ledger back beside it; if it is lost: {faults.restore(path)}"
            )
        return False
    # A new ledger gets its name only once it is complete, so that this is never a crash of ours.
    if found.st_size == 0:
        raise faults.UnusableError(f"{path}: the ledger is empty (0 bytes). {faults.restore(path)}")
    return True


def wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def need_access(path: Path, mode: int) -> None:
    """Asks without opening: closing a descriptor of the file would drop SQLite's locks on it."""
    if os.access(path, mode, effective_ids=True):
        return
    if mode & os.W_OK and os.statvfs(path).f_flag & os.ST_RDONLY:
        error = OSError(errno.EROFS, os.strerror(errno.EROFS))
        raise faults.from_system(error, path, "write the ledger")
    raise faults.UnusableError(
        f"{path}: permission denied to the ledger as user {os.geteuid()}. {faults.UNTOUCHED}"
        f" If it is yours: chmod {folder.FILE_MODE:04o} {path}"
    )


def connect(path: Path, options: str) -> Database:
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=defaults.BUSY_TIMEOUT_S,
            isolation_level=None,
        )
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path, "open the ledger") from error
    database = Database(connection, path)
    try:
        database.query("PRAGMA foreign_keys=ON")
        database.query("PRAGMA trusted_schema=OFF")
    except BaseException:
        connection.close()
        raise
    return database


def _version(database: Database) -> int:
    application = database.query("PRAGMA application_id")[0][0]
    if application != schema.APPLICATION_ID:
        raise faults.UnusableError(
            f"{database.path}: a database, but not a Holdfast ledger. {faults.UNTOUCHED}"
            " Move it away."
        )
    version: int = database.query("PRAGMA user_version")[0][0]
    if version > schema.VERSION:
        raise faults.UnusableError(
            f"{database.path}: the ledger has format {version}, and this Holdfast knows formats up"
            f" to {schema.VERSION}: a newer Holdfast wrote it. {faults.UNTOUCHED}"
            " Use that version, or restore an export made before the upgrade."
        )
    return version


def _refuse_damaged(database: Database) -> None:
    damage = database.query("PRAGMA quick_check(1)")
    if damage != [("ok",)]:
        path = database.path
        raise faults.UnusableError(
            f"{path}: the ledger is damaged: {damage[0][0]}. {faults.restore(path)}"
        )


def _make_durable(database: Database) -> None:
    mode = database.query("PRAGMA journal_mode=WAL")[0][0]
    if mode != "wal":
        raise faults.UnusableError(
            f"{database.path}: this file system cannot keep a write-ahead log (SQLite stays in"
            f" {mode} mode). {faults.UNTOUCHED} Put the ledger's folder on a local file system."
        )
    database.query("PRAGMA synchronous=FULL")


def _migrate(database: Database, version: int) -> None:
    for script in schema.MIGRATIONS[version:]:
        for statement in filter(str.strip, script.split(";")):
            database.execute(statement)
    database.execute(f"PRAGMA user_version={schema.VERSION:d}")


def new(path: Path) -> Database:
    made = in_memory(path)
    fill(made)
    made.execute(schema.IDENTITY)
    return made


def fill(database: Database) -> None:
    """All tables, with nothing in them."""
    database.execute(f"PRAGMA application_id={schema.APPLICATION_ID:d}")
    _migrate(database, 0)


def _empty(path: Path) -> Database:
    database = in_memory(path)
    fill(database)
    database.query("PRAGMA query_only=ON")
    return database
