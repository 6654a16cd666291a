"""The active candidates of default route policies, and since when they are.

The ledger keeps since when, so that a restart of the daemon changes nothing about it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from holdfast.engine import event_kinds
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.resources.facts import Facts
from holdfast.resources.resource import Resource
from holdfast.resources.uplinks.active import Active, active_candidates
from holdfast.runtime import event_rate
from holdfast.runtime.defaults import LEDGER_WAIT_S
from holdfast.runtime.phases import ActiveCandidate
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

_NOTE = "active-candidates"


def active(
    ledger: Ledger, resources: Sequence[Resource], facts: Facts
) -> dict[str, ActiveCandidate]:
    """By policy."""
    found = active_candidates(resources, facts)
    noted = _noted(ledger) if found else {}
    return {one.policy: _since(one, noted) for one in found}


def record(ledger: Ledger, resources: Sequence[Resource], facts: Facts) -> list[Event]:
    """After a pass: notes what is taken now, and answers the events of what changed."""
    noted = _noted(ledger)
    found = active_candidates(resources, facts)
    if not _news(found, noted):
        return []
    now = time.time()
    events = [_event(one, _name(noted, one)) for one in found if _name(noted, one) != one.candidate]
    note: dict[str, JSON] = {
        one.policy: {"candidate": one.candidate, "since": _since(one, noted).since or now}
        for one in found
    }
    events = event_rate.kept_of_parts(ledger, resources, events)
    ledger.append_events(events)
    ledger.put_note(_NOTE, note)
    return events


def record_if_changed(paths: Paths, resources: Sequence[Resource], facts: Facts) -> list[Event]:
    """The same for the daemon, which does not hold the ledger between its passes. Where it cannot
    be written, the next pass tells."""
    found = active_candidates(resources, facts)
    with suppress(LedgerError):
        with Ledger.read(paths) as reader:
            if not _news(found, _noted(reader)):
                return []
        with Ledger.open(paths, command="holdfast serve", wait=LEDGER_WAIT_S) as ledger:
            return record(ledger, resources, facts)
    return []


def _news(found: Sequence[Active], noted: dict[str, Any]) -> bool:
    return {one.policy for one in found} != noted.keys() or any(
        _name(noted, one) != one.candidate for one in found
    )


def _noted(ledger: Ledger) -> dict[str, Any]:
    note = ledger.note(_NOTE)
    return note if isinstance(note, dict) else {}


def _name(noted: dict[str, Any], one: Active) -> str:
    return str(noted.get(one.policy, {}).get("candidate", ""))


def _since(one: Active, noted: dict[str, Any]) -> ActiveCandidate:
    same = _name(noted, one) == one.candidate
    since = float(noted[one.policy]["since"]) if same else None
    others = tuple(name for name in one.candidates if name != one.candidate)
    return ActiveCandidate(one.candidate, since, one.why, others)


def _event(one: Active, before: str) -> Event:
    instead = f" in place of {before}" if before else ""
    data: dict[str, JSON] = {"candidate": one.candidate, "before": before or None}
    return Event(
        event_kinds.CANDIDATE_CHANGED,
        one.policy,
        f"{one.candidate} is active{instead}: {one.why}",
        0,
        data,
    )
