"""Sources that declare resource by resource: what is checked, stored, withdrawn, swept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Part
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from holdfast.runtime import increments, sources
from holdfast.runtime.increments import Answer, Batch, State
from holdfast.state.ledger import Ledger
from tests.resources.parts import NOW, admitting, raw
from tests.resources.routers import load

CI = "Owner/ci"


def route(name: str, destination: str, **more: Any) -> dict[str, Any]:
    return raw("IPv4Route", name, {"destination": destination, "gateway": "192.0.2.2"} | more)


A, B = route("a", "10.1.0.0/16"), route("b", "10.2.0.0/16")
WRONG = route("wrong", "10.3.0.0/33")


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    with Ledger.open(Paths(root), command="test", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def startup(tmp_path: Path) -> Router:
    return load(tmp_path, admitting(CI), admitting("Owner/other"))


class Door:
    def __init__(self, ledger: Ledger, startup: Router) -> None:
        self.ledger, self.startup, self.now = ledger, startup, NOW

    def declare(self, *put: Any, source: str = CI, **more: Any) -> Answer:
        return self.batch(Batch(source, put, **more))

    def batch(self, batch: Batch) -> Answer:
        stored = sources.stored(self.ledger)
        return increments.declare(self.ledger, batch, stored, self.startup, self.now)[0]

    def effective(self) -> Effective:
        return sources.stored(self.ledger).merge(self.startup, self.now)

    @property
    def in_force(self) -> list[str]:
        return [one.id for one in self.effective().added]


@pytest.fixture
def door(ledger: Ledger, startup: Router) -> Door:
    return Door(ledger, startup)


def states(answer: Answer) -> dict[str, str]:
    return {one.id: one.state.value for one in answer.outcomes}


def test_a_resource_is_put_replaced_and_withdrawn(door: Door) -> None:
    assert states(door.declare(A, B)) == {"IPv4Route/a": "declared", "IPv4Route/b": "declared"}
    (found, _) = door.effective().added
    assert found.place == "Owner/ci IPv4Route/a"
    answer = door.declare(route("a", "10.9.0.0/16"), withdraw=(("IPv4Route", "b"),))
    assert states(answer) == {"IPv4Route/a": "declared", "IPv4Route/b": "withdrawn"}
    assert answer.generation == 2
    assert [str(one.spec.destination) for one in door.effective().added] == ["10.9.0.0/16"]


def test_what_is_unchanged_has_no_generation(door: Door) -> None:
    door.declare(A)
    answer = door.declare(A, withdraw=(("IPv4Route", "z"),))
    assert states(answer) == {"IPv4Route/a": "unchanged", "IPv4Route/z": "not-declared"}
    assert answer.generation == 1


def test_a_batch_is_stored_whole_or_not_at_all(door: Door) -> None:
    answer = door.declare(A, WRONG, {"kind": "IPv4Route"})
    assert set(states(answer).values()) == {"refused"}
    reasons = {one.id: one.reasons[0] for one in answer.outcomes}
    assert "others of its batch" in reasons["IPv4Route/a"]
    assert "'33' is not a prefix length" in reasons["IPv4Route/wrong"]
    assert "resources[2]" in reasons
    assert door.in_force == []


def test_each_by_itself(door: Door) -> None:
    answer = door.declare(A, WRONG, B, each=True)
    assert states(answer) == {
        "IPv4Route/a": "declared",
        "IPv4Route/wrong": "refused",
        "IPv4Route/b": "declared",
    }
    assert door.in_force == ["IPv4Route/a", "IPv4Route/b"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (route("lan", "10.1.0.0/16", interface="nowhere"), "no "),
        (raw("Hostname", "a", {"hostname": "x"}), "startup file alone"),
        (route("a", "10.7.0.0/16"), "declared already"),
        (route("other", "10.1.0.0/16", gateway="192.0.2.3"), "declared differently"),
        (route("a\x1b", "10.7.0.0/16"), "cannot be taken"),
        (route("s", "10.7.0.0/16", privateKey="x"), "secret"),
    ],
)
def test_what_would_not_be_in_force_is_not_stored(
    door: Door, given: dict[str, Any], reason: str
) -> None:
    door.declare(A)
    answer = door.declare(given, source="Owner/other")
    (outcome,) = answer.outcomes
    assert outcome.state is State.REFUSED
    assert reason in " ".join(outcome.reasons)
    assert door.in_force == ["IPv4Route/a"]


def test_a_source_that_nobody_admits_is_refused(door: Door) -> None:
    answer = door.declare(A, source="Owner/stranger")
    assert "no DynamicConfigSource names Owner/stranger" in answer.outcomes[0].reasons[0]
    assert sources.stored(door.ledger).parts == ()


def test_a_dry_run_stores_nothing(door: Door) -> None:
    assert states(door.declare(A, dry_run=True)) == {"IPv4Route/a": "declared"}
    assert door.in_force == []


def test_a_sync_sweeps_what_was_not_put_again(door: Door) -> None:
    door.declare(A, B)
    door.declare(begin=True)
    assert door.in_force == ["IPv4Route/a", "IPv4Route/b"]
    door.declare(B)
    answer = door.declare(route("c", "10.3.0.0/16"), complete=True)
    assert states(answer) == {"IPv4Route/c": "declared", "IPv4Route/a": "withdrawn"}
    assert door.in_force == ["IPv4Route/b", "IPv4Route/c"]
    with pytest.raises(Refused, match="begun no sync"):
        door.declare(complete=True)


def test_all_that_is_to_stay_in_one_call(door: Door) -> None:
    door.declare(A, B)
    door.declare(A, begin=True, complete=True)
    assert door.in_force == ["IPv4Route/a"]


def test_a_whole_part_takes_the_place_of_increments(door: Door) -> None:
    door.declare(A, B)
    part = Part(CI, 5, NOW, None, (A,))
    assert sources.put(door.ledger, part, NOW) == 2
    assert door.in_force == ["IPv4Route/a"]
    with pytest.raises(Refused, match="whole part"):
        door.declare(B)
    sources.withdraw(door.ledger, CI, NOW)
    assert door.declare(B).generation == 6
    assert door.in_force == ["IPv4Route/b"]


def test_all_is_withdrawn_at_once(door: Door) -> None:
    door.declare(A)
    assert sources.withdraw(door.ledger, CI, NOW) == CI
    assert door.in_force == []
    assert door.declare(A).generation == 3


def test_what_came_first_stays_where_both_cannot_be(door: Door, tmp_path: Path) -> None:
    """The startup file is edited: what it declares now comes first, and the rest stands."""
    door.declare(A, B)
    (tmp_path / "edited").mkdir()
    edited = ("IPv4Route", "a", A["spec"])
    door.startup = load(tmp_path / "edited", admitting(CI), admitting("Owner/other"), edited)
    effective = door.effective()
    assert [one.id for one in effective.added] == ["IPv4Route/b"]
    (refused,) = effective.refused
    assert refused.id == "IPv4Route/a"
    assert next(iter(effective.findings)).startswith("Owner/ci IPv4Route/a is refused: ")


def test_who_has_a_lifetime_speaks_again_or_is_over(door: Door, tmp_path: Path) -> None:
    (tmp_path / "bounded").mkdir()
    door.startup = load(tmp_path / "bounded", admitting(CI, ttl="60s"))
    door.declare(A)
    door.now = NOW + 50
    assert states(door.declare(A)) == {"IPv4Route/a": "unchanged"}
    door.now = NOW + 100
    assert door.in_force == ["IPv4Route/a"]
    door.now = NOW + 111
    assert door.in_force == []


def test_it_outlives_a_restart_and_an_export(door: Door, tmp_path: Path) -> None:
    door.declare(A, B)
    (tmp_path / "other").mkdir()
    data = door.ledger.export()
    with Ledger.open(Paths(tmp_path / "other"), command="test") as other:
        other.import_(data)
        found = other.parts()
    assert found == door.ledger.parts()
    assert [replace(one, observed=0.0).ref for one in found] == [CI]


def test_many_are_refused_beyond_the_count(door: Door, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    allow = {"kinds": ["IPv4Route"], "names": ["*"], "prefixes": ["0.0.0.0/0"], "maxResources": 1}
    door.startup = load(tmp_path / "few", admitting(CI, allow=allow))
    answer = door.declare(A, B, each=True)
    assert states(answer) == {"IPv4Route/a": "declared", "IPv4Route/b": "refused"}
    assert "maxResources" in answer.outcomes[1].reasons[0]
