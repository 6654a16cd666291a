"""How every resource is doing: the value that status is told from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.paths import Paths
from holdfast.runtime.phases import ResourceStatus

if TYPE_CHECKING:
    from holdfast.state.confirmations import Confirmation


@dataclass(frozen=True, slots=True)
class Trial:
    """What waits to be confirmed."""

    generation: int
    state: str  # open, or reverting
    deadline: float  # seconds since 1970, by the clock as it is now
    lifelines: tuple[str, ...]  # what worked before, and takes it back if it stops


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


def status(router: str, resources: Sequence[ResourceStatus], plan: Plan, past: Past) -> Status:
    """Healthy: every resource is, and nothing of ours is left that nobody declares."""
    well = all(resource.well for resource in resources)
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
    from holdfast.runtime.confirm import deadline, lifelines

    ends = time.time() + deadline.remaining(waiting)
    worked = tuple(map(str, lifelines.from_plain(waiting.probes)))
    return Trial(waiting.generation, waiting.state, ends, worked)
