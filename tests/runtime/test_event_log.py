"""Events as somebody reads them from the ledger."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from holdfast.agent.event_stream import EventStream
from holdfast.engine import event_kinds
from holdfast.engine.event_kinds import EventKind
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.runtime.event_log import PAGE, Filter, Mark, Missed, read_last, read_page
from holdfast.state import defaults
from holdfast.state.events import Event, StoredEvent
from holdfast.state.ledger import Ledger


@pytest.fixture
def paths(root: Path) -> Paths:
    return Paths(root)


def append(paths: Paths, count: int, kind: EventKind = event_kinds.CREATED) -> int:
    with Ledger.open(paths, command="test") as ledger:
        return ledger.append_events(Event(kind, f"route {n}", "said") for n in range(count))


def test_pages_follow_each_other_without_gaps(paths: Paths) -> None:
    append(paths, PAGE + 7)
    first = read_page(paths, 0, Filter())
    assert first.full
    second = read_page(paths, first.cursor, Filter())
    assert not second.full
    numbers = [event.sequence for event in (*first.events, *second.events)]
    assert numbers == list(range(1, PAGE + 8))
    assert read_page(paths, PAGE + 7, Filter()).events == ()
    with pytest.raises(HoldfastError, match=f"no event {PAGE + 8} yet: the newest is {PAGE + 7}"):
        read_page(paths, PAGE + 8, Filter())


def test_what_was_dropped_is_counted_once(paths: Paths) -> None:
    append(paths, defaults.KEEP_EVENTS + 100)
    page = read_page(paths, 40, Filter(frozenset({"nothing"})))
    assert page.missed == Missed(60, 100)
    assert page.events == ()
    assert read_page(paths, page.cursor, Filter()).missed is None
    assert read_page(paths, 0, Filter()).missed is None  # whoever asks for all that is kept


def test_the_last_of_those_that_are_wanted(paths: Paths) -> None:
    append(paths, 5)
    append(paths, 5, event_kinds.DELETED)
    page = read_last(paths, 2, Filter(frozenset({"created"})))
    assert [event.sequence for event in page.events] == [4, 5]
    assert page.cursor == 10
    # However far back the first of them is, and fewer than were asked for.
    append(paths, 1000, event_kinds.REPAIRED)
    page = read_last(paths, 7, Filter(frozenset({"created"})))
    assert [event.sequence for event in page.events] == [1, 2, 3, 4, 5]
    assert page.cursor == 1010
    assert [event.sequence for event in read_last(paths, 2, Filter()).events] == [1009, 1010]


def test_a_write_of_another_process_is_seen(paths: Paths) -> None:
    append(paths, 1)
    mark = Mark(paths)
    assert mark.changed()
    assert not mark.changed()
    child = os.fork()
    if child == 0:
        append(paths, 1)
        os._exit(0)
    os.waitpid(child, 0)
    assert mark.changed()


def test_a_reader_is_told_what_it_missed_while_it_did_not_read(paths: Paths) -> None:
    append(paths, 3)
    stream = EventStream(paths)

    async def read() -> tuple[list[int], int]:
        seen: list[int] = []
        missed = 0
        async with asyncio.timeout(30), aclosing(stream.read(Filter(), follow=True)) as events:
            async for event in events:
                if isinstance(event, Missed):
                    missed += event.count
                    continue
                assert isinstance(event, StoredEvent)
                seen.append(event.sequence)
                if event.sequence == 3:
                    append(paths, defaults.KEEP_EVENTS + 50)
                if event.sequence == defaults.KEEP_EVENTS + 53:
                    break
        return seen, missed

    seen, missed = asyncio.run(read())
    assert missed == stream.missed == 50
    assert seen == [1, 2, 3, *range(54, defaults.KEEP_EVENTS + 54)]
    assert not stream.readers
