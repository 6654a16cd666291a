"""A ledger that stays open: nobody is kept from it in between, and nothing they write is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state.kept import KeptLedger
from holdfast.state.ledger import Ledger

CLAIM = Claim(
    Key("rule", "1: from all lookup 9"),
    ("RoutingRule/one",),
    Provenance.CREATED,
    ClaimState.OWNED,
    {"priority": 1},
    "router.yaml:1",
    1,
)
OTHER = replace(CLAIM, key=Key("rule", "2: from all lookup 9"))


@pytest.fixture
def kept(root: Path) -> Iterator[KeptLedger]:
    ledger = KeptLedger(Paths(root), "test")
    yield ledger
    ledger.close()


def test_others_have_their_turn_in_between(kept: KeptLedger, root: Path) -> None:
    with kept.locked(0) as ledger:
        ledger.write_claims([CLAIM])
        with pytest.raises(LedgerError, match="held by"):
            Ledger.open(Paths(root), command="other")
    with Ledger.open(Paths(root), command="other") as other:
        assert list(other.claims()) == [CLAIM.key]
        with pytest.raises(LedgerError, match="held by"), kept.locked(0):
            pass
        other.write_claims([OTHER], [CLAIM.key])
    with kept.locked(0) as ledger:
        assert ledger.claims() == {OTHER.key: OTHER}


def test_what_it_wrote_itself_is_remembered(kept: KeptLedger, root: Path) -> None:
    with kept.locked(0) as ledger:
        assert ledger.claims() == {}
        ledger.write_claims([CLAIM, OTHER])
        first = ledger.claims()
        assert first is ledger.claims()
        ledger.write_claims([], [CLAIM.key])
        # Whoever still has the claims of before has them as they were.
        assert set(first) == {CLAIM.key, OTHER.key}
        assert ledger.claims() == {OTHER.key: OTHER}
    with Ledger.read(Paths(root)) as reader:
        assert reader.claims() == {OTHER.key: OTHER}


def test_a_write_that_fails_is_not_remembered(
    kept: KeptLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept.locked(0) as ledger:
        ledger.write_claims([CLAIM])

    def broken(*_: object) -> None:
        raise LedgerError("the disk is full")

    with pytest.raises(LedgerError, match="full"), kept.locked(0) as ledger:
        ledger.claims()
        with monkeypatch.context() as patched:
            patched.setattr("holdfast.state.claims.write", broken)
            ledger.write_claims([OTHER])
    with kept.locked(0) as ledger:
        assert ledger.claims() == {CLAIM.key: CLAIM}


def test_another_file_in_its_place(kept: KeptLedger, root: Path) -> None:
    with kept.locked(0) as ledger:
        ledger.write_claims([CLAIM])
    place = Paths(root).ledger
    for path in place.parent.glob("state.db*"):
        path.unlink()
    with kept.locked(0) as ledger:
        assert ledger.claims() == {}
        ledger.write_claims([OTHER])
    with Ledger.read(Paths(root)) as reader:
        assert reader.claims() == {OTHER.key: OTHER}


def test_damage_is_an_error_and_stays_one(kept: KeptLedger, root: Path) -> None:
    with kept.locked(0) as ledger:
        ledger.write_claims([CLAIM])
    kept.close()
    place = Paths(root).ledger
    place.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(LedgerError, match="empty"), kept.locked(0):
            pass
    assert place.read_bytes() == b""
