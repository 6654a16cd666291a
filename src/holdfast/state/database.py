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

    def copy_to(self, other: Database) -> None:
        """All of it, in place of whatever the other holds."""
        with self._translated("copy the ledger"):
            plain = sqlite3.connect(":memory:")
            try:
                self._connection.backup(plain)
                # Its header says that there is a write-ahead log: memory has none, and that which
                # connections share would not be opened.
                image = bytearray(plain.serialize())
                image[18:20] = b"\1\1"
                plain.deserialize(bytes(image))
                plain.backup(other._connection)
            finally:
                plain.close()

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
    if not _present(path):
        _create(path)
    _need_access(path, os.R_OK | os.W_OK)
    database = _connect(path, "mode=rw")
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
    if not _present(path):
        return _empty(path)
    _need_access(path, os.R_OK)
    # A database in WAL mode wants to make its -shm file even to be read. Where nothing can be
    # written there is no writer to watch out for either.
    frozen = os.statvfs(path).f_flag & os.ST_RDONLY and not _wal(path).exists()
    database = _connect(path, "mode=ro&immutable=1" if frozen else "mode=ro")
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


def read_copy(path: Path, scratch: Iterable[Path]) -> Database:
    """All of the database in memory, brought up to date, also where not even its -shm file can be
    made beside it; empty where there is none yet. The caller holds the lock.

    scratch: folders that may have room for its files. What is in its write-ahead log counts, and
    only SQLite itself reads that, from a place where it can write."""
    copy = in_memory(path)
    try:
        if _present(path):
            _need_access(path, os.R_OK)
            _copy_in_place(path, copy, scratch)
            version = _version(copy)
            _refuse_damaged(copy)
            if version < schema.VERSION:
                with copy.transaction():
                    _migrate(copy, version)
        else:
            _fill(copy)
            copy.execute(schema.IDENTITY)
    except BaseException:
        copy.close()
        raise
    return copy


def in_memory(path: Path, name: str = ":memory:") -> Database:
    """Without any tables. path: what it is called in errors."""
    connection = sqlite3.connect(
        name, uri=True, timeout=defaults.BUSY_TIMEOUT_S, isolation_level=None
    )
    return Database(connection, path)


def _copy_in_place(path: Path, copy: Database, scratch: Iterable[Path]) -> None:
    logged = _wal(path).exists() and _wal(path).stat().st_size > 0
    try:
        _copy(path, "mode=ro", copy)
    except faults.NotWritableError:
        if not logged:
            _copy(path, "mode=ro&immutable=1", copy)
        elif not any(_copy_elsewhere(path, copy, place) for place in scratch):
            raise


def _copy_elsewhere(path: Path, copy: Database, place: Path) -> bool:
    """Whether there is room for its files. Closing them here drops SQLite's locks of this process
    on them, which is no loss while nobody writes."""
    import shutil  # these take longer to import than the whole ledger does
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-", dir=place) as own:
            for file in (path, _wal(path)):
                shutil.copyfile(file, Path(own, file.name))
            _copy(Path(own, path.name), "mode=rw", copy)
            return True
    except (OSError, faults.NotWritableError):
        return False


def _copy(path: Path, options: str, copy: Database) -> None:
    source = _connect(path, options)
    try:
        source.copy_to(copy)
    finally:
        source.close()


def _present(path: Path) -> bool:
    found = folder.refuse_unsafe(path, folder=False)
    if found is None:
        # Its log alone: SQLite would replay it into whatever database is made next to it.
        if _wal(path).exists():
            raise LedgerError(
                f"{path}: the ledger is missing, but its write-ahead log {_wal(path).name} is"
                f" there. Put the ledger back beside it; if it is lost: {faults.restore(path)}"
            )
        return False
    # A new ledger gets its name only once it is complete, so that this is never a crash of ours.
    if found.st_size == 0:
        raise LedgerError(f"{path}: the ledger is empty (0 bytes). {faults.restore(path)}")
    return True


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _need_access(path: Path, mode: int) -> None:
    """Asks without opening: closing a descriptor of the file would drop SQLite's locks on it."""
    if os.access(path, mode, effective_ids=True):
        return
    if mode & os.W_OK and os.statvfs(path).f_flag & os.ST_RDONLY:
        error = OSError(errno.EROFS, os.strerror(errno.EROFS))
        raise faults.from_system(error, path, "write the ledger")
    raise LedgerError(
        f"{path}: permission denied to the ledger as user {os.geteuid()}. {faults.UNTOUCHED}"
        f" If it is yours: chmod {folder.FILE_MODE:04o} {path}"
    )


def _connect(path: Path, options: str) -> Database:
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
        raise LedgerError(
            f"{database.path}: a database, but not a Holdfast ledger. {faults.UNTOUCHED}"
            " Move it away."
        )
    version: int = database.query("PRAGMA user_version")[0][0]
    if version > schema.VERSION:
        raise LedgerError(
            f"{database.path}: the ledger has format {version}, and this Holdfast knows formats up"
            f" to {schema.VERSION}: a newer Holdfast wrote it. {faults.UNTOUCHED}"
            " Use that version, or restore an export made before the upgrade."
        )
    return version


def _refuse_damaged(database: Database) -> None:
    damage = database.query("PRAGMA quick_check(1)")
    if damage != [("ok",)]:
        path = database.path
        raise LedgerError(f"{path}: the ledger is damaged: {damage[0][0]}. {faults.restore(path)}")


def _make_durable(database: Database) -> None:
    mode = database.query("PRAGMA journal_mode=WAL")[0][0]
    if mode != "wal":
        raise LedgerError(
            f"{database.path}: this file system cannot keep a write-ahead log (SQLite stays in"
            f" {mode} mode). {faults.UNTOUCHED} Put the ledger's folder on a local file system."
        )
    database.query("PRAGMA synchronous=FULL")


def _migrate(database: Database, version: int) -> None:
    for script in schema.MIGRATIONS[version:]:
        for statement in filter(str.strip, script.split(";")):
            database.execute(statement)
    database.execute(f"PRAGMA user_version={schema.VERSION:d}")


def _create(path: Path) -> None:
    """Makes the ledger under another name first, so that a half-made one is never taken for it."""
    new = path.with_name(path.name + ".new")
    try:
        for leftover in (new, _wal(new), new.with_name(new.name + "-shm")):
            leftover.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, folder.FILE_MODE))
        database = _connect(new, "mode=rw")
        try:
            _make_durable(database)
            with database.transaction():
                _fill(database)
                database.execute(schema.IDENTITY)
        finally:
            database.close()
        new.rename(path)
        holder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(holder)
        finally:
            os.close(holder)
    except OSError as error:
        raise faults.from_system(error, path, "make the ledger") from error


def _fill(database: Database) -> None:
    """All tables, with nothing in them."""
    database.execute(f"PRAGMA application_id={schema.APPLICATION_ID:d}")
    _migrate(database, 0)


def _empty(path: Path) -> Database:
    database = in_memory(path)
    _fill(database)
    database.query("PRAGMA query_only=ON")
    return database
