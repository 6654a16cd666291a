"""The ledger's working copy: what is written while the ledger's own file takes no writes.

A full or read-only disk is no reason to leave a router alone. The ledger as it was read last is
copied below /run, where it outlives the process that made it, though not a boot; where there is no
room either, it is kept in the memory of this process. Whoever opens the ledger meanwhile, to read
or to write, gets the copy. Once the file takes writes again, what differs goes back to it in one
transaction, and the copy goes (ADR 0037).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine import event_kinds
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import copies, database, differences, events, faults, folder
from holdfast.state.database import Database
from holdfast.state.events import Event
from holdfast.state.lock import Lock

FOLDER, _FILE = "/run/holdfast/ledger", "state.db"
# Held beside the ledger's own lock, and in its place where that cannot be made.
LOCK = "/run/holdfast/ledger.lock"
# In the place of a digest: what the file held is not known.
LOST = "lost"

# A disk that has just had room for the last row is not written back to: it would be full again.
_ROOM, _SHARE = 1 << 20, 50

# What the file held when the copy was made, and what it was about to hold when it was last written
# back: whoever was killed after that leaves a file that the copy comes from all the same.
_ABOUT = (
    f"CREATE TABLE {differences.ABOUT}"
    " (base TEXT, written TEXT, last INTEGER, why TEXT, since REAL)"
)

# Of this process, by the file they stand for. One connection to each is never used: it keeps the
# memory.
_in_memory: dict[Path, sqlite3.Connection] = {}
_written = 0  # transactions on any of them


@dataclass(slots=True)
class WorkingCopy:
    database: Database
    place: Path | None  # None: the memory of this process
    why: str  # the ledger's own file is not written
    since: float  # seconds since 1970
    lost: bool  # nothing that the file held is known

    @property
    def told(self) -> str:
        """For people to read."""
        if self.place is None:
            where = "in memory alone, and lost with the process"
        else:
            where = f"in {self.place.parent}, and lost if the machine is booted anew"
        what = "what it holds" if not self.lost else "what is made, and nothing of what it held,"
        return f"the ledger is not written ({self.why}): until it is, {what} is kept {where}"


def scratch(paths: Paths) -> tuple[Path, ...]:
    """Where a copy of the ledger's files may have room for a moment, in a folder of its own."""
    return paths.under("/run"), Path("/dev/shm"), Path("/tmp")  # noqa: S108 (see above)


def exists(paths: Paths) -> bool:
    # Asked for with every pass: looking at a path takes less than making one.
    return (bool(_in_memory) and paths.ledger in _in_memory) or os.path.lexists(_place(paths))


Stamp = tuple[tuple[int, int], ...]


def stamp(paths: Paths) -> Stamp:
    """Changes with whatever anybody writes to the ledger or to its working copy."""
    places = (paths.ledger, _place(paths))
    found = [_seen(f"{place}{suffix}") for place in places for suffix in ("", "-wal")]
    return (*found, (_written, len(_in_memory)))


def identity(paths: Paths) -> tuple[int, int]:
    """Which one there is."""
    if paths.ledger in _in_memory:
        return id(_in_memory[paths.ledger]), 0
    try:
        found = _place(paths).lstat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def lock(paths: Paths, command: str, wait: float, clock: Callable[[], float]) -> Lock:
    """On the root's folder where there is no room for a file: that needs none."""
    place = paths.under(LOCK)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return Lock.acquire(place, command=command, wait=wait, clock=clock)
    except faults.NotWritableError:
        pass
    except OSError as error:
        problem = faults.from_system(error, place, "make the folder of the lock")
        if not isinstance(problem, faults.NotWritableError):
            raise problem from error
    return Lock.acquire(paths.root, command=command, wait=wait, clock=clock, folder=True)


def read(paths: Paths) -> Database | None:
    """To look at; None where there is none."""
    if paths.ledger in _in_memory:
        found = database.in_memory(paths.ledger, _name(paths))
        found.query("PRAGMA query_only=ON")
        return found
    place = _place(paths)
    if not os.path.lexists(place):
        return None
    folder.refuse_unsafe(place.parent, folder=True)
    try:
        return database.open_reader(place)
    except LedgerError:
        if os.path.lexists(place):
            raise
        return None  # it was written back in the meantime


