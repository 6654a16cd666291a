"""The ledger while its disk takes no writes: nothing is lost, and all of it ends up there."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Part
from holdfast.engine import event_kinds
from holdfast.engine.claim import Claim, Lasting
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import database, installation, working_copy
from holdfast.state.confirmations import REVERTING
from holdfast.state.events import Event
from holdfast.state.faults import NotWritableError
from holdfast.state.installation import OwnNamespace
from holdfast.state.kept import KeptLedger
from holdfast.state.ledger import Ledger
from holdfast.state.working_copy import stamp
from tests.child import in_child
from tests.disks import Disk, small_disk
from tests.state.everything import TRIAL, rows, write_everything
from tests.state.samples import File, claim

pytestmark = pytest.mark.programs

# `make soak` takes all points.
_EVERY = 1 if os.environ.get("HOLDFAST_SOAK_STEPS") else 5


@pytest.fixture
def disk(paths: Paths) -> Iterator[Disk]:
    """That of the ledger's folder, with a claim in the ledger."""
    with small_disk(paths.state_dir, "1m") as made:
        _write(paths, claim(0))
        yield made
        working_copy.remove(paths)


def _write(paths: Paths, *put: Claim, wait: float = 0.0) -> Lasting:
    with Ledger.open(paths, command="test", wait=wait) as ledger:
        ledger.write_claims(put)
        return ledger.lasting


def _keys(paths: Paths) -> set[int]:
    """By what a command reads that starts now."""
    with Ledger.read(paths) as ledger:
        found = ledger.claims()
    return {number for number in range(50) if found.get(claim(number).key) == claim(number)}


def _sound(paths: Paths) -> None:
    assert not working_copy.exists(paths)
    with Ledger.read(paths) as ledger:
        assert (ledger.check(), ledger.trouble) == ([], "")


def _kinds(paths: Paths) -> list[str]:
    with Ledger.read(paths) as ledger:
        return [event.kind for event in ledger.events()]


def test_a_full_disk(paths: Paths, disk: Disk) -> None:
    disk.fill()
    before = paths.ledger.read_bytes()
    assert _write(paths, claim(1)) is Lasting.THIS_BOOT
    assert _keys(paths) == {0, 1}
    with Ledger.open(paths, command="test") as ledger:
        said = ("database or disk is full", "there is no room on the disk")
        assert any(words in ledger.trouble for words in said)
        assert str(paths.under("/run/holdfast/ledger")) in ledger.trouble
        assert ledger.begin_generation([File("router.yaml", b"a")]) == 1
        ledger.write_claims([claim(2)], [claim(0).key])
    with Ledger.read(paths) as ledger:
        assert "lost if the machine is booted anew" in ledger.trouble
        assert ledger.generation_files(1) == {"router.yaml": b"a"}
    assert paths.ledger.read_bytes() == before
    disk.free()
    assert _write(paths, claim(3)) is Lasting.FOR_GOOD
    assert _keys(paths) == {1, 2, 3}
    _sound(paths)
    assert _kinds(paths) == ["ledger-unwritable", "ledger-written"]


def test_a_disk_that_is_full_while_it_is_written(paths: Paths, disk: Disk) -> None:
    """As a daemon does: it keeps the ledger open, and remembers the claims."""
    kept = KeptLedger(paths, "test")
    with kept.locked(0) as ledger:
        ledger.write_claims([claim(1)])
    disk.fill()
    with kept.locked(0) as ledger:
        assert not ledger.trouble
        ledger.write_claims([claim(number) for number in range(2, 20)], [claim(0).key])
        ledger.append_events([Event(event_kinds.CREATED, "x", "y")])
        assert ledger.lasting is Lasting.THIS_BOOT
        assert len(ledger.claims()) == 19
        assert [told.kind for told in ledger.take_told()] == ["ledger-unwritable"]
    with kept.locked(0) as ledger:
        assert (len(ledger.claims()), ledger.take_told()) == (19, [])
    disk.free()
    with kept.locked(0) as ledger:
        assert ledger.trouble, "it is not tried at each use"
    kept._storage._try_at = 0.0
    with kept.locked(0) as ledger:
        assert (ledger.trouble, len(ledger.claims())) == ("", 19)
        assert [told.kind for told in ledger.take_told()] == ["ledger-written"]
        ledger.write_claims([claim(20)])
    kept.close()
    assert _keys(paths) == set(range(1, 21))
    _sound(paths)
    assert _kinds(paths) == ["ledger-unwritable", "created", "ledger-written"]


