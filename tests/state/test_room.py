"""However little room there is, the disk holds a whole ledger, or none: for every amount of it, and
whatever is being done to the ledger when it runs out."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import copies, database, schema, working_copy
from holdfast.state.ledger import Ledger
from tests.disks import Disk, small_disk
from tests.state.everything import stored, write_everything
from tests.state.samples import File, claim

pytestmark = pytest.mark.programs

# `make soak` takes all amounts.
_STEP = 4096 if os.environ.get("HOLDFAST_SOAK_STEPS") else 3 * 4096
_MOST = 300 * 1024


@pytest.fixture
def disk(paths: Paths) -> Iterator[Disk]:
    with small_disk(paths.state_dir, "2m") as made:
        yield made


def _leave(disk: Disk, room: int) -> None:
    """Exactly so many bytes are free."""
    found = os.statvfs(disk.folder)
    (disk.folder / ".ballast-rest").write_bytes(bytes(found.f_bfree * found.f_frsize - room))


def _clear(paths: Paths, disk: Disk) -> None:
    working_copy.remove(paths)
    for file in disk.folder.iterdir():
        file.unlink()


def _is_whole_or_absent(paths: Paths, room: int) -> bool:
    """By its file alone; whether there is one."""
    left = {file.name for file in paths.state_dir.iterdir() if not file.name.startswith(".")}
    assert left <= {"state.db", "state.db-wal", "state.db-shm", "lock"}, (room, left)
    there = database.present(paths.ledger)
    copies.read_copy(paths.ledger, working_copy.scratch(paths)).close()
    return there


def _make(paths: Paths, _disk: Disk, leave: Callable[[], None]) -> None:
    leave()
    with Ledger.open(paths, command="test") as ledger:
        write_everything(ledger)


def _migrate(paths: Paths, _disk: Disk, leave: Callable[[], None]) -> None:
    before = schema.MIGRATIONS, schema.VERSION
    vars(schema).update(MIGRATIONS=schema.MIGRATIONS[:1], VERSION=1)
    try:
        Ledger.open(paths, command="test").close()
    finally:
        vars(schema).update(MIGRATIONS=before[0], VERSION=before[1])
    _make(paths, _disk, leave)


def _write(paths: Paths, _disk: Disk, leave: Callable[[], None]) -> None:
    """Much of it, so that some is brought from the log into the file meanwhile."""
    with Ledger.open(paths, command="test") as ledger:
        leave()
        for number in range(4):
            ledger.write_claims([claim(number * 100 + more) for more in range(100)])
            ledger.begin_generation([File("router.yaml", os.urandom(10_000))])
        write_everything(ledger)


def _close(paths: Paths, _disk: Disk, leave: Callable[[], None]) -> None:
    """What is in the log goes into the file."""
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(number) for number in range(400)])
        write_everything(ledger)
        leave()


def _write_back(paths: Paths, disk: Disk, leave: Callable[[], None]) -> None:
    Ledger.open(paths, command="test").close()
    _write_back_to_none(paths, disk, leave)


def _write_back_to_none(paths: Paths, disk: Disk, leave: Callable[[], None]) -> None:
    disk.fill()
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(number) for number in range(100)])
        write_everything(ledger)
    assert working_copy.exists(paths)
    disk.free()
    leave()
    Ledger.open(paths, command="test").close()


_WORK = (_make, _migrate, _write, _close, _write_back, _write_back_to_none)


@pytest.mark.parametrize("work", _WORK, ids=lambda one: one.__name__.strip("_"))
def test_whatever_room_there_is(
    paths: Paths,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[Paths, Disk, Callable[[], None]], None],
) -> None:
    monkeypatch.setattr(working_copy, "_ROOM", 0)  # it is tried though it cannot succeed
    there, copied = set(), set()
    for room in range(0, _MOST, _STEP):
        work(paths, disk, lambda room=room: _leave(disk, room))  # type: ignore[misc]  # bound now
        there.add(_is_whole_or_absent(paths, room))
        copied.add(working_copy.exists(paths))
        written = stored(paths)
        assert all(written.values()), (room, [name for name, rows in written.items() if not rows])
        disk.free()
        Ledger.open(paths, command="test").close()
        assert not working_copy.exists(paths)
        assert _is_whole_or_absent(paths, room)
        assert stored(paths) == written, room
        _clear(paths, disk)
    assert True in there
    assert True in copied or work is _close, "it never ran out of room"


def _half_made(paths: Paths, disk: Disk, room: int = 0) -> str:
    """As earlier versions left it: renamed without its log, for there was no room to close it."""
    new = database.staged_name(paths.ledger)
    new.touch(0o600)
    made = sqlite3.connect(new, isolation_level=None)
    made.execute("PRAGMA journal_mode=WAL")
    made.execute("BEGIN IMMEDIATE")
    made.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
    for script in schema.MIGRATIONS:
        for statement in filter(str.strip, script.split(";")):
            made.execute(statement)
    made.execute(f"PRAGMA user_version={schema.VERSION}")
    made.execute(schema.IDENTITY)
    made.execute("COMMIT")
    ((identity,),) = made.execute("SELECT value FROM notes WHERE name='installation'").fetchall()
    _leave(disk, room)
    made.close()
    new.rename(paths.ledger)
    return str(identity)


def _identity(paths: Paths) -> str:
    ((_, identity),) = (row for row in stored(paths)["notes"] if row[0] == "installation")
    return str(identity)


@pytest.mark.parametrize("room", [0, 4096, 20 * 1024, 40 * 1024])
@pytest.mark.parametrize("tried", [False, True], ids=["found", "tried since"])
def test_one_that_an_earlier_version_left_half_made(
    paths: Paths, disk: Disk, room: int, tried: bool
) -> None:
    identity = _half_made(paths, disk, room)
    with pytest.raises(LedgerError):
        database.open_reader(paths.ledger)
    if tried:  # it was opened, and refused
        for name in ("state.db-wal", "state.db-shm"):
            (disk.folder / name).touch(0o600)
    disk.fill()
    assert _identity(paths) == identity, "to read it, no room is needed"
    with Ledger.open(paths, command="test") as ledger:
        write_everything(ledger)
        assert ledger.trouble
    disk.free()
    Ledger.open(paths, command="test").close()
    written = stored(paths)
    assert _identity(paths) == identity
    assert all(written.values())
    assert _is_whole_or_absent(paths, 0)


def test_a_log_left_beside_a_ledger_in_use(paths: Paths, disk: Disk) -> None:
    """Somebody put a backup in the place of the half-made one."""
    _half_made(paths, disk)
    disk.free()
    log = database.wal(database.staged_name(paths.ledger))
    content = log.read_bytes()
    _clear(paths, disk)
    with Ledger.open(paths, command="test") as ledger:
        write_everything(ledger)
    before = stored(paths)
    log.write_bytes(content)
    log.chmod(0o600)
    assert stored(paths) == before
    Ledger.open(paths, command="test").close()
    assert stored(paths) == before
    whole = paths.ledger.read_bytes()
    paths.ledger.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(paths, command="test")
    assert paths.ledger.read_bytes() == whole[: len(whole) // 2]