def read_copy(paths: Paths) -> Database | None:
    """The same, by whoever holds the ledger, also where there is no room to open it in place."""
    place = _place(paths)
    if paths.ledger in _in_memory or not os.path.lexists(place):
        return read(paths)
    folder.refuse_unsafe(place.parent, folder=True)
    return copies.read_copy(place, scratch(paths))


def trouble(opened: Database) -> str:
    """What is told of it, by one who only reads; "" where it is the ledger itself."""
    if not opened.query("SELECT 1 FROM sqlite_master WHERE name=?", (differences.ABOUT,)):
        return ""
    place = opened.path if str(opened.path).endswith(f"{FOLDER}/{_FILE}") else None
    return _told(opened, place).told


def open_(paths: Paths) -> WorkingCopy | None:
    """To be written, by whoever holds the ledger; None where there is none."""
    if paths.ledger in _in_memory:
        return _told(database.in_memory(paths.ledger, _name(paths)), None)
    place = _place(paths)
    if not os.path.lexists(place):
        return None
    folder.refuse_unsafe(place.parent, folder=True)
    try:
        return _told(database.open_writer(place), place)
    except faults.NotWritableError:
        content = copies.read_copy(place, scratch(paths))
    try:
        return _told(_to_memory(paths, content), None)
    finally:
        content.close()


def make(paths: Paths, why: LedgerError, clock: Callable[[], float]) -> tuple[WorkingCopy, Event]:
    """Of the ledger as it can be read; LedgerError where it cannot, for what is not known is not
    the same as nothing."""
    content = copies.read_copy(paths.ledger, scratch(paths))
    return make_of(paths, content, differences.digest(content), why, clock)


def make_of(
    paths: Paths, content: Database, base: str, why: LedgerError, clock: Callable[[], float]
) -> tuple[WorkingCopy, Event]:
    """The same of what is given, which is closed. base: the digest of what the file holds; empty
    where that is not known; LOST where nothing that it held is."""
    try:
        content.execute(_ABOUT)
        about = (base, "", events.last(content), faults.reason(why), clock())
        content.execute("INSERT INTO working_copy VALUES (?,?,?,?,?)", about)
        return _stored(paths, content, clock)
    finally:
        content.close()


def move(paths: Paths, copy: WorkingCopy, clock: Callable[[], float]) -> tuple[WorkingCopy, Event]:
    """Into memory, where there is no more room below /run; or from there, once there is."""
    return _stored(paths, copy.database, clock, file=copy.place is None)


def wrote(copy: WorkingCopy) -> None:
    """For those who look whether anything was."""
    global _written
    if copy.place is None:
        _written += 1


def write_back(paths: Paths, copy: WorkingCopy, clock: Callable[[], float]) -> Event:
    """What differs, in one transaction, or all of it where there is no ledger; then the copy goes.
    NotWritableError where the file still takes no writes."""
    _need_room(paths)
    folder.ensure_folder(paths.state_dir)
    folder.refuse_unsafe(paths.state_dir, folder=True)
    told = Event(
        event_kinds.LEDGER_WRITTEN, "ledger", f"written again after {clock() - copy.since:.0f} s"
    )
    if os.path.lexists(paths.ledger) or database.present(paths.ledger):
        _write_differences(paths, copy, told, clock())
    else:
        _write_whole(paths, copy, told, clock())
    copy.database.close()
    remove(paths)
    return told


def _write_differences(paths: Paths, copy: WorkingCopy, told: Event, now: float) -> None:
    own = copies.open_writer(paths.ledger, scratch(paths))
    try:
        base, written, last = copy.database.query("SELECT base, written, last FROM working_copy")[0]
        with own.transaction():
            # By what it holds, not by its file: that changes with every look SQLite takes at it.
            if differences.digest(own) in (base, written):
                differences.make_equal(own, copy.database)
            else:
                differences.add(own, copy.database, last)
            events.append_rows(own, [told], now)
            _about_to_write(copy, own)
    finally:
        own.close()


def _write_whole(paths: Paths, copy: WorkingCopy, told: Event, now: float) -> None:
    """Added to a ledger that is made anew, it would be another installation's."""
    content = database.in_memory(paths.ledger)
    try:
        copy.database.copy_to(content)
        content.execute(f"DROP TABLE {differences.ABOUT}")
        events.append_rows(content, [told], now)
        _about_to_write(copy, content)
        database.put_whole(paths.ledger, content)
    finally:
        content.close()


