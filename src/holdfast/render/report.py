"""What a pass did and what is true after it, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.engine import document
from holdfast.engine.driver import Failure, Result
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.reconcile import Report
from holdfast.numbers import counted, thousands
from holdfast.render.style import Style
from holdfast.state import journal


def members(given: Report, generation: int) -> Iterator[tuple[str, Any]]:
    left = given.after
    yield "format_version", document.FORMAT_VERSION
    yield "outcome", journal.outcome(given)
    yield "generation", generation
    yield "rounds", given.rounds
    yield "applied", journal.applied(given)
    yield "results", map(_result, given.results)
    yield "as_declared", document.summary(left)[Verb.KEEP]
    yield "left", document.operations(left.changes)
    yield "orphans", document.orphans(left.orphans)
    yield "conflicts", map(document.conflict, left.conflicts)
    yield "adoption_candidates", map(document.candidate, left.candidates)
    yield "recoverable", document.recoverable(left.recoverable)
    yield "pending", map(document.held, left.pending)
    yield "blocked", map(document.held, left.blocked)
    yield "unknown", [{"kind": kind, "reason": reason} for kind, reason in left.unknown]


def lines(given: Report, style: Style) -> Iterator[str]:
    done = journal.applied(given)
    if done:
        said = ", ".join(f"{thousands(done[v])} {v.past}" for v in Verb if v in done)
        yield f"{style('Applied:', 'bold')} {said}."
    notes = dict.fromkeys(note for result in given.results for note in result.notes)
    yield from (f"  {note}" for note in notes)
    yield from _lost(given, style)
    if given.failures and not given.converged:
        if done or notes:
            yield ""
        yield style("Failed:", "bold", "red")
        yield from _failures(given)
        yield ""
    left = given.after
    if left.orphans or left.conflicts or left.candidates or left.recoverable or _waits(left):
        from holdfast.render import plan_text

        yield from plan_text.rest(left, style)
    yield verdict(given, style)


def _lost(given: Report, style: Style) -> Iterator[str]:
    lost = [loss for result in given.results if result.ok for loss in result.operation.losses]
    if lost:
        from holdfast.render import plan_text

        yield from (f"  {line}" for line in plan_text.losses(lost, style, "others lost"))


def _waits(plan: Plan) -> bool:
    return bool(plan.pending or plan.blocked or plan.unknown)


def verdict(given: Report, style: Style) -> str:
    left = document.summary(given.after)
    as_declared = counted(left[Verb.KEEP], "artifact") + " as declared"
    if given.converged:
        waiting = f"; {counted(left['pending'], 'resource')} pending" if left["pending"] else ""
        return f"{style('Converged:', 'bold', 'green')} {as_declared}{waiting}."
    to_do = sum(op.count for op in given.after.changes)
    open_ = (
        (f"{thousands(to_do)} still to do", to_do),
        (f"{thousands(len(given.undeleted))} could not be deleted", len(given.undeleted)),
        (counted(left["conflicts"], "conflict"), left["conflicts"]),
        (f"{left['blocked']} blocked", left["blocked"]),
        (f"{counted(left['unknown'], 'kind')} could not be observed", left["unknown"]),
        (f"{left['pending']} pending", left["pending"]),
    )
    said = ", ".join(text for text, count in open_ if count)
    return f"{style('Not converged:', 'bold', 'red')} {said}; {as_declared}."


def _failures(given: Report) -> Iterator[str]:
    from holdfast.render import artifact_words, groups

    def key(pair: tuple[Operation, Failure]) -> tuple[str, str]:
        return pair[0].verb.value, pair[1].error

    # Each round tries again what is left; the last word of each is enough.
    last = {pair[1].key: pair for pair in given.failures}
    for items, count in groups.alike(last.values(), key):
        for operation, failure in items:
            yield f"  {operation.verb} {failure.key}: {failure.error}"
            if operation.owners:
                at = f" ({operation.origin})" if operation.origin else ""
                yield f"      {artifact_words.owners(operation.owners)}{at}"
        if count > len(items):
            yield f"  … and {thousands(count - len(items))} more of the same"


def _result(result: Result) -> dict[str, Any]:
    operation = result.operation
    first = next(document.artifacts(operation.subject, 1), None)
    return {
        "action": operation.verb.value,
        "kind": operation.kind,
        "artifact": None if first is None or operation.count > 1 else document.name(first.key),
        "count": operation.count,
        "done": result.done,
        "owners": list(operation.owners),
        "origin": operation.origin,
        "failures": [
            {"artifact": document.name(failure.key), "error": failure.error}
            for failure in result.failures
        ],
        "notes": list(result.notes),
        "losses": list(operation.losses),
    }