def test_a_disk_with_room_for_a_few_bytes_is_left_alone(paths: Paths, disk: Disk) -> None:
    disk.fill()
    _write(paths, claim(1))
    (disk.folder / ".ballast-4096").unlink(missing_ok=True)
    (disk.folder / ".ballast-1").unlink(missing_ok=True)
    found = os.statvfs(disk.folder)
    if found.f_bfree * found.f_frsize < (1 << 20) // 50:
        assert _write(paths, claim(2)) is Lasting.THIS_BOOT
    assert {0, 1} <= _keys(paths)


@pytest.mark.parametrize("left", ["closed", "killed"])
def test_a_read_only_disk_at_the_start(paths: Paths, disk: Disk, left: str) -> None:
    """What was committed last is in the log beside the file, if its writer was killed."""
    if left == "killed":

        def writes() -> None:
            Ledger.open(paths, command="test").write_claims([claim(1)])
            os._exit(0)

        os.waitpid(in_child(writes), 0)
        (disk.folder / "state.db-shm").unlink()
        assert (disk.folder / "state.db-wal").stat().st_size
    else:
        _write(paths, claim(1))
    disk.read_only()
    assert _keys(paths) == {0, 1}
    assert _write(paths, claim(2)) is Lasting.THIS_BOOT
    assert _keys(paths) == {0, 1, 2}
    disk.writable()
    assert _write(paths) is Lasting.FOR_GOOD
    assert _keys(paths) == {0, 1, 2}
    _sound(paths)


def test_a_full_disk_whose_writer_was_killed(paths: Paths, disk: Disk) -> None:
    def writes() -> None:
        Ledger.open(paths, command="test").write_claims([claim(1)])
        os._exit(0)

    os.waitpid(in_child(writes), 0)
    (disk.folder / "state.db-shm").unlink()
    disk.fill()
    assert _keys(paths) == {0, 1}, "to read it, SQLite would have to make a file, too"
    assert _write(paths, claim(2)) is Lasting.THIS_BOOT
    disk.free()
    _write(paths, claim(3))
    assert _keys(paths) == {0, 1, 2, 3}
    _sound(paths)


def test_no_folder_on_a_read_only_root(root: Path) -> None:
    paths = Paths(root)
    with small_disk(root / "var") as disk:
        disk.read_only()
        assert _keys(paths) == set()
        assert _write(paths, claim(1)) is Lasting.THIS_BOOT
        assert _write(paths, claim(2)) is Lasting.THIS_BOOT
        assert _keys(paths) == {1, 2}
        disk.writable()
        assert _write(paths, claim(3)) is Lasting.FOR_GOOD
        assert _keys(paths) == {1, 2, 3}
        _sound(paths)


def test_no_room_below_run_either(paths: Paths, disk: Disk) -> None:
    with small_disk(paths.under("/run"), "1m") as run:
        disk.fill()
        run.fill()
        seen = stamp(paths)
        with Ledger.open(paths, command="test") as ledger:
            ledger.write_claims([claim(1)])
            assert ledger.lasting is Lasting.THIS_PROCESS
            assert "in memory alone, and lost with the process" in ledger.trouble
        assert _keys(paths) == {0, 1}, "all of this process see it"
        assert stamp(paths) != seen
        seen = stamp(paths)
        assert _write(paths, claim(2)) is Lasting.THIS_PROCESS
        assert stamp(paths) != seen
        pid = in_child(lambda: os._exit(0 if _other_sees(paths) == {0} else 1))
        assert os.waitpid(pid, 0)[1] == 0, "others see what is on the disk"
        run.free()
        assert _write(paths, claim(3)) is Lasting.THIS_BOOT
        assert _keys(paths) == {0, 1, 2, 3}
        disk.free()
        assert _write(paths) is Lasting.FOR_GOOD
        assert _keys(paths) == {0, 1, 2, 3}
        _sound(paths)


