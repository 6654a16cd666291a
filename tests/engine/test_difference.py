"""Differences line by line: what they say makes the one text of the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import difference
from holdfast.engine.difference import Line, Sign

LINES = st.lists(st.sampled_from("abcdefg"), max_size=30)


@given(LINES, LINES)
def test_each_side_is_told(before: list[str], after: list[str]) -> None:
    """Removed and kept lines are of the one, added and kept ones of the other, in their order."""
    hunks = difference.text(before, after)
    rebuilt: list[str] = []
    at = 0
    for hunk in hunks:
        old = [line.text for line in hunk.lines if line.sign is not Sign.ADDED]
        new = [line.text for line in hunk.lines if line.sign is not Sign.REMOVED]
        start = int(hunk.where.removeprefix("line ")) - 1
        kept = start - len(rebuilt)
        rebuilt += before[at : at + kept]
        at += kept
        assert before[at : at + len(old)] == old
        at += len(old)
        rebuilt += new
    assert rebuilt + before[at:] == after
    assert bool(hunks) == (before != after)


@given(LINES)
def test_equal_texts_do_not_differ(lines: list[str]) -> None:
    assert difference.text(lines, lines) == ()
    assert difference.parts(lines, lines, str) == ()


def test_only_what_differs_and_its_surroundings() -> None:
    before = [str(number) for number in range(100)]
    after = [*before[:50], "new", *before[51:]]
    (hunk,) = difference.text(before, after)
    assert hunk.where == "line 49"
    assert [f"{line.sign}{line.text}" for line in hunk.lines] == [
        " 48", " 49", "-50", "+new", " 51", " 52",
    ]  # fmt: skip


def test_parts_are_named() -> None:
    before = ["chain a {", "one", "two", "}", "chain b {", "three", "}"]
    after = ["chain a {", "one", "}", "chain b {", "three", "four", "}"]
    hunks = difference.parts(before, after, lambda line: line[:-2] if line[-1] == "{" else "")
    assert [(hunk.where, hunk.lines) for hunk in hunks] == [
        ("chain a", (Line(Sign.REMOVED, "two"),)),
        ("chain b", (Line(Sign.ADDED, "four"),)),
    ]


def test_a_summary_says_how_much_is_left_out() -> None:
    whole = difference.of(difference.text([], [str(number) for number in range(200)]))
    assert (whole.added, whole.removed, whole.left_out) == (200, 0, 0)
    short = difference.summary(whole)
    assert short.added == 200
    assert sum(len(hunk.lines) for hunk in short.hunks) == difference.SHOWN
    assert short.left_out == 180
    assert difference.summary(short) == short


def test_ten_thousand_lines_that_all_moved_or_changed() -> None:
    """No square of their number."""
    before = [f"rule {number}" for number in range(10_000)]
    after = [f"rule {number}" for number in reversed(range(1, 10_000, 2))]
    found = difference.of(difference.text(before, after))
    assert found.removed - found.added == len(before) - len(after)


@given(LINES, LINES, st.booleans())
def test_same_ends_are_whole_lines(before: list[str], after: list[str], newline: bool) -> None:
    old, new = ("\n".join(one).encode() + b"\n" * newline for one in (before, after))
    start, end = difference.same_ends(old, new)
    assert start + end <= min(len(old), len(new))
    assert old[:start] == new[:start]
    assert old[len(old) - end :] == new[len(new) - end :]
    for text in (old, new):
        assert start == 0 or text[start - 1 : start] == b"\n"
        assert end == 0 or text[: len(text) - end][-1:] in (b"\n", b"")
