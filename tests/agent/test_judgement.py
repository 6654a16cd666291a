"""Verdicts change when enough probes in a row say so, and not before."""

from __future__ import annotations

from holdfast.agent.health.judgement import Judge


def hear(judge: Judge, outcomes: str) -> list[bool | None]:
    """`+` an answer, `-` none; the verdict after each."""
    found: list[bool | None] = []
    for outcome in outcomes:
        judge.hear("" if outcome == "+" else "no answer")
        found.append(judge.verdict.healthy if judge.verdict is not None else None)
    return found


def test_first_verdict_needs_its_threshold_too() -> None:
    assert hear(Judge(2, 3), "++") == [None, True]
    assert hear(Judge(2, 3), "---") == [None, None, False]
    assert hear(Judge(2, 3), "+-+-") == [None] * 4


def test_change_needs_a_row() -> None:
    judge = Judge(2, 3)
    assert hear(judge, "++--+---") == [None, True, True, True, True, True, True, False]
    assert hear(judge, "+-++") == [False, False, False, True]


def test_only_changes_are_told() -> None:
    judge = Judge(1, 2)
    assert [judge.hear(said) for said in ("", "", "lost", "lost", "lost", "")] == [
        True, False, False, True, False, True,
    ]  # fmt: skip


def test_reason_says_what_was_heard() -> None:
    judge = Judge(1, 2)
    judge.hear("")
    assert judge.verdict is not None
    assert judge.verdict.reason == "answered once"
    judge.hear("x")
    judge.hear("no answer from 192.0.2.1")
    assert judge.verdict.reason == "2 times in a row: no answer from 192.0.2.1"


def test_what_goes_on_is_no_news() -> None:
    judge = Judge(1, 2)
    for problem in ("", "no answer"):
        hear_it = [judge.hear(problem) for _ in range(2)]
        assert any(hear_it)
        settled = judge.verdict
        judge.hear(problem)
        assert judge.verdict == settled
