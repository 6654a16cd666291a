"""Trials as rows: one at a time, decided once, and gone with what they held."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from holdfast.config.document import SourceFile
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import defaults, latches
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger

TRIAL = Confirmation(
    2, 1000.0, 1120.0, "this boot", 620.0, 1, "/etc/c.yaml", "", "d" * 64, b"geheim", [["gateway"]]
)
KEY = Key("link", "br0")
CLAIM = Claim(KEY, ("Interface/br0",), Provenance.CREATED, ClaimState.OWNED, {"mtu": 1500}, "x", 1)


def opened(paths: Paths) -> Ledger:
    return Ledger.open(paths, command="test", clock=lambda: 1234.0)


def test_what_waits_is_kept(paths: Paths) -> None:
    with opened(paths) as ledger:
        assert ledger.waiting() is None
        ledger.begin_confirmation(TRIAL)
    with Ledger.read(paths) as ledger:
        assert ledger.waiting() == TRIAL
        assert ledger.check() == []
    assert "geheim" not in repr(TRIAL)


def test_confirmed(paths: Paths) -> None:
    with opened(paths) as ledger:
        ledger.begin_confirmation(TRIAL)
        ledger.confirm(2)
        assert ledger.waiting() is None
        assert ledger.confirmations() == [replace(TRIAL, state="confirmed", reverse=b"")]
        with pytest.raises(LedgerError, match="generation 2 is confirmed, not open"):
            ledger.start_revert(2, "too late")
        with pytest.raises(LedgerError, match="generation 3 is not there, not open"):
            ledger.confirm(3)


def test_reverted(paths: Paths) -> None:
    files = [SourceFile("/etc/c.yaml", b"candidate\n")]
    trial = replace(TRIAL, digest=latches.digest(files))
    with opened(paths) as ledger:
        assert ledger.begin_generation(files) == 1
        trial = replace(trial, generation=1, before=0)
        ledger.write_claims([CLAIM])
        ledger.begin_confirmation(trial)
        ledger.start_revert(1, "nobody confirmed it")
        waiting = ledger.waiting()
        assert waiting == replace(trial, state="reverting", reason="nobody confirmed it")
        with pytest.raises(LedgerError, match="is reverting, not open"):
            ledger.confirm(1)
        other = replace(CLAIM, key=Key("link", "br1"))
        ledger.finish_revert(waiting, [other], [KEY])
        assert ledger.waiting() is None
        assert list(ledger.claims()) == [other.key]
        assert ledger.generations()[0].state == "reverted"
        assert [one.reverse for one in ledger.confirmations()] == [b""]
        latch = ledger.latch([SourceFile("/elsewhere.yaml", b"candidate\n")])
        assert latch is not None
        assert (latch.generation, latch.time, latch.reason) == (1, 1234.0, "nobody confirmed it")
        assert ledger.latch([SourceFile("/etc/c.yaml", b"changed\n")]) is None
        ledger.lift_latch(files)
        assert ledger.latch(files) is None


def test_what_other_sources_said_is_no_part_of_a_latch() -> None:
    files = [SourceFile("/etc/c.yaml", b"candidate\n")]
    with_part = [*files, SourceFile("dynamic:Plugin/x", b"{}\n")]
    assert latches.digest(files) == latches.digest(with_part)


def test_decided_ones_go_with_their_generations(paths: Paths) -> None:
    with opened(paths) as ledger:
        ledger.begin_confirmation(replace(TRIAL, generation=1))
        ledger.confirm(1)
        for number in range(defaults.KEEP_GENERATIONS + 1):
            ledger.begin_generation([SourceFile("/etc/c.yaml", b"%d\n" % number)])
        assert ledger.confirmations() == []


def test_damage_is_found(paths: Paths) -> None:
    with opened(paths) as ledger:
        ledger.begin_confirmation(TRIAL)
        ledger.begin_confirmation(replace(TRIAL, generation=3))
        assert ledger.check() == ["2 generations wait to be confirmed at once"]
    with sqlite3.connect(paths.ledger) as database:
        database.execute("UPDATE confirmations SET state='lost' WHERE generation=2")
    database.close()
    with Ledger.read(paths) as ledger:
        assert ledger.check() == ["confirmation of generation 2: state 'lost' is not known"]
        with pytest.raises(LedgerError, match="state 'lost' is not known"):
            ledger.waiting()
