"""How each resource is doing, told from a plan that was just made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.cli.terminal import counted
from holdfast.engine import document
from holdfast.engine.artifact import Artifact
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.resources.resource import Resource


class Phase(StrEnum):
    """In the order in which one outweighs another."""

    UNKNOWN = "Unknown"  # something of it could not be observed
    CONFLICT = "Conflict"  # something foreign, and different, is in its place
    BLOCKED = "Blocked"  # it cannot go on until somebody decides or repairs
    PENDING = "Pending"  # it waits for something that is not there yet
    DRIFTED = "Drifted"  # an apply would change something
    FOREIGN = "Foreign"  # there as declared, made by somebody else, and not adopted
    HEALTHY = "Healthy"


LOOKS = {
    Phase.UNKNOWN: "magenta",
    Phase.CONFLICT: "red",
    Phase.BLOCKED: "red",
    Phase.PENDING: "yellow",
    Phase.DRIFTED: "yellow",
    Phase.FOREIGN: "cyan",
    Phase.HEALTHY: "green",
}


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    resource: str  # "RouteList/transit"
    place: str
    phase: Phase
    artifacts: int  # as declared
    reason: str  # of the phase


@dataclass(slots=True)
class _Tally:
    artifacts: int = 0
    found: dict[Phase, str] = field(default_factory=dict)

    def note(self, phase: Phase, reason: str) -> None:
        self.found.setdefault(phase, reason)


def phases(plan: Plan, resources: Iterable[Resource]) -> list[ResourceStatus]:
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for operation in plan.operations:
        for owner in operation.owners:
            _note_operation(operation, tallies[owner])
    settled = {
        operation.subject.key
        for operation in plan.operations
        if isinstance(operation.subject, Artifact)
    }
    for held in plan.blocked:
        phase = Phase.UNKNOWN if held.reason.startswith("cannot be observed") else Phase.BLOCKED
        tallies[held.owner].note(phase, held.reason)
    for held in plan.pending:
        tallies[held.owner].note(Phase.PENDING, held.reason)
    for conflict in plan.conflicts:
        for owner in conflict.owners:
            reason = f"{conflict.desired.key} is held by something else ({conflict.holder})"
            tallies[owner].note(Phase.CONFLICT, reason)
    for candidate in plan.candidates:
        if candidate.desired.key not in settled and not candidate.changes:
            for owner in candidate.owners:
                reason = f"{candidate.desired.key} is there, and not ours ({candidate.holder})"
                tallies[owner].note(Phase.FOREIGN, reason)
    return [_status(resource, tallies[resource.id]) for resource in resources]


def _note_operation(operation: Operation, tally: _Tally) -> None:
    if operation.verb is Verb.KEEP:
        tally.artifacts += operation.count
    elif operation.verb.changes_host:
        first = next(document.artifacts(operation.subject, 1))
        what = str(first.key) if operation.count == 1 else counted(operation.count, operation.kind)
        tally.note(Phase.DRIFTED, f"{operation.verb} {what}: {operation.reason}")


def _status(resource: Resource, tally: _Tally) -> ResourceStatus:
    phase = next((phase for phase in Phase if phase in tally.found), Phase.HEALTHY)
    reason = tally.found.get(phase, "")
    return ResourceStatus(resource.id, resource.place, phase, tally.artifacts, reason)
