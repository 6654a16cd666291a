"""Tables that were adopted: drift, changes, cleanup, reboots and interruptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli import adopt
from holdfast.engine.claim import ClaimState, Provenance
from holdfast.engine.intent import Action
from holdfast.engine.kinds.nft import CHANGED
from holdfast.host.nft import driver as nft_driver
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.host.nft.nft_scene import Scene, listed, nft, verbs
from tests.host.nft.test_nft_adopt import SLIM, THEIRS, _candidate
from tests.host.nft.test_nft_pass import NAME, TABLE, _handle
from tests.namespace import Namespace

pytestmark = pytest.mark.usefixtures("netns")


@pytest.fixture
def scene(root: Path) -> Scene:
    return Scene(Paths(root))


@pytest.mark.parametrize(
    "drift",
    [
        f"add rule {NAME} input accept",
        f"delete element {NAME} plain {{ 192.0.2.1 }}",
        f"flush chain {NAME} helper",
    ],
)
def test_drift_in_an_adopted_table_is_repaired(scene: Scene, drift: str) -> None:
    nft(THEIRS)
    before = listed()
    scene.adopt(TABLE)
    nft(drift)
    report = scene.apply(TABLE)
    assert verbs(report) == ["update"]
    (operation,) = report.before.changes
    assert operation.proof == "claim: adopted before the first apply"
    assert operation.changes[0].before == CHANGED
    assert report.converged
    mark = f'comment "holdfast {TABLE.fields["content"]}"'
    assert listed() == before.replace('comment "by hand"', mark)
    assert not scene.apply(TABLE).before.changes


def test_another_nameless_set_in_an_adopted_table_is_drift(scene: Scene, netns: Namespace) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    handle = _handle(netns, "9002 }")
    nft(
        f"replace rule {NAME} input handle {handle} udp dport {{ 9001, 9003 }}"
        ' update @seen { ip saddr } accept comment "two"'
    )
    assert verbs(scene.apply(TABLE)) == ["update"]
    assert "9002 }" in listed(NAME)


def test_a_change_of_the_file_writes_an_adopted_table_as_ours(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    report = scene.apply(SLIM)
    assert verbs(report) == ["update"]
    assert f'comment "holdfast {SLIM.fields["content"]}"' in listed(NAME)
    assert verbs(scene.apply()) == ["delete"]
    assert not listed()


def test_an_adopted_table_goes_with_its_declaration(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    report = scene.apply()
    assert verbs(report) == ["delete"]
    assert not listed()
    assert not scene.claims()


def test_an_adopted_table_that_was_changed_stays(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    nft(f"add rule {NAME} input accept")
    before = listed()
    report = scene.apply()
    assert verbs(report) == []
    (orphan,) = report.before.orphans
    assert "no longer what was claimed" in orphan.reason
    assert listed() == before
    assert not scene.claims()


def test_a_change_that_could_not_be_repaired_is_no_leave_to_delete(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    nft(f"add rule {NAME} input accept")
    before = listed()
    with monkeypatch.context() as broken:
        broken.setattr(nft_driver, "_nft", lambda _script: "nft: no")
        assert scene.apply(TABLE).failures
    assert verbs(scene.apply()) == []
    assert listed() == before


def test_not_deleted_when_it_changes_in_the_last_moment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    real = nft_driver.NftDriver._find

    def late(driver: nft_driver.NftDriver, key: object) -> object:
        nft(f"add rule {NAME} helper drop")
        return real(driver, key)  # type: ignore[arg-type]

    monkeypatch.setattr(nft_driver.NftDriver, "_find", late)
    report = scene.apply()
    assert "somebody changed it since the plan" in report.failures[0][1].error
    assert "chain helper" in listed(NAME)


def test_not_replaced_when_another_comes_in_its_place_in_the_last_moment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    real = nft_driver._nft

    def late(script: str) -> str:
        monkeypatch.undo()
        nft(f"delete table {NAME}\ntable {NAME} {{\nchain theirs {{ accept; }}\n}}")
        return real(script)

    monkeypatch.setattr(nft_driver, "_nft", late)
    assert "No such file" in scene.apply(SLIM).failures[0][1].error
    assert "theirs" in listed(NAME)


def test_another_table_in_place_of_the_adopted_one_is_not_ours(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    nft(f"delete table {NAME}\ntable {NAME} {{\nchain theirs {{ accept; }}\n}}")
    before = listed()
    report = scene.apply(TABLE)
    assert not report.results
    assert len(report.after.conflicts) == 1
    assert not scene.apply().results
    assert listed() == before
    assert not scene.claims()


def test_one_made_anew_just_the_same_is_a_candidate_again(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    nft(f"delete table {NAME}\n{THEIRS}")
    scene.adopt(TABLE)
    assert not scene.apply(TABLE).before.changes


def test_a_claim_of_another_boot_proves_nothing(scene: Scene) -> None:
    nft(THEIRS)
    candidate = _candidate(scene)
    with Ledger.open(scene.paths, command="test") as ledger:
        ledger.write_claims([adopt._claim(candidate, 0, "an earlier boot/1")])
    before = listed()
    report = scene.apply(TABLE)
    assert not report.results
    assert report.after.candidates
    assert not scene.apply().results
    assert not scene.claims()
    assert listed() == before


def test_declared_absent_it_stays(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    before = listed()
    assert not scene.apply(TABLE, action=Action.DELETE).results
    assert listed() == before


def test_killed_while_it_was_deleted(scene: Scene) -> None:
    nft(THEIRS)
    scene.adopt(TABLE)
    with Ledger.open(scene.paths, command="test") as ledger:
        claim = ledger.claims()[TABLE.key]
        assert claim.provenance is Provenance.ADOPTED
        ledger.write_claims([replace(claim, state=ClaimState.DELETING)])
    assert verbs(scene.apply()) == ["delete"]
    assert not listed()
