"""What became of parts and masks, told when it changes.

What was told last is noted in the ledger, so that a restart tells nothing twice. A source that
says the same again, in a new generation, is no news.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from holdfast.engine import event_kinds
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.source_name import unnumbered
from holdfast.runtime import event_rate
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

TOLD = "merged-parts"

_NOTHING: dict[str, Any] = {"active": {}, "rejected": {}, "ignored": {}, "masked": {}}


def changed(ledger: Ledger, effective: Effective) -> bool:
    """Whether there is anything to be told; the ledger may be open for reading alone."""
    return _state(effective) != _told(ledger)


def record(ledger: Ledger, effective: Effective) -> list[Event]:
    """Appends the events of what changed since the last time, and answers them."""
    told, now = _told(ledger), _state(effective)
    if now == told:
        return []
    events = event_rate.kept(ledger, _events(told, now, effective), time.time())
    ledger.append_events(events)
    ledger.put_note(TOLD, now)
    return events


def _told(ledger: Ledger) -> dict[str, Any]:
    before = ledger.note(TOLD)
    return before if isinstance(before, dict) else _NOTHING


def _state(effective: Effective) -> dict[str, Any]:
    """Without generations and times."""
    return {
        # Each batch of increments is a generation of its own, and told of by what it leads to.
        "active": {
            part.source: "increments" if part.by_increments else part.digest
            for part in effective.active
        },
        "rejected": {
            rejected.part.source: unnumbered(rejected.reasons[0]) for rejected in effective.rejected
        },
        "ignored": {
            f"{ignored.part.source} {ignored.directive.target}": ignored.reason
            for ignored in effective.ignored
        },
        "masked": {
            suppressed.resource.id: [ref.partition("#")[0] for ref in suppressed.masked_by]
            for suppressed in effective.suppressed
        },
    }


def _events(
    told: dict[str, Any], now: dict[str, Any], effective: Effective
) -> Iterator[tuple[str, Event]]:
    """Each with the source that caused it."""

    def fresh(what: str, name: str) -> bool:
        return bool(now[what].get(name) != told[what].get(name))

    for part in effective.active:
        if fresh("active", part.source):
            held = _count(len(part.resources), "resource")
            held += f", {_count(len(part.directives), 'directive')}"
            data: dict[str, JSON] = {"generation": part.generation}
            yield part.source, Event(event_kinds.PART_ACCEPTED, part.source, held, data=data)
    for rejected in effective.rejected:
        part = rejected.part
        if fresh("rejected", part.source):
            more = len(rejected.reasons) - 1
            said = rejected.reasons[0] + (f" (and {more} more)" if more else "")
            said += f"; {rejected.fate}" if rejected.fate else ""
            data = {"generation": part.generation}
            yield part.source, Event(event_kinds.PART_REJECTED, part.source, said, data=data)
    for source in sorted(told["active"].keys() - now["active"].keys()):
        if source not in now["rejected"] or not fresh("rejected", source):
            yield source, Event(event_kinds.PART_ENDED, source, "it is over, or was withdrawn")
    for ignored in effective.ignored:
        if fresh("ignored", f"{ignored.part.source} {ignored.directive.target}"):
            said = f"{ignored.directive.op} of {ignored.directive.target}: {ignored.reason}"
            source = ignored.part.source
            yield source, Event(event_kinds.MASK_IGNORED, source, said)
    for suppressed in effective.suppressed:
        if fresh("masked", suppressed.resource.id):
            sources = now["masked"][suppressed.resource.id]
            said = f"masked by {', '.join(sources)}" + (
                f": {suppressed.reason}" if suppressed.reason else ""
            )
            place: dict[str, JSON] = {"place": suppressed.resource.place}
            yield (
                sources[0],
                Event(event_kinds.MASK_APPLIED, suppressed.resource.id, said, data=place),
            )
    for name in sorted(told["masked"].keys() - now["masked"].keys()):
        yield (
            told["masked"][name][0],
            Event(event_kinds.MASK_LIFTED, name, "nothing masks it any more"),
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
