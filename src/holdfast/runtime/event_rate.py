"""How many events a source may cause: the ledger keeps so many in all, and one source that has
much to say shall not drive out what others said.

What a source says, proposes or declares, and what is noticed of that, counts. What Holdfast did
does not: that something was executed, failed or was changed in the kernel is always kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.engine import event_kinds
from holdfast.resources.resource import Resource
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger

# In a minute. What matters of a source is told in a few: it failed, it changed.
MOST = 30
_MINUTE_S = 60.0
_MOST_SOURCES = 512  # remembered; twice as many as there can be at once
# By source: when its minute began, how many were kept and left out in it, and left out ever.
_NOTE = "event-rates"


def kept(ledger: Ledger, told: Iterable[tuple[str, Event]], now: float) -> list[Event]:
    """Of events with the sources that caused them, those that are kept; where some are not, with
    one that says how many. All of those without a source are."""
    by_source: dict[str, list[Event]] = {}
    for source, event in told:
        by_source.setdefault(source, []).append(event)
    free = by_source.pop("", [])
    if not by_source:
        return free
    rates = _rates(ledger)
    found = [
        event for source, events in by_source.items() for event in _of(rates, source, events, now)
    ]
    newest = sorted(rates, key=lambda source: rates[source]["since"])[-_MOST_SOURCES:]
    ledger.put_note(_NOTE, {source: rates[source] for source in newest})
    return free + found


def kept_of_parts(
    ledger: Ledger, resources: Iterable[Resource], events: Sequence[Event]
) -> list[Event]:
    """The same for what was noticed of resources, by who declared them: what the startup file
    declares is no source's."""
    if not events:
        return []
    sources = {
        resource.id: resource.part.partition("#")[0] for resource in resources if resource.part
    }
    return kept(ledger, ((_declared_by(sources, event), event) for event in events), time.time())


def left_out(ledger: Ledger) -> Mapping[str, int]:
    """Ever, by source."""
    return {source: rate["ever"] for source, rate in _rates(ledger).items() if rate["ever"]}


def _declared_by(sources: Mapping[str, str], event: Event) -> str:
    owners = event.data.get("owners")
    named = owners if isinstance(owners, list) else [event.subject]
    found = [sources.get(str(one), "") for one in named]
    return found[0] if found and all(found) else ""


def _of(rates: dict[str, Any], source: str, events: list[Event], now: float) -> list[Event]:
    rate = rates.setdefault(source, {"since": now, "kept": 0, "out": 0, "ever": 0})
    found = []
    if not 0 <= now - rate["since"] < _MINUTE_S:
        if rate["out"]:
            found.append(_left_out(source, rate["out"], "more "))
        rate.update(since=now, kept=0, out=0)
    room = max(0, MOST - rate["kept"])
    found += events[:room]
    rate["kept"] += len(events[:room])
    over = len(events) - room
    if over > 0:
        rate["ever"] += over
        # Those that come after the first of the minute are told of together when it is over.
        if room or rate["kept"] == MOST:
            found.append(_left_out(source, over))
            rate["kept"] = MOST + 1
        else:
            rate["out"] += over
    return found


def _left_out(source: str, count: int, more: str = "") -> Event:
    what = "event was" if count == 1 else "events were"
    said = f"{count} {more}{what} left out: at most {MOST} a minute are kept of a source"
    return Event(event_kinds.EVENTS_LEFT_OUT, source, said, data={"count": count})


def _rates(ledger: Ledger) -> dict[str, Any]:
    noted = ledger.note(_NOTE)
    return dict(noted) if isinstance(noted, dict) else {}
