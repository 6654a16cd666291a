from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state.actions import (
    APPROVED,
    FAILED,
    PENDING,
    ROLLED_BACK,
    RUNNING,
    SUCCEEDED,
    Action,
)
from holdfast.state.ledger import Ledger

ONE = Action("k1", "Plugin/inventory", 3, APPROVED, 900.5, 950.25, {"name": "app", "über": [None]})


def test_an_action_comes_back_as_it_was(ledger: Ledger, paths: Paths) -> None:
    whole = replace(
        ONE,
        key="k2",
        state=FAILED,
        epoch=4,
        deadline=960.0,
        approved_by="user 0",
        reason="no quota",
        undoes="k1",
        result={"status": "failed", "observed": {"id": 7}},
    )
    ledger.write_actions([whole, ONE])
    with Ledger.read(paths) as reader:
        assert reader.actions() == [ONE, whole]
        assert reader.action("k2") == whole
        assert reader.action("k3") is None
        assert reader.check() == []
    ledger.write_actions([], ["k2"])
    assert ledger.actions() == [ONE]


def test_only_one_gets_it(ledger: Ledger) -> None:
    ledger.write_actions([ONE])
    claimed = ledger.claim_action(ONE, 1045.0)
    assert claimed == replace(ONE, state=RUNNING, epoch=1, changed=1000.5, deadline=1045.0)
    assert ledger.claim_action(ONE, 1045.0) is None


def test_only_what_is_approved_or_under_way_is_claimed(ledger: Ledger) -> None:
    for state in (PENDING, FAILED, SUCCEEDED):
        with pytest.raises(ValueError, match="nothing to execute"):
            ledger.claim_action(replace(ONE, state=state), 1045.0)


def test_a_late_result_changes_nothing(ledger: Ledger) -> None:
    ledger.write_actions([ONE])
    first = ledger.claim_action(ONE, 1045.0)
    assert first is not None
    second = ledger.claim_action(first, 1090.0)
    assert second is not None
    assert second.epoch == 2
    assert not ledger.finish_action(first, SUCCEEDED, "late", {})
    assert ledger.action("k1") == second
    assert ledger.finish_action(second, FAILED, "no quota", {"status": FAILED})
    assert not ledger.finish_action(first, SUCCEEDED, "later", {})
    assert not ledger.finish_action(second, SUCCEEDED, "twice", {})
    found = ledger.action("k1")
    assert found is not None
    assert (found.state, found.reason, found.result) == (FAILED, "no quota", {"status": FAILED})


def test_what_is_undone_is_rolled_back_with_it(ledger: Ledger) -> None:
    undo = replace(ONE, key="k1:undo", undoes="k1")
    ledger.write_actions([replace(ONE, state=SUCCEEDED), undo])

    def state() -> str:
        found = ledger.action("k1")
        assert found is not None
        return found.state

    for outcome, then in ((FAILED, SUCCEEDED), (SUCCEEDED, ROLLED_BACK)):
        current = ledger.action("k1:undo")
        assert current is not None
        ledger.write_actions([replace(current, state=APPROVED)])
        claimed = ledger.claim_action(replace(current, state=APPROVED), 1045.0)
        assert claimed is not None
        assert state() == SUCCEEDED
        assert ledger.finish_action(claimed, outcome, "", {})
        assert state() == then


def test_export_and_import(
    ledger: Ledger, paths: Paths, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ledger.write_actions([ONE, replace(ONE, key="k2", state=RUNNING, epoch=2, deadline=960.5)])
    exported = ledger.export()
    other = Paths(tmp_path_factory.mktemp("other") / "root")
    with Ledger.open(other, command="test") as second:
        second.import_(exported)
        assert second.actions() == ledger.actions()
        assert second.export() == exported
        twice = exported | {"actions": [*exported["actions"], exported["actions"][0]]}
        with pytest.raises(LedgerError, match=r"actions\[2\]: k1 is there twice"):
            second.import_(twice, replace=True)
    assert paths != other


def test_damage_is_said(ledger: Ledger, paths: Paths) -> None:
    ledger.write_actions([ONE, replace(ONE, key="k2", undoes="k9")])
    with sqlite3.connect(paths.ledger) as raw:
        raw.execute("UPDATE actions SET state='done' WHERE idempotency_key='k1'")
    raw.close()
    assert ledger.check() == [
        "action k1: state 'done' is not known",
        "action k2: undoes k9, which is not there",
    ]
    with pytest.raises(LedgerError, match="action k1 cannot be read: state 'done' is not known"):
        ledger.actions()
