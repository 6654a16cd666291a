from __future__ import annotations

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.state.samples import claim


def test_every_part_of_a_claim_comes_back(paths: Paths) -> None:
    full = Claim(
        Key("route", "default table 100"),
        ("IPv4Route/a", "Plugin/b"),
        Provenance.SET,
        ClaimState.DELETING,
        {"nexthops": ("via 192.0.2.1", "dev ppp0"), "mtu": 0, "up": True, "mac": None, "ü": "é"},
        "router.yaml:3:1",
        7,
        "boot/1",
        "nonce",
        {"value": "1\t2", "legs": ()},
    )
    with Ledger.open(paths, command="apply") as ledger:
        ledger.write_claims([full, claim(1)])
    with Ledger.open(paths, command="apply") as ledger:
        assert ledger.claims() == {full.key: full, claim(1).key: claim(1)}
        back = ledger.claims()[full.key]
    assert back.fingerprint == full.fingerprint
    assert type(back.fields["up"]) is bool
    assert isinstance(back.fields["nexthops"], tuple)
    assert back.provenance is Provenance.SET


def test_put_replaces_and_remove_removes_in_one_go(ledger: Ledger) -> None:
    ledger.write_claims([claim(1), claim(2), claim(3)])
    changed = claim(2, generation=9, owners=("Sysctl/x",))
    ledger.write_claims([changed], remove=[claim(1).key, Key("link", "never-there")])
    assert ledger.claims() == {changed.key: changed, claim(3).key: claim(3)}


def test_a_transaction_that_fails_halfway_leaves_nothing(ledger: Ledger) -> None:
    ledger.write_claims([claim(1)])
    bad = claim(3, origin=None)
    with pytest.raises(LedgerError, match="NOT NULL"):
        ledger.write_claims([claim(2), bad], remove=[claim(1).key])
    assert ledger.claims() == {claim(1).key: claim(1)}
    ledger.write_claims([claim(2)])
    assert len(ledger.claims()) == 2


def test_a_commit_is_on_the_disk(ledger: Ledger) -> None:
    """No test can cut the power; that SQLite was told to wait for the disk can be seen."""
    assert ledger._database.query("PRAGMA synchronous") == [(2,)]
    assert ledger._database.query("PRAGMA journal_mode") == [("wal",)]


def test_nothing_to_write_writes_nothing(ledger: Ledger, paths: Paths) -> None:
    ledger.write_claims([claim(1)])
    log = paths.state_dir / "state.db-wal"
    before = log.stat().st_size, log.stat().st_mtime_ns
    ledger.write_claims([], [])
    assert (log.stat().st_size, log.stat().st_mtime_ns) == before


def test_a_reader_sees_an_empty_ledger_where_there_is_none(paths: Paths) -> None:
    with Ledger.read(paths) as ledger:
        assert ledger.claims() == {}
        assert ledger.generations() == []
        assert ledger.events() == []
        assert ledger.note("report") is None
        assert ledger.check() == []
        with pytest.raises(LedgerError, match="readonly"):
            ledger.write_claims([claim(1)])
    assert not paths.state_dir.exists()


def test_a_reader_cannot_write(ledger: Ledger, paths: Paths) -> None:
    with Ledger.read(paths) as reader, pytest.raises(LedgerError, match="readonly"):
        reader.write_claims([claim(1)])
    assert ledger.claims() == {}
