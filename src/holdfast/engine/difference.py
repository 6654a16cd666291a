"""What differs in the content of an artifact, line by line, for whoever reads a plan.

It is no part of the plan: what makes a plan stale are the digests of what was seen and is wanted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Key

# As many lines as are read at a glance; `--full` shows the others.
SHOWN = 20
CONTEXT = 2
_PIECE = 1 << 14  # bytes; larger ones take longer to allocate than to compare


class Sign(StrEnum):
    REMOVED = "-"
    ADDED = "+"
    SAME = " "


class Line(NamedTuple):
    sign: Sign
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that belong together."""

    where: str  # "chain forward", "line 12"; empty where it is all of it
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    hunks: tuple[Hunk, ...] = ()
    note: str = ""  # what is to be said beside the lines, or instead of them
    added: int = 0
    removed: int = 0
    left_out: int = 0  # lines that are not in `hunks`

    @property
    def whole(self) -> bool:
        """All of it comes or goes: nothing of it stays."""
        return bool(self.added) != bool(self.removed)


NONE = Difference()

# By the key of the artifact that an operation is about.
Differences = Mapping[Key, Difference]
NOT_READ: Differences = {}


def of(hunks: Iterable[Hunk], note: str = "") -> Difference:
    found = tuple(hunks)
    signs = [line.sign for hunk in found for line in hunk.lines]
    return Difference(found, note, signs.count(Sign.ADDED), signs.count(Sign.REMOVED))


def summary(given: Difference, limit: int = SHOWN) -> Difference:
    """Its first lines, and how many there are besides."""
    total = sum(len(hunk.lines) for hunk in given.hunks)
    if total <= limit:
        return given
    kept: list[Hunk] = []
    room = limit
    for hunk in given.hunks:
        if not room:
            break
        kept.append(replace(hunk, lines=hunk.lines[:room]))
        room -= len(kept[-1].lines)
    return replace(given, hunks=tuple(kept), left_out=given.left_out + total - limit)


def counted(given: Difference) -> Difference:
    """How many lines there are, and none of them."""
    return replace(summary(given, 0), note="")


def text(before: Sequence[str], after: Sequence[str]) -> tuple[Hunk, ...]:
    """What differs in a file, with the lines around it."""
    return tuple(_with_context(before, after))


def parts(
    before: Sequence[str],
    after: Sequence[str],
    heading: Callable[[str], str],
    shown: Callable[[str], str] = str,
) -> tuple[Hunk, ...]:
    """Of a text in parts: what differs in each. heading: the name of the part that a line begins,
    empty where it begins none. shown: a line as it is shown, empty where it is not."""
    named = _Headings(before, heading), _Headings(after, heading)
    found: dict[str, list[Line]] = defaultdict(list)
    for sign, at, line in _changes(before, after):
        words = shown(line)
        if words:
            found[named[sign is Sign.ADDED].of(at)].append(Line(sign, words))
    return tuple(Hunk(where, tuple(lines)) for where, lines in found.items())


class _Headings:
    def __init__(self, lines: Sequence[str], heading: Callable[[str], str]) -> None:
        found = [(at, name) for at, line in enumerate(lines) if (name := heading(line))]
        self._places = [at for at, _ in found]
        self._names = [name for _, name in found]

    def of(self, at: int) -> str:
        index = bisect_left(self._places, at + 1) - 1
        return self._names[index] if index >= 0 else ""


def same_ends(before: bytes, after: bytes) -> tuple[int, int]:
    """How many bytes of whole lines are the same at the start and at the end. Of 10 000 lines of
    which one differs, the others need not be looked at one by one."""
    shorter = min(len(before), len(after))
    start = _shared(lambda at, size: after.startswith(before[at : at + size], at), shorter)
    start = before.rfind(b"\n", 0, start) + 1

    def same(at: int, size: int) -> bool:
        old, new = len(before) - at, len(after) - at
        return after.endswith(before[old - size : old], 0, new)

    end = _shared(same, shorter - start)
    line = before.find(b"\n", max(0, len(before) - end - 1))
    return start, len(before) - line - 1 if end and line >= 0 else 0


def _shared(same: Callable[[int, int], bool], most: int) -> int:
    """How far two are the same. same: whether a piece is, from a place on and of a size."""
    at, size = 0, _PIECE
    while size and at < most:
        size = min(size, most - at)
        if same(at, size):
            at += size
        else:
            most = at + size - 1
            size //= 2
    return at


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Sign, int, str]]:
    """Lines that go and come, in order; each with its place among the lines it is of."""
    old = new = 0
    for start, stop, length in _common(before, after):
        yield from ((Sign.REMOVED, at, before[at]) for at in range(old, start))
        yield from ((Sign.ADDED, at, after[at]) for at in range(new, stop))
        old, new = start + length, stop + length


def _with_context(before: Sequence[str], after: Sequence[str]) -> Iterator[Hunk]:
    lines: list[Line] = []
    begin = old = new = 0
    *runs, last = _common(before, after)
    for start, stop, length in (*runs, last):
        gone, come = before[old:start], after[new:stop]
        if (gone or come) and not lines:
            lines = [Line(Sign.SAME, one) for one in before[max(0, old - CONTEXT) : old]]
            begin = new - len(lines)
        lines += (Line(Sign.REMOVED, one) for one in gone)
        lines += (Line(Sign.ADDED, one) for one in come)
        old, new = start + length, stop + length
        ends = length > 2 * CONTEXT or (start, stop) == last[:2]
        if lines:
            kept = before[start : start + min(length, CONTEXT)] if ends else before[start:old]
            lines += (Line(Sign.SAME, one) for one in kept)
        if lines and ends:
            yield Hunk(f"line {begin + 1}", tuple(lines))
            lines = []


def _common(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Runs of lines that stay: where each begins in both, and how long it is. The last one, which
    may be empty, ends where both end.

    A line that stands there several times is told by its turn, so that the longest run of lines in
    the same order is found in n log n steps, however many of them differ.
    """
    head = _same(before, after)
    tail = _same(
        islice(reversed(before), len(before) - head), islice(reversed(after), len(after) - head)
    )
    if head:
        yield 0, 0, head
    places = {one: at for at, one in enumerate(_told(after[head : len(after) - tail]))}
    pairs = [
        (at, places[one])
        for at, one in enumerate(_told(before[head : len(before) - tail]))
        if one in places
    ]
    start = stop = length = 0
    for old, new in _rising(pairs):
        if length and (old, new) == (start + length, stop + length):
            length += 1
            continue
        if length:
            yield head + start, head + stop, length
        start, stop, length = old, new, 1
    if length:
        yield head + start, head + stop, length
    yield len(before) - tail, len(after) - tail, tail


def _same(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _told(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    seen: dict[str, int] = defaultdict(int)
    for line in lines:
        seen[line] += 1
        yield line, seen[line]


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest row of pairs that rises in both."""
    ends: list[int] = []  # the smallest end of a row of each length
    holders: list[int] = []
    before: list[int] = []
    for at, (_, new) in enumerate(pairs):
        length = bisect_left(ends, new)
        ends[length : length + 1] = [new]
        holders[length : length + 1] = [at]
        before.append(holders[length - 1] if length else -1)
    row = []
    at = holders[-1] if holders else -1
    while at >= 0:
        row.append(pairs[at])
        at = before[at]
    return row[::-1]
