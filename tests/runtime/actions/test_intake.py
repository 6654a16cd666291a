"""What becomes of the journal as parts come, change and go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from holdfast.config.part import Part
from holdfast.runtime.actions.intake import MOST_PLANS, OVER, Taken, take_in
from holdfast.state import defaults
from holdfast.state.actions import (
    APPROVED,
    FAILED,
    PENDING,
    ROLLED_BACK,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Action,
)
from tests.runtime.actions.plans import NOW, part, plan

PROPOSED = Action("k1", "Owner/ci", 1, PENDING, NOW, NOW, plan())
LATER = NOW + 100_000


def take(*active: Part, journal: Iterable[Action] = (), now: float = NOW) -> Taken:
    return take_in(active, list(journal), now)


def forever(*plans: dict[str, object], generation: int = 1, source: str = "Owner/ci") -> Part:
    return part(*plans, generation=generation, source=source, lasts=None)


def kinds(taken: Taken) -> list[str]:
    return [event.kind for _, event in taken.news]


def test_a_new_plan_is_pending() -> None:
    taken = take(part(plan()))
    assert taken.put == (PROPOSED,)
    assert [(one.subject, one.message) for _, one in taken.news] == [
        ("Action/k1", "Owner/ci proposes: assign-secondary-ip 10.0.1.123 at aws")
    ]


def test_the_same_again_is_no_news() -> None:
    taken = take(part(plan()), journal=[PROPOSED])
    assert (taken.put, taken.news, taken.remove) == ((), (), ())


@pytest.mark.parametrize("state", [PENDING, APPROVED])
def test_a_newer_generation_with_the_same_plan_keeps_the_approval(state: str) -> None:
    action = replace(PROPOSED, state=state, approved_by="user 0" if state == APPROVED else "")
    taken = take(part(plan(), generation=2), journal=[action])
    assert taken.put == (replace(action, generation=2),)
    assert taken.news == ()


def test_a_changed_plan_has_to_be_approved_again() -> None:
    action = replace(PROPOSED, state=APPROVED, approved_by="user 0")
    other = plan(target={"address": "10.0.1.9", "nicRef": "eni-1"})
    taken = take(part(other, generation=2), journal=[action], now=NOW + 1)
    (now_is,) = taken.put
    assert (now_is.state, now_is.approved_by, now_is.plan) == (PENDING, "", other)
    assert kinds(taken) == ["action-proposed"]


@pytest.mark.parametrize("state", [PENDING, APPROVED])
@pytest.mark.parametrize("how", ["expired", "gone", "no longer proposed"])
def test_what_no_part_in_force_proposes_is_skipped(state: str, how: str) -> None:
    parts = {
        "expired": [part(plan(), observed=NOW - 3600)],
        "gone": [],
        "no longer proposed": [part(plan("k2"))],
    }[how]
    taken = take(*parts, journal=[replace(PROPOSED, state=state)])
    assert (taken.journal["k1"].state, taken.journal["k1"].reason) == (SKIPPED, OVER)
    assert "action-skipped" in kinds(taken)
    # Said once.
    again = take(*parts, journal=taken.journal.values())
    assert again.news == ()


def test_what_is_under_way_or_done_stays_when_its_part_is_over() -> None:
    undo = replace(PROPOSED, key="k1:undo", state=APPROVED, undoes="k1")
    journal = [
        replace(PROPOSED, key=state, state=state)
        for state in (RUNNING, SUCCEEDED, FAILED, ROLLED_BACK)
    ]
    taken = take(journal=[*journal, undo])
    assert (taken.put, taken.remove, taken.news) == ((), (), ())


def test_what_was_skipped_for_its_part_is_back_with_it() -> None:
    skipped = replace(PROPOSED, state=SKIPPED, reason=OVER, approved_by="user 0")
    (back,) = take(part(plan()), journal=[skipped]).put
    assert (back.state, back.reason, back.approved_by) == (PENDING, "", "")


@pytest.mark.parametrize("state", [FAILED, SKIPPED])
def test_what_failed_is_tried_again_for_a_newer_generation(state: str) -> None:
    failed = replace(PROPOSED, state=state, epoch=1, reason="no quota", result={"status": state})
    assert take(forever(plan()), journal=[failed], now=LATER).put == (), "the same generation"
    soon = take(forever(plan(), generation=2), journal=[failed], now=NOW + 29)
    assert soon.put == (), "it was tried a moment ago"
    (again,) = take(forever(plan(), generation=2), journal=[failed], now=NOW + 30).put
    assert (again.state, again.reason, dict(again.result)) == (PENDING, "", {})
    assert again.epoch == 1, "an epoch is never given twice"


def test_what_keeps_failing_waits_longer_and_longer() -> None:
    waits = []
    for attempts in (1, 2, 3, 7, 8, 1000):
        failed = replace(PROPOSED, state=FAILED, epoch=attempts)
        newer = forever(plan(), generation=2)
        seconds = range(0, 4000, 30)
        waits.append(next(s for s in seconds if take(newer, journal=[failed], now=NOW + s).put))
    assert waits == [30, 60, 120, 1920, 3600, 3600]


def test_what_failed_is_tried_at_once_with_another_plan() -> None:
    failed = replace(PROPOSED, state=FAILED, epoch=9)
    (again,) = take(part(plan(riskLevel="low")), journal=[failed]).put
    assert again.state == PENDING


@pytest.mark.parametrize("state", [SUCCEEDED, ROLLED_BACK])
def test_what_is_done_is_not_done_again(state: str) -> None:
    done = replace(PROPOSED, state=state, epoch=1)
    assert take(forever(plan(), generation=9), journal=[done], now=LATER).put == ()
    other = take(forever(plan(riskLevel="low"), generation=9), journal=[done], now=LATER)
    assert other.put == ()
    (rejected,) = other.rejected
    assert f"another plan with it is {state}" in str(rejected)


def test_what_is_under_way_is_left_alone_whatever_is_proposed() -> None:
    running = replace(PROPOSED, state=RUNNING, epoch=1)
    taken = take(part(plan(riskLevel="high"), generation=2), journal=[running])
    assert (taken.put, taken.rejected) == ((), ())


def test_one_bad_plan_leaves_the_others() -> None:
    taken = take(part(plan("k1"), plan("k2", mode="execute"), plan("k3")))
    assert sorted(taken.journal) == ["k1", "k3"]
    (rejected,) = taken.rejected
    assert str(rejected).startswith("app: mode: a plan cannot ask to be executed")


def test_a_key_belongs_to_the_first_that_uses_it() -> None:
    taken = take(
        part(plan(), source="Owner/a"),
        part(plan(name="mine", riskLevel="high"), source="Owner/b"),
    )
    assert taken.journal["k1"].source == "Owner/a"
    assert "idempotencyKey: is that of app of Owner/a" in str(taken.rejected[0])


def test_another_source_takes_over_with_a_new_approval_where_the_plan_differs() -> None:
    action = replace(PROPOSED, state=APPROVED, approved_by="user 0")
    same = take(part(plan(), source="Owner/b"), journal=[action]).journal["k1"]
    assert (same.source, same.state) == ("Owner/b", APPROVED)
    other = take(part(plan(riskLevel="low"), source="Owner/b"), journal=[action]).journal["k1"]
    assert (other.source, other.state) == ("Owner/b", PENDING)


def test_a_part_has_no_more_plans_than_somebody_could_read() -> None:
    taken = take(part(*(plan(f"k{number}") for number in range(MOST_PLANS + 5))))
    assert len(taken.journal) == MOST_PLANS
    assert "105 plans in a part, more than 100" in str(taken.rejected[0])


def test_many_are_told_of_together() -> None:
    few = take(part(*(plan(f"k{number}") for number in range(10))))
    assert len(few.news) == 10
    many = take(part(*(plan(f"k{number}") for number in range(11))))
    ((source, event),) = many.news
    assert source == "Owner/ci"
    assert (event.kind, event.subject) == ("action-proposed", "Owner/ci")
    assert event.message.startswith("11 actions at once")
    gone = take(part(plan("other")), journal=many.journal.values())
    assert sorted(kinds(gone)) == ["action-proposed", "action-skipped"]


def test_old_ones_go_but_never_what_is_still_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "KEEP_ACTIONS", 2)
    done = [
        replace(PROPOSED, key=f"k{number}", state=SUCCEEDED, changed=NOW + number)
        for number in range(5)
    ]
    undo = replace(PROPOSED, key="k1:undo", state=SUCCEEDED, undoes="k1", changed=NOW + 9)
    other = replace(PROPOSED, key="o", source="Owner/b", state=FAILED, changed=NOW - 9)
    taken = take(forever(plan("k0")), journal=[*done, undo, other])
    assert sorted(taken.remove) == ["k1", "k1:undo", "k2"]
    assert sorted(taken.journal) == ["k0", "k3", "k4", "o"]
