"""The log of the daemon, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.agent.reconciler import Done
from holdfast.dataclass import dataclass
from holdfast.engine import event_kinds
from holdfast.engine.plan import Held, Plan, Verb
from holdfast.resources.dynamic.source_name import unnumbered
from holdfast.runtime import namespace_ownership
from holdfast.runtime.log import Level, Line
from holdfast.state import journal
from holdfast.state.events import Event

_SAID = (
    event_kinds.CONFLICT,
    event_kinds.HEALTHY,
    event_kinds.UNHEALTHY,
    event_kinds.LEDGER_UNWRITABLE,
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """happened: of this pass alone. The rest is so before it perhaps, and after it, and worth a
    line only when it is new. standing: in the way. waiting: for what is not there yet."""

    happened: tuple[str, ...]
    standing: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(slots=True)
class Troubles:
    """What is wrong is said once, for as long as it is."""

    _said: frozenset[str] = frozenset()

    def news(self, lines: Sequence[str]) -> list[str]:
        """Of all that is wrong now, what was not a moment ago."""
        said, self._said = self._said, frozenset(map(unnumbered, lines))
        return [line for line in lines if unnumbered(line) not in said]

    def told(self, line: str) -> None:
        """Of what went wrong, as it did."""
        self._said |= {unnumbered(line)}


def of_pass(done: Done, causes: Sequence[str], seconds: float) -> LogLine:
    failed = [event for event in done.events if event.kind.failure]
    # Verdicts were said when they fell; what stands in the way is said below, for as long as it
    # does.
    said = (*failed, *(event for event in done.events if event.kind in _SAID))
    happened: list[str] = [line(event) for event in done.events if event not in said]
    applied = journal.applied(done.report)
    if applied and (happened or failed or not done.partial):
        counts = ", ".join(f"{applied[verb]} {verb.past}" for verb in Verb if verb in applied)
        outcome = journal.outcome(done.report)
        happened.append(
            f"pass in {seconds * 1000:.0f} ms because of {', '.join(causes)}: {counts}; {outcome}"
        )
    left = done.report.after
    waiting = tuple(map(_pending, left.pending))
    return LogLine(tuple(happened), tuple(_in_the_way(left)), waiting)


def line(event: Event) -> Line:
    owners = event.data.get("owners")
    by = f" for {', '.join(map(str, owners))}" if isinstance(owners, list) and owners else ""
    level = Level.WARNING if event.kind.warning else Level.INFO
    level = Level.ERROR if event.kind.failure else level
    return Line(f"{event.kind} {event.subject}{by}: {event.message}", level)


def standing(line: str) -> Line:
    """What stands in the way is a warning where whoever says it does not say more."""
    return line if isinstance(line, Line) else Line(line, Level.WARNING)


def _pending(held: Held) -> Line:
    return Line(f"pending: {_held(held)}", Level.ERROR if held.fault else Level.INFO)


def _in_the_way(plan: Plan) -> Iterator[str]:
    for conflict in plan.conflicts:
        owners = ", ".join(conflict.owners)
        said = f"conflict: {conflict.desired.key} for {owners} is held by {conflict.holder}"
        yield Line(said, Level.WARNING, of_resource=True)
    if plan.recoverable:
        yield namespace_ownership.told(plan)
    for held in plan.blocked:
        yield Line(f"blocked: {_held(held)}", Level.WARNING, of_resource=True)
    for kind, reason in plan.unknown:
        said = f"unknown: {kind} could not be observed: {reason}"
        yield Line(said, Level.ERROR, of_resource=True)


def _held(held: Held) -> str:
    key = f" {held.key}" if held.key is not None else ""
    return f"{held.owner}{key}: {held.reason}"
