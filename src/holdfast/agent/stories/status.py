"""How every resource is doing, in one document."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.agent.phases import LOOKS, ResourceStatus
from holdfast.agent.stories.style import Style, counted, thousands
from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.paths import Paths
from holdfast.resources.moments import format_moment

if TYPE_CHECKING:
    from holdfast.state.confirmations import Confirmation


@dataclass(frozen=True, slots=True)
class Trial:
    """What waits to be confirmed."""

    generation: int
    state: str  # open, or reverting
    deadline: float  # seconds since 1970, by the clock as it is now
    lifelines: tuple[str, ...]  # what worked before, and takes it back if it stops

    def entry(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "state": self.state,
            "deadline": format_moment(int(self.deadline)),
            "lifelines": list(self.lifelines),
        }


@dataclass(frozen=True, slots=True)
class Past:
    """What the ledger says was done last."""

    generation: int = 0  # the newest; 0: there is none
    state: str = ""
    last_pass: Mapping[str, Any] | None = None
    trial: Trial | None = None


@dataclass(frozen=True, slots=True)
class Status:
    router: str
    healthy: bool
    resources: Sequence[ResourceStatus]
    summary: Mapping[str, int]  # of the plan
    past: Past
    troubles: tuple[str, ...] = ()  # what is wrong besides: a part that is not in force, a fight
    namespace: Mapping[str, Any] | None = None  # who holds it; None: not known

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in self.resources:
            counts[one.phase.value] = counts.get(one.phase.value, 0) + 1
        return counts

    def members(self) -> Iterator[tuple[str, Any]]:
        past = self.past
        yield "format_version", document.FORMAT_VERSION
        yield "router", self.router
        yield "healthy", self.healthy
        newest = {"number": past.generation, "state": past.state} if past.generation else None
        yield "generation", newest
        yield "trial", None if past.trial is None else past.trial.entry()
        yield "last_pass", past.last_pass
        yield "namespace", self.namespace
        yield "troubles", list(self.troubles)
        yield "counts", self.counts()
        yield "summary", dict(self.summary)
        yield "resources", map(_entry, self.resources)

    def lines(self, style: Style) -> Iterator[str]:
        yield f"{style(self.router, 'bold')}, {self._history()}"
        yield ""
        width = max((len(one.resource) for one in self.resources), default=0)
        phases = max(8, *(len(one.phase.value) for one in self.resources), 0)
        for one in self.resources:
            phase = style(one.phase.value.ljust(phases), LOOKS[one.phase])
            said = one.reason or counted(one.artifacts, "artifact") + " as declared"
            yield f"  {phase}  {one.resource.ljust(width)}  {style(said, 'dim')}"
        if self.resources:
            yield ""
        leaving = self.summary["delete"]
        if leaving:
            text = f"{counted(leaving, 'artifact')} to be deleted by the next apply"
            yield style(text, "yellow")
        said = ", ".join(f"{thousands(count)} {phase}" for phase, count in self.counts().items())
        yield f"{counted(len(self.resources), 'resource')}: {said or 'nothing is declared'}."

    def _history(self) -> str:
        past = self.past
        if not past.generation or past.last_pass is None:
            return "never applied"
        age = max(0, int(time.time()) - int(past.last_pass["time"]))
        return f"generation {past.generation}, last pass {ago(age)}: {past.last_pass['outcome']}"


def status(router: str, resources: Sequence[ResourceStatus], plan: Plan, past: Past) -> Status:
    """Healthy: every resource is, and nothing of ours is left that nobody declares."""
    well = all(one.well for one in resources)
    healthy = well and not plan.changes and not plan.unknown
    return Status(router, healthy, resources, document.summary(plan), past)


def past(paths: Paths) -> Past:
    # Where a daemon tells the status, it tells this, too.
    from holdfast.state.journal import LAST_PASS
    from holdfast.state.ledger import Ledger

    with Ledger.read(paths) as ledger:
        newest = ledger.generations(1)
        note = ledger.note(LAST_PASS)
        waiting = ledger.waiting()
    last = note if isinstance(note, dict) else None
    if not newest:
        return Past(last_pass=last)
    return Past(newest[0].number, newest[0].state, last, _trial(waiting) if waiting else None)


def _trial(waiting: Confirmation) -> Trial:
    from holdfast.agent.confirm import deadline, lifelines  # most of the time nothing waits

    ends = time.time() + deadline.remaining(waiting)
    worked = tuple(map(str, lifelines.from_plain(waiting.probes)))
    return Trial(waiting.generation, waiting.state, ends, worked)


def ago(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{thousands(seconds // length)} {unit} ago"
    return f"{seconds} s ago"


def _entry(one: ResourceStatus) -> dict[str, Any]:
    masked = {
        "maskedBy": list(one.masked_by),
        "maskedUntil": None if one.masked_until is None else format_moment(one.masked_until),
    }
    return {
        "resource": one.resource,
        "place": one.place,
        "phase": one.phase.value,
        "artifacts": one.artifacts,
        "reason": one.reason,
        **(masked if one.masked_by else {}),
    }