def _other_sees(paths: Paths) -> set[int]:
    working_copy._in_memory.clear()
    return _keys(paths)


def test_run_fills_up_later(paths: Paths, disk: Disk) -> None:
    with small_disk(paths.under("/run"), "1m") as run:
        disk.fill()
        with Ledger.open(paths, command="test") as ledger:
            ledger.write_claims([claim(1)])
            run.fill()
            ledger.write_claims([claim(number) for number in range(2, 40)])
            ledger.append_events(Event(event_kinds.CREATED, str(n), "x" * 500) for n in range(50))
            assert ledger.lasting is Lasting.THIS_PROCESS
        assert _keys(paths) == set(range(40))
        disk.free()
        assert _write(paths) is Lasting.FOR_GOOD
        assert _keys(paths) == set(range(40))
        _sound(paths)


def test_run_fills_up_between_two_processes(paths: Paths, disk: Disk) -> None:
    """There is no room to open the copy where it lies."""
    with small_disk(paths.under("/run"), "1m") as run:
        disk.fill()
        assert _write(paths, claim(1)) is Lasting.THIS_BOOT
        run.fill()
        assert _keys(paths) == {0, 1}
        assert _write(paths, claim(2)) is Lasting.THIS_PROCESS
        assert _keys(paths) == {0, 1, 2}
        run.free()
        assert _write(paths) is Lasting.THIS_BOOT
        disk.free()
        assert _write(paths) is Lasting.FOR_GOOD
        assert _keys(paths) == {0, 1, 2}
        _sound(paths)


def test_killed_with_claims_in_the_copy(paths: Paths, disk: Disk) -> None:
    disk.fill()

    def writes() -> None:
        ledger = Ledger.open(paths, command="test")
        ledger.write_claims([claim(1)])
        ledger.write_claims([claim(2)])
        os._exit(0)

    os.waitpid(in_child(writes), 0)
    assert _keys(paths) == {0, 1, 2}
    assert _write(paths, claim(3)) is Lasting.THIS_BOOT
    disk.free()
    assert _write(paths) is Lasting.FOR_GOOD
    assert _keys(paths) == {0, 1, 2, 3}
    _sound(paths)


@pytest.mark.parametrize("more", [False, True])
def test_killed_after_it_was_written_back(
    paths: Paths, disk: Disk, monkeypatch: pytest.MonkeyPatch, more: bool
) -> None:
    """The copy is still there, and says nothing new, or somebody wrote to it since."""
    disk.fill()
    _write(paths, claim(1))
    disk.free()
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(working_copy, "remove", _interrupted)
        _write(paths)
    assert working_copy.exists(paths)
    assert _keys(paths) == {0, 1}
    if more:
        # A daemon that has tried to write it back a moment ago goes on with it.
        kept = KeptLedger(paths, "test")
        monkeypatch.setattr(working_copy, "write_back", _too_early)
        with kept.locked(0) as ledger:
            ledger.write_claims([claim(2)], [claim(0).key])
        kept.close()
        monkeypatch.undo()
    _write(paths, claim(3))
    assert _keys(paths) == ({1, 2, 3} if more else {0, 1, 3})
    _sound(paths)
    assert _kinds(paths) == ["ledger-unwritable", "ledger-written"]


@pytest.mark.parametrize("first", [False, True], ids=["to a ledger", "to none"])
def test_killed_at_any_point_of_writing_back(root: Path, first: bool) -> None:
    """Before and after each statement, and around the making of files and the end of the copy."""
    for point in range(1, 500, _EVERY):
        paths = Paths(root / str(point))
        with small_disk(paths.state_dir, "1m") as disk:
            if not first:
                _write(paths, claim(0))
            disk.fill()
            with Ledger.open(paths, command="test") as ledger:
                ledger.write_claims([claim(1)], [claim(0).key])
                ledger.append_events([Event(event_kinds.CREATED, "x", "y")])
            disk.free()
            pid = in_child(lambda at=point: _dies_writing_back(paths, at))  # type: ignore[misc]  # noqa: B023 (now)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert _keys(paths) == {1}, point
            assert _write(paths, claim(2)) is Lasting.FOR_GOOD
            assert _keys(paths) == {1, 2}, point
            _sound(paths)
            assert _kinds(paths) == ["ledger-unwritable", "created", "ledger-written"], point
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert point > 15


