"""The log of the daemon, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.agent import holding
from holdfast.agent.passes import Done
from holdfast.dataclass import dataclass
from holdfast.engine.plan import Held, Plan, Verb
from holdfast.resources.dynamic.source_name import unnumbered
from holdfast.state import journal
from holdfast.state.events import Event
from holdfast.state.working_copy import UNWRITABLE

_SAID = ("conflict", "healthy", "unhealthy", UNWRITABLE)


@dataclass(frozen=True, slots=True)
class Said:
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


def of_pass(done: Done, causes: Sequence[str], seconds: float) -> Said:
    failed = [event for event in done.events if event.kind.endswith("-failed")]
    # Verdicts were said when they fell; what stands in the way is said below, for as long as it
    # does.
    said = (*failed, *(event for event in done.events if event.kind in _SAID))
    happened = [line(event) for event in done.events if event not in said]
    applied = journal.applied(done.report)
    if applied and (happened or failed or not done.narrow):
        counts = ", ".join(f"{applied[verb]} {verb.past}" for verb in Verb if verb in applied)
        outcome = journal.outcome(done.report)
        happened.append(
            f"pass in {seconds * 1000:.0f} ms because of {', '.join(causes)}: {counts}; {outcome}"
        )
    left = done.report.after
    waiting = tuple(f"pending: {_held(held)}" for held in left.pending)
    return Said(tuple(happened), tuple(_in_the_way(left)), waiting)


def line(event: Event) -> str:
    owners = event.data.get("owners")
    by = f" for {', '.join(map(str, owners))}" if isinstance(owners, list) and owners else ""
    return f"{event.kind} {event.subject}{by}: {event.message}"


def _in_the_way(plan: Plan) -> Iterator[str]:
    for conflict in plan.conflicts:
        owners = ", ".join(conflict.owners)
        yield f"conflict: {conflict.desired.key} for {owners} is held by {conflict.holder}"
    if plan.recoverable:
        yield holding.told(plan)
    for held in plan.blocked:
        yield f"blocked: {_held(held)}"
    for kind, reason in plan.unknown:
        yield f"unknown: {kind} could not be observed: {reason}"


def _held(held: Held) -> str:
    key = f" {held.key}" if held.key is not None else ""
    return f"{held.owner}{key}: {held.reason}"
