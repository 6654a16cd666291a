from __future__ import annotations

import pytest

from holdfast.engine import event_kinds
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import defaults
from holdfast.state.events import Event, StoredEvent
from holdfast.state.ledger import Ledger


def _event(number: int) -> Event:
    return Event(event_kinds.CREATED, f"route 192.0.2.{number}/32", "created", 3, {"count": number})


def test_events_are_numbered_without_gaps_across_restarts(paths: Paths) -> None:
    with Ledger.open(paths, command="apply", clock=lambda: 12.25) as ledger:
        assert ledger.append_events([]) == 0
        assert ledger.append_events([_event(1), _event(2)]) == 2
    with Ledger.open(paths, command="apply", clock=lambda: 13.5) as ledger:
        assert ledger.append_events([]) == 2
        assert ledger.append_events([_event(3)]) == 3
        assert [event.sequence for event in ledger.events()] == [1, 2, 3]
        assert ledger.events(after=1, limit=1) == [
            StoredEvent(2, 12.25, "created", "route 192.0.2.2/32", "created", 3, {"count": 2})
        ]


def test_the_oldest_events_go_and_numbers_go_on(ledger: Ledger) -> None:
    ledger.append_events(_event(n) for n in range(defaults.KEEP_EVENTS - 1))
    assert ledger.append_events(_event(n) for n in range(6)) == defaults.KEEP_EVENTS + 5
    kept = [event.sequence for event in ledger.events()]
    assert kept == list(range(6, defaults.KEEP_EVENTS + 6))
    assert ledger.last_event() == defaults.KEEP_EVENTS + 5


def test_an_event_that_fails_takes_its_whole_batch_and_no_number(ledger: Ledger) -> None:
    ledger.append_events([_event(1)])
    with pytest.raises(LedgerError, match="NOT NULL"):
        ledger.append_events([_event(2), Event(event_kinds.CREATED, "y", None)])  # type: ignore[arg-type]  # on purpose
    assert ledger.append_events([_event(3)]) == 2


def test_notes_keep_the_last_value(paths: Paths) -> None:
    with Ledger.open(paths, command="apply") as ledger:
        ledger.put_note("report", {"converged": False})
        ledger.put_note("report", {"converged": True, "failures": ["a", 1, None]})
        ledger.put_note("other", [1.5])
    with Ledger.read(paths) as ledger:
        assert ledger.note("report") == {"converged": True, "failures": ["a", 1, None]}
        assert ledger.note("other") == [1.5]
        assert ledger.note("none") is None


def test_an_unchanged_note_is_not_written(ledger: Ledger, paths: Paths) -> None:
    ledger.put_note("report", {"a": 1, "b": 2})
    log = paths.state_dir / "state.db-wal"
    before = log.stat().st_size, log.stat().st_mtime_ns
    ledger.put_note("report", {"b": 2, "a": 1})
    assert (log.stat().st_size, log.stat().st_mtime_ns) == before