def _dies_writing_back(paths: Paths, last: int) -> None:
    left = last

    def pass_(*_arguments: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(name: str, **options: Any) -> sqlite3.Connection:
        made = sqlite3.Connection(name, **options)
        made.set_trace_callback(pass_)
        return made

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            pass_()
            done = call(*arguments)
            pass_()
            return done

        return watched

    vars(sqlite3)["connect"] = connect
    vars(database)["put_whole"] = around(database.put_whole)
    vars(os)["rename"] = around(os.rename)
    vars(working_copy)["_discard"] = around(working_copy._discard)
    vars(working_copy)["remove"] = around(working_copy.remove)
    Ledger.open(paths, command="test").close()


def _too_early(*_arguments: object) -> Event:
    raise NotWritableError("not now")


def _interrupted(*_arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("noted", [True, False], ids=["tables noted", "not noted"])
def test_another_ledger_was_put_in_its_place(paths: Paths, disk: Disk, noted: bool) -> None:
    """Nothing that either of them claims is lost, nor a table that routes were written to."""
    disk.fill()
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(1)], [claim(0).key])
        ledger.remember("routes", frozenset({"254", "100"}))
        ledger.append_events([Event(event_kinds.CREATED, "x", "y")])
    disk.free()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (disk.folder / name).unlink(missing_ok=True)
    aside = paths.under(working_copy.FOLDER).rename(paths.under("/run/holdfast/aside"))
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(5)])
        if noted:
            ledger.remember("routes", frozenset({"7"}))
    aside.rename(paths.under(working_copy.FOLDER))
    _write(paths)
    assert _keys(paths) == {1, 5}
    with Ledger.read(paths) as ledger:
        known = {"routes": frozenset({"7", "100", "254"})} if noted else {}
        assert ledger.remembered() == known
    _sound(paths)
    assert _kinds(paths) == ["ledger-unwritable", "created", "ledger-written"]


def test_all_that_counts_goes_to_another_ledger(paths: Paths, disk: Disk) -> None:
    """That somebody put there meanwhile; only its own history stays that of the one there."""
    disk.fill()
    with Ledger.open(paths, command="test") as ledger:
        write_everything(ledger)
        held = rows(ledger)
    disk.free()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (disk.folder / name).unlink(missing_ok=True)
    aside = paths.under(working_copy.FOLDER).rename(paths.under("/run/holdfast/aside"))
    with Ledger.open(paths, command="test") as ledger:
        ledger.begin_confirmation(TRIAL)
        own = installation.identity(ledger)
    aside.rename(paths.under(working_copy.FOLDER))
    with Ledger.open(paths, command="test") as ledger:
        found = rows(ledger)
        assert installation.identity(ledger) == own
        assert installation.own_namespace(ledger) == OwnNamespace("boot/42", (72, 73))
    for table in ("claims", "parts", "actions", "latches", "confirmations"):
        assert found[table] >= held[table], table


def test_a_trial_that_was_decided_meanwhile(paths: Paths, disk: Disk) -> None:
    """It is not decided again by another ledger, of before."""
    with Ledger.open(paths, command="test") as ledger:
        ledger.begin_confirmation(TRIAL)
    backup = paths.ledger.read_bytes()
    disk.fill()
    with Ledger.open(paths, command="test") as ledger:
        ledger.start_revert(TRIAL.generation, "no answer")
        ledger.finish_revert(replace(TRIAL, state=REVERTING), [], [])
        assert ledger.waiting() is None
    disk.free()
    paths.ledger.write_bytes(backup)
    execute = sqlite3.connect(paths.ledger).execute
    execute("INSERT INTO notes VALUES ('another', '1')").connection.commit()
    with Ledger.open(paths, command="test") as ledger:
        assert (ledger.trouble, ledger.waiting(), ledger.note("another")) == ("", None, 1)
        assert ledger.latched(TRIAL.digest) is not None


