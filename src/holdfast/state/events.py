"""Events: what happened, numbered without gaps, oldest dropped first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.dataclass import dataclass, field
from holdfast.state import defaults, values
from holdfast.state.values import JSON

if TYPE_CHECKING:  # an event that the daemon tells was read by it
    from holdfast.engine.event_kinds import EventKind
    from holdfast.state.database import Database, Row
    from holdfast.state.rows import Table


@dataclass(frozen=True, slots=True)
class Event:
    kind: EventKind
    subject: str
    message: str
    generation: int = 0
    data: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    sequence: int
    time: float
    kind: str
    subject: str
    message: str
    generation: int
    data: Mapping[str, JSON]


def append(database: Database, events: Iterable[Event], clock: Callable[[], float]) -> int:
    """Adds them in one transaction; answers with the last sequence number there is."""
    new = list(events)
    if not new:
        return last(database)
    with database.transaction():
        append_rows(database, new, clock())
    return last(database)


def append_rows(database: Database, events: Iterable[Event | StoredEvent], now: float) -> None:
    """Within a transaction."""
    database.execute_many(
        "INSERT INTO events (time, kind, subject, message, generation, data) VALUES (?,?,?,?,?,?)",
        [
            (
                now,
                event.kind,
                event.subject,
                event.message,
                event.generation,
                values.dump(event.data),
            )
            for event in events
        ],
    )
    oldest = last(database) - defaults.KEEP_EVENTS
    database.execute("DELETE FROM events WHERE sequence<=?", (oldest,))


def restore(database: Database, events: Iterable[StoredEvent]) -> None:
    """Within a transaction: these events in place of those there. Numbers once given out are
    not given out again, so the next event follows the higher of both logs."""
    database.execute("DELETE FROM events")
    database.execute_many(
        "INSERT INTO events VALUES (?,?,?,?,?,?,?)",
        [
            (
                event.sequence,
                event.time,
                event.kind,
                event.subject,
                event.message,
                event.generation,
                values.dump(event.data),
            )
            for event in events
        ],
    )


def last(database: Database) -> int:
    """The highest number given out, whether or not its event is still kept."""
    rows = database.query("SELECT seq FROM sqlite_sequence WHERE name='events'")
    return int(rows[0][0]) if rows else 0


def read(database: Database, after: int, limit: int) -> list[StoredEvent]:
    """In order, from the one after `after`; all of them where limit is 0."""
    rest = "WHERE sequence>? ORDER BY sequence LIMIT ?"
    return _table().read(database, rest, (after, limit or -1))


def problems(database: Database) -> Iterator[str]:
    yield from _table().problems(database)


def _table() -> Table[StoredEvent]:
    from holdfast.state.rows import INTEGER, MOMENT, TEXT, Table  # as above

    types = {
        "sequence": INTEGER,
        "time": MOMENT,
        "kind": TEXT,
        "subject": TEXT,
        "message": TEXT,
        "generation": INTEGER,
        "data": TEXT,
    }
    return Table("events", types, _decode, lambda row: f"event {row[0]}")


def _decode(row: Row) -> StoredEvent:
    sequence, time, kind, subject, message, generation, data = row
    return StoredEvent(
        sequence, time, kind, subject, message, generation, values.load_mapping(data)
    )
