"""The events in the ledger as somebody reads them: from a number on, filtered, and those to come.

The ledger itself is the queue of every reader: one that is slow holds nothing but a number, and is
told how many events were dropped before it came to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError
from holdfast.paths import Paths
from holdfast.state.events import StoredEvent

if TYPE_CHECKING:
    from holdfast.state.ledger import Ledger

PAGE = 500
# So many times as far back where too few of those before were wanted.
_FURTHER = 8
# As far as SQLite counts.
_MOST = 2**63 - 1
# How soon an event is seen, whoever wrote it: a command beside the daemon tells nobody.
POLL_S = 0.2
# Two writes in one tick of the file system's clock may look like one.
_ANYWAY = 10


@dataclass(frozen=True, slots=True)
class Filter:
    kinds: frozenset[str] = frozenset()  # none: all
    subject: str = ""  # some of the subject's text
    resource: str = ""  # "RouteList/transit"

    def __call__(self, event: StoredEvent) -> bool:
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.subject and self.subject not in event.subject:
            return False
        return not self.resource or self.resource in about(event)


@dataclass(frozen=True, slots=True)
class Missed:
    """Events that were dropped before they were read."""

    count: int
    replay_after: int  # the number that reading goes on after


@dataclass(frozen=True, slots=True)
class Page:
    events: tuple[StoredEvent, ...]
    missed: Missed | None
    cursor: int  # read up to here
    full: bool  # there may be more at once


def about(event: StoredEvent) -> tuple[str, ...]:
    """The resources that an event is about."""
    owners = event.data.get("owners")
    named = tuple(str(owner) for owner in owners) if isinstance(owners, list) else ()
    return (*named, event.subject)


def _ledger(paths: Paths) -> Ledger:
    from holdfast.state.ledger import Ledger  # not for those who ask the daemon

    return Ledger.read(paths)


def read_page(paths: Paths, after: int, wanted: Filter) -> Page:
    """`after`: 0 for the first that is kept. Raises where no such number was given out yet."""
    with _ledger(paths) as ledger:
        found = ledger.events(min(after, _MOST), PAGE)
        newest = after if found else ledger.last_event()
    if newest < after:
        raise HoldfastError(
            f"there is no event {after} yet: the newest is {newest}; this is another ledger than"
            " the one that number is of, or a mistake"
        )
    if not found:
        return Page((), None, after, full=False)
    first = found[0].sequence
    missed = Missed(first - after - 1, first - 1) if after and first > after + 1 else None
    events = tuple(filter(wanted, found))
    return Page(events, missed, found[-1].sequence, full=len(found) == PAGE)


def read_last(paths: Paths, count: int, wanted: Filter) -> Page:
    """The newest of those that are wanted. Asked for with every look at the console: no more is
    read than it takes to find them."""
    with _ledger(paths) as ledger:
        newest, reach = ledger.last_event(), count
        while True:
            found = ledger.events(max(0, newest - reach))
            events = [event for event in found if wanted(event)]
            if len(events) >= count or reach >= newest:
                break
            reach *= _FURTHER
    newest = found[-1].sequence if found else newest
    return Page(tuple(events[-count:]), None, newest, full=False)


@dataclass(slots=True)
class Mark:
    """Whether the ledger was written since it was asked last."""

    paths: Paths
    _seen: tuple[tuple[int, int], ...] = ()
    _asked: int = 0

    def changed(self) -> bool:
        from holdfast.state.working_copy import stamp  # not for those who ask the daemon

        seen = stamp(self.paths)
        self._asked = (self._asked + 1) % _ANYWAY
        fresh = seen != self._seen
        self._seen = seen
        return fresh or not self._asked