def test_what_has_to_be_kept_for_good_is_refused(paths: Paths, disk: Disk) -> None:
    disk.fill()
    with (
        pytest.raises(NotWritableError),
        Ledger.open(paths, command="adopt", durable=True) as ledger,
    ):
        ledger.write_claims([claim(number) for number in range(1, 40)])
    assert not working_copy.exists(paths)
    _write(paths, claim(1))
    with pytest.raises(NotWritableError, match=r"`adopt` changes has to be kept for good.*Free"):
        Ledger.open(paths, command="adopt", durable=True)
    with Ledger.open(paths, command="test") as ledger, pytest.raises(NotWritableError):
        ledger.confirm(1)
    imported = "what is imported has to be kept for good"
    with (
        Ledger.open(paths, command="test") as ledger,
        pytest.raises(NotWritableError, match=imported),
    ):
        ledger.import_(ledger.export())


def test_a_copy_of_somebody_elses_proves_nothing(paths: Paths, disk: Disk) -> None:
    disk.fill()
    _write(paths, claim(1))
    paths.under(working_copy.FOLDER).chmod(0o777)
    for use in (_keys, _write):
        with pytest.raises(LedgerError, match="may be written by other users"):
            use(paths)
    paths.under(working_copy.FOLDER).chmod(0o700)
    assert _keys(paths) == {0, 1}


def test_a_damaged_ledger_is_not_copied(paths: Paths, disk: Disk) -> None:
    """What cannot be read is not the same as nothing."""
    paths.ledger.write_bytes(b"x" * paths.ledger.stat().st_size)
    disk.fill()
    with pytest.raises(LedgerError, match="damaged"):
        _write(paths, claim(1))
    assert not working_copy.exists(paths)


def test_a_ledger_that_is_damaged_once_there_is_room(paths: Paths, disk: Disk) -> None:
    """The copy is whole: nobody has to do without it, and nobody repairs the file by itself."""
    whole = paths.ledger.read_bytes()
    disk.fill()
    _write(paths, claim(1))
    disk.free()
    damaged = b"x" * len(whole)
    paths.ledger.write_bytes(damaged)
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(2)])
        assert "file is not a database" in ledger.trouble
    assert paths.ledger.read_bytes() == damaged
    paths.ledger.write_bytes(whole)
    assert _write(paths) is Lasting.FOR_GOOD
    assert _keys(paths) == {0, 1, 2}
    _sound(paths)


