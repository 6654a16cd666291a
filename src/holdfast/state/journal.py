"""What a pass leaves in the ledger: events, the outcome of its generation, a note for `status`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby

from holdfast.engine import document, event_kinds
from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Result
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.reconcile import Report
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

LAST_PASS = "last-pass"  # noqa: S105 (no password)

_DONE = {
    Verb.CREATE: event_kinds.CREATED,
    Verb.UPDATE: event_kinds.UPDATED,
    Verb.REPLACE: event_kinds.REPLACED,
    Verb.DELETE: event_kinds.DELETED,
}
_FAILED = {
    Verb.CREATE: event_kinds.CREATE_FAILED,
    Verb.UPDATE: event_kinds.UPDATE_FAILED,
    Verb.REPLACE: event_kinds.REPLACE_FAILED,
    Verb.DELETE: event_kinds.DELETE_FAILED,
}


def record(ledger: Ledger, report: Report, generation: int) -> list[Event]:
    events = happened(report, generation)
    keep(ledger, report, generation, events)
    return events


def happened(report: Report, generation: int) -> list[Event]:
    return list(_events(report, generation))


def keep(ledger: Ledger, report: Report, generation: int, events: Sequence[Event]) -> None:
    ledger.append_events(events)
    ledger.finish_generation(generation, outcome(report))
    ledger.put_note(LAST_PASS, _note(report, generation))


def outcome(report: Report) -> str:
    """By what is there, not by what this pass did: one that finds a conflict that stands, and has
    nothing to do, did not fail."""
    if report.converged:
        return "converged"
    there = any(op.verb is Verb.KEEP for op in report.after.operations)
    there = there or any(result.done for result in report.results)
    return "partial" if there or not (report.failures or report.after.unknown) else "failed"


def applied(report: Report) -> dict[str, int]:
    """How many objects each verb was carried out on."""
    counts: dict[str, int] = {}
    for result in report.results:
        if result.done:
            verb = result.operation.verb.value
            counts[verb] = counts.get(verb, 0) + result.done
    forgotten = len(_forgotten(report))
    return counts | ({Verb.FORGET.value: forgotten} if forgotten else {})


def _forgotten(report: Report) -> list[Operation]:
    """Claims dropped although their objects were not deleted by this very pass."""
    deleted = {
        result.operation.subject.key
        for result in report.results
        if result.operation.verb is Verb.DELETE and isinstance(result.operation.subject, Artifact)
    }
    return [
        operation
        for operation in report.after.forgets
        if isinstance(operation.subject, Artifact) and operation.subject.key not in deleted
    ]


def _events(report: Report, generation: int) -> Iterator[Event]:
    for _, alike in groupby(report.results, _alike):
        yield from _done_and_failed(list(alike), generation)
    for operation in _forgotten(report):
        first = next(document.artifacts(operation.subject, 1))
        yield Event(event_kinds.FORGOTTEN, str(first.key), operation.reason, generation)


def _alike(result: Result) -> Hashable:
    """Routes come in thousands and share an event; everything else has its own."""
    operation = result.operation
    shared = (operation.verb, operation.kind, operation.owners, operation.reason)
    return shared if KINDS[operation.kind].bulk else (*shared, id(result))


def _done_and_failed(results: Sequence[Result], generation: int) -> Iterator[Event]:
    """One event for what was done, however many objects that is, and one for what was not."""
    operation = results[0].operation
    data: dict[str, JSON] = {"owners": list(operation.owners), "origin": operation.origin}
    done = sum(result.done for result in results)
    if done:
        first = next(document.artifacts(operation.subject, 1)).key
        subject = str(first) if done == 1 else f"{done} {operation.kind}s, the first {first.name}"
        about: dict[str, JSON] = data | {"count": done, "proof": operation.proof}
        kind = _DONE[operation.verb]
        said = operation.reason
        if operation.losses:
            said = f"{said}; others lost {', '.join(operation.losses)}"
            about["losses"] = list(operation.losses)
        yield Event(kind, subject, said, generation, about)
    failures = [failure for result in results for failure in result.failures]
    if failures:
        worst = failures[0]
        missed: dict[str, JSON] = data | {"count": len(failures)}
        yield Event(_FAILED[operation.verb], str(worst.key), worst.error, generation, missed)


def _note(report: Report, generation: int) -> JSON:
    return {
        "time": int(time.time()),
        "generation": generation,
        "outcome": outcome(report),
        "applied": dict(applied(report)),
        "failed": len(report.failures),
    }
