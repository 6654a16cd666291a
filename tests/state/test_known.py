"""A program that stays goes on with what it knows of a ledger that cannot be used any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine import event_kinds
from holdfast.engine.claim import Lasting
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import working_copy
from holdfast.state.events import Event
from holdfast.state.faults import UnusableError
from holdfast.state.kept import KeptLedger
from holdfast.state.ledger import Ledger
from tests.state.everything import Rows, rows, stored, write_everything
from tests.state.samples import File, claim
from tests.state.unusable import WAYS, Way, move_away

# What takes many times as much as the rest, and no pass needs.
_HISTORY = ("contents", "generation_files", "events")


@pytest.fixture
def kept(paths: Paths) -> Iterator[KeptLedger]:
    ledger = KeptLedger(paths, "test")
    yield ledger
    ledger.close()
    working_copy.remove(paths)


def _use(kept: KeptLedger, paths: Paths) -> UnusableError | None:
    """As a pass does: what it reads first is read beside it. Why there is no going on with it."""
    try:
        Ledger.read(paths).close()
        with kept.locked(0) as ledger:
            ledger.claims()
    except UnusableError as error:
        return error
    return None


def _without_history(found: Rows) -> Rows:
    return {table: rows for table, rows in found.items() if table not in _HISTORY}


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """But for what SQLite keeps for the moment."""
    found = {
        str(file): (file.lstat().st_mode, file.read_bytes() if file.is_file() else b"")
        for file in (folder, folder / "state.db", folder / "state.db-wal")
        if file.exists()
    }
    return {name: seen for name, seen in found.items() if seen[1] or not name.endswith("-wal")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_goes_on(paths: Paths, kept: KeptLedger, way: Way) -> None:
    with kept.locked(0) as ledger:
        write_everything(ledger)
        before = rows(ledger)
    assert all(before.values()), "something of everything"
    way.spoil(paths)
    why = _use(kept, paths)
    if why is None:
        with kept.locked(0) as ledger:  # what is open is whole
            assert rows(ledger) == before
        return
    spoilt = _files(paths.state_dir)
    assert kept.go_on_without(why, 0)
    with kept.locked(0) as ledger:
        assert _without_history(rows(ledger)) == _without_history(before)
        assert ledger.lasting is Lasting.THIS_BOOT
        assert str(why).partition(". ")[0] in ledger.trouble
        assert [told.kind for told in ledger.take_told()] == ["ledger-unwritable"]
        ledger.write_claims([claim(3)], [claim(1).key])
        assert ledger.begin_generation([File("router.yaml", b"c")]) == 2
        assert ledger.append_events([Event(event_kinds.CREATED, "x", "y")]) > len(before["events"])
    assert _files(paths.state_dir) == spoilt, "it stays as it is"
    assert set(_claimed(paths)) == {claim(2).key, claim(3).key}, "commands see it, too"
    with pytest.raises(LedgerError):
        Ledger.open(paths, command="adopt", durable=True)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_is_written_once_it_is_put_right(paths: Paths, kept: KeptLedger, way: Way) -> None:
    with kept.locked(0) as ledger:
        write_everything(ledger)
    way.spoil(paths)
    why = _use(kept, paths)
    if why is None:
        return
    assert kept.go_on_without(why, 0)
    with kept.locked(0) as ledger:
        ledger.write_claims([claim(3)], [claim(1).key])
        held = rows(ledger)
    kept.close()
    (way.mend or move_away)(paths)
    kept._storage._try_at = 0.0
    with kept.locked(0) as ledger:
        assert (ledger.trouble, ledger.lasting) == ("", Lasting.FOR_GOOD)
    assert not working_copy.exists(paths)
    found = stored(paths)
    assert {(row[0], row[1]) for row in found["claims"]} >= {tuple(claim(3).key)}
    for table in set(held) - set(_HISTORY) - {"claims"}:
        assert found[table] >= held[table], table
    with Ledger.read(paths) as ledger:
        assert ledger.check() == []


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_starts_as_if_it_were_lost(paths: Paths, kept: KeptLedger, way: Way) -> None:
    """Whatever was not known before is not trusted, and not taken for nothing either."""
    with Ledger.open(paths, command="test") as ledger:
        write_everything(ledger)
    way.spoil(paths)
    why = _use(kept, paths)
    assert why is not None
    spoilt = _files(paths.state_dir)
    assert kept.go_on_without(why, 0)
    with kept.locked(0) as ledger:
        assert ledger.claims() == {}
        assert "nothing of what it held" in ledger.trouble
        ledger.write_claims([claim(3)])
    assert _files(paths.state_dir) == spoilt
    if way.mend is not None:
        way.mend(paths)
        kept._storage._try_at = 0.0
        with kept.locked(0) as ledger:
            assert set(ledger.claims()) == {claim(number).key for number in (1, 2, 3)}


def test_commands_stop(paths: Paths) -> None:
    """Only a program that stays goes on; see test_faults.py."""
    Ledger.open(paths, command="test").close()
    paths.state_dir.chmod(0o777)
    with pytest.raises(UnusableError, match="may be written by other users"):
        Ledger.open(paths, command="apply")
    assert not working_copy.exists(paths)


def test_a_working_copy_that_cannot_be_used(paths: Paths, kept: KeptLedger) -> None:
    """It is not replaced: what it held is nowhere else."""
    Ledger.open(paths, command="test").close()
    paths.state_dir.chmod(0o777)
    why = _use(kept, paths)
    assert why is not None
    assert kept.go_on_without(why, 0)
    paths.under(working_copy.FOLDER).chmod(0o777)
    why = _use(kept, paths)
    assert why is not None
    assert not kept.go_on_without(why, 0)


def _claimed(paths: Paths) -> list[object]:
    with Ledger.read(paths) as ledger:
        return list(ledger.claims())