class _Failing(sqlite3.Connection):
    """Fails from the so-manieth write to the file on, as SQLite says it."""

    left: int | None = None
    code, said = sqlite3.SQLITE_FULL, "database or disk is full"
    late = False  # the change happens all the same: a sync failed after it

    def execute(self, statement: str, *rest: Any) -> sqlite3.Cursor:
        return self._judged(statement, lambda: super(_Failing, self).execute(statement, *rest))

    def executemany(self, statement: str, *rest: Any) -> sqlite3.Cursor:
        return self._judged(statement, lambda: super(_Failing, self).executemany(statement, *rest))

    def _judged(self, statement: str, run: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        kind = type(self)
        if kind.left is None or statement.startswith(("SELECT", "PRAGMA", "ROLLBACK", "BEGIN\0")):
            return run()
        if kind.left > 0:
            kind.left -= 1
            return run()
        if kind.late and statement == "COMMIT":
            run()
        error = sqlite3.OperationalError(kind.said)
        error.sqlite_errorcode = kind.code
        raise error


def _story(ledger: Ledger) -> None:
    """Of all that a pass and its neighbours write."""
    ledger.remember("routes", frozenset({"254"}))
    ledger.write_claims([claim(1), claim(2)])
    number = ledger.begin_generation([File("router.yaml", b"a"), File("routes.txt", b"b")])
    ledger.append_events([Event(event_kinds.CREATED, "a", "b", number)])
    ledger.finish_generation(number, "converged")
    ledger.put_part(Part("Owner/ci", 1, 1000.0, None, (), (), ()))
    ledger.write_claims([claim(2, 2), claim(3)], [claim(1).key])
    number = ledger.begin_generation([File("router.yaml", b"c"), File("routes.txt", b"b")])
    ledger.put_note("last-pass", {"generation": number})
    ledger.end_parts("Owner/ci")
    ledger.finish_generation(number, "partial")
    ledger.write_claims([claim(4)])


def _all(ledger: Ledger) -> Any:
    return (
        ledger.claims(),
        ledger.generations(),
        ledger.parts(),
        ledger.remembered(),
        ledger.note("last-pass"),
        next(one for one in ledger.events() if not one.kind.startswith("ledger-")).kind,
    )


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after the change"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_FULL, "database or disk is full"),
        (sqlite3.SQLITE_IOERR, "disk I/O error"),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database"),
    ],
    ids=["full", "i/o", "read-only"],
)
def test_at_every_write(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str, late: bool
) -> None:
    """However far it came, all of it is in the ledger once there is room again."""
    clock = lambda: 1000.5  # noqa: E731 (short)
    with Ledger.open(Paths(root / "whole"), command="test", clock=clock) as ledger:
        _story(ledger)
        whole = _all(ledger)

    def connect(name: str, **options: Any) -> sqlite3.Connection:
        own = "/lib/holdfast/" in str(name)
        return sqlite3.Connection(name, **options) if not own else _Failing(name, **options)

    monkeypatch.setattr("holdfast.state.database.sqlite3.connect", connect)
    monkeypatch.setattr(_Failing, "code", code)
    monkeypatch.setattr(_Failing, "said", said)
    monkeypatch.setattr(_Failing, "late", late)
    for number in range(0, 100, 1 if code == sqlite3.SQLITE_FULL else 5):
        paths = Paths(root / str(number))
        monkeypatch.setattr(_Failing, "left", None)
        Ledger.open(paths, command="test").close()
        monkeypatch.setattr(_Failing, "left", number)
        with Ledger.open(paths, command="test", clock=clock) as ledger:
            _story(ledger)
            assert _all(ledger) == whole, number
            reached = ledger.lasting is Lasting.THIS_BOOT
        with Ledger.read(paths) as ledger:
            assert _all(ledger) == whole, number
        monkeypatch.setattr(_Failing, "left", None)
        with Ledger.open(paths, command="test", clock=clock) as ledger:
            assert ledger.lasting is Lasting.FOR_GOOD
            assert _all(ledger) == whole, number
        _sound(paths)
        if not reached:
            break
    assert number > 20


def test_a_disk_that_is_full_in_the_middle_of_a_change(paths: Paths, disk: Disk) -> None:
    """Some of it was written by then. The next process finds all of it, or none."""
    many = [claim(number) for number in range(20_000)]
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims(many)
        assert ledger.lasting is Lasting.THIS_BOOT
        assert len(ledger.claims()) == len(many)
    with Ledger.read(paths) as ledger:
        assert len(ledger.claims()) == len(many)
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims((), [one.key for one in many[50:]])
    disk.free()
    assert _write(paths) is Lasting.FOR_GOOD
    assert _keys(paths) == set(range(50))
    _sound(paths)


def test_many_processes_while_room_comes_and_goes(paths: Paths, disk: Disk) -> None:
    """Whoever reads sees all that was written before, wherever that was."""
    rounds, writers = 12, 3

    def writes(first: int) -> None:
        for number in range(first, first + rounds):
            _write(paths, claim(number), wait=60)

    def reads() -> None:
        seen: set[int] = set()
        while len(seen) < rounds * writers:
            now = _keys(paths)
            assert now >= seen, seen - now
            seen = now

    children = [
        in_child(lambda first=first: writes(first))  # type: ignore[misc]  # bound now
        for first in range(0, rounds * writers, rounds)
    ]
    children.append(in_child(reads))
    left = set(children)
    while left - {children[-1]}:
        disk.fill()
        disk.free()
        for child in tuple(left):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                left.discard(pid)
                assert status == 0
    _write(paths, wait=60)
    assert _keys(paths) == set(range(rounds * writers))
    for child in left:
        assert os.waitpid(child, 0)[1] == 0
    _sound(paths)