def _about_to_write(copy: WorkingCopy, own: Database) -> None:
    after = differences.digest(own)
    with suppress(faults.NotWritableError):
        copy.database.execute("UPDATE working_copy SET written=?", (after,))


def remove(paths: Paths) -> None:
    anchor = _in_memory.pop(paths.ledger, None)
    if anchor is not None:
        anchor.close()
    place = paths.under(FOLDER)
    # All at once: who opens it by its name finds the whole of it, or nothing.
    gone = place.with_name(f"{place.name}.gone")
    _discard(gone)
    with suppress(FileNotFoundError):
        place.rename(gone)
    _discard(gone)


@lru_cache(maxsize=8)
def _place(paths: Paths) -> Path:
    return paths.under(FOLDER) / _FILE


def _name(paths: Paths) -> str:
    """SQLite's for memory that all connections of this process share."""
    told = hashlib.sha256(os.fsencode(paths.ledger)).hexdigest()
    return f"file:/holdfast-{told}?vfs=memdb"


def _told(opened: Database, place: Path | None) -> WorkingCopy:
    try:
        rows = opened.query("SELECT why, since, base FROM working_copy")
        if not rows:
            raise faults.undecodable(opened.path, "the working copy", "it does not say of what")
    except BaseException:
        opened.close()
        raise
    why, since, base = rows[0]
    return WorkingCopy(opened, place, why, since, base == LOST)


def _stored(
    paths: Paths, content: Database, clock: Callable[[], float], *, file: bool = True
) -> tuple[WorkingCopy, Event]:
    made = None
    if file:
        with suppress(OSError, faults.NotWritableError):
            made = _told(_to_file(paths, content), _place(paths))
            anchor = _in_memory.pop(paths.ledger, None)
            if anchor is not None:
                anchor.close()
    if made is None:
        if file and paths.ledger in _in_memory:
            raise faults.NotWritableError(
                f"{_place(paths)}: there is no room for the ledger either"
            )
        made = _told(_to_memory(paths, content), None)
    said = Event(event_kinds.LEDGER_UNWRITABLE, "ledger", made.told)
    try:
        events.append(made.database, [said], clock)
    except faults.NotWritableError:
        if made.place is None:
            raise
        return _stored(paths, made.database, clock, file=False)
    return made, said


def _to_file(paths: Paths, content: Database) -> Database:
    place = paths.under(FOLDER)
    new = place.with_name(f"{place.name}.new")
    _discard(new)
    try:
        new.mkdir(folder.FOLDER_MODE, parents=True)
        file = new / _FILE
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, folder.FILE_MODE))
        made = Database(sqlite3.connect(file, isolation_level=None), file)
        try:
            content.copy_to(made)
        finally:
            made.close()
        database.open_writer(file).close()
        _discard(place)  # an older one, that memory stood in for
        new.rename(place)
    except BaseException:
        _discard(new)
        raise
    return database.open_writer(_place(paths))


def _to_memory(paths: Paths, content: Database) -> Database:
    anchor = sqlite3.connect(_name(paths), uri=True, check_same_thread=False)
    _in_memory[paths.ledger] = anchor
    made = database.in_memory(paths.ledger, _name(paths))
    content.copy_to(made)
    return made


def _need_room(paths: Paths) -> None:
    place = paths.state_dir
    while not place.exists() and place != place.parent:
        place = place.parent
    found = os.statvfs(place)
    wanted = min(_ROOM, found.f_blocks * found.f_frsize // _SHARE)
    if found.f_bfree * found.f_frsize < wanted:
        raise faults.NotWritableError(f"{place}: there are less than {wanted} bytes free")


def _discard(place: Path) -> None:
    if os.path.lexists(place):
        import shutil  # takes longer to import than the whole ledger does

        shutil.rmtree(place, ignore_errors=True)


def _seen(place: str) -> tuple[int, int]:
    try:
        found = os.stat(place)  # noqa: PTH116 - several times a second
    except OSError:  # none that could be used: whoever opens it says so
        return 0, 0
    return found.st_mtime_ns, found.st_size
