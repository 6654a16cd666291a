"""How each resource is doing, told from a plan that was just made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.config.said_secrets import redact_notes
from holdfast.dataclass import dataclass, field
from holdfast.engine import document
from holdfast.engine.artifact import Artifact
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.numbers import counted
from holdfast.resources.spec.moments import format_moment

if TYPE_CHECKING:
    from holdfast.resources.dynamic.effective import Suppressed
    from holdfast.resources.resource import Resource


NO_VERDICT = "there is no verdict yet: it was not probed often enough, or not at all"


class Phase(StrEnum):
    """In the order in which one outweighs another."""

    UNKNOWN = "Unknown"  # something of it could not be observed
    CONFLICT = "Conflict"  # something foreign, and different, is in its place
    BLOCKED = "Blocked"  # it cannot go on until somebody decides or repairs
    PENDING = "Pending"  # it waits for something that is not there yet
    DRIFTED = "Drifted"  # an apply would change something
    DEGRADED = "Degraded"  # as declared, and what it is for does not work
    FOREIGN = "Foreign"  # there as declared, made by somebody else, and not adopted
    SUPPRESSED = "Suppressed"  # masked by another source, and so no part of what is held
    HEALTHY = "Healthy"


LOOKS = {
    Phase.UNKNOWN: "magenta",
    Phase.CONFLICT: "red",
    Phase.BLOCKED: "red",
    Phase.PENDING: "yellow",
    Phase.DRIFTED: "yellow",
    Phase.DEGRADED: "red",
    Phase.FOREIGN: "cyan",
    Phase.SUPPRESSED: "dim",
    Phase.HEALTHY: "green",
}


@dataclass(frozen=True, slots=True)
class ActiveCandidate:
    """The candidate that a default route policy takes."""

    name: str
    since: float | None  # seconds since 1970; None: no pass has taken it yet
    why: str
    others: tuple[str, ...] = ()  # the candidates that are not active

    def __str__(self) -> str:
        since = f"since {format_moment(int(self.since))}" if self.since else "(not applied yet)"
        return f"{self.name} is active {since}: {self.why}"

    def entry(self) -> dict[str, object]:
        return {
            "candidate": self.name,
            "since": None if self.since is None else format_moment(int(self.since)),
            "why": self.why,
            "others": list(self.others),
        }


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    resource: str  # "RouteList/transit"
    place: str
    phase: Phase
    artifacts: int  # as declared
    reason: str  # of the phase
    masked_by: tuple[str, ...] = ()  # of a suppressed one: "Plugin/inventory#12"
    masked_until: float | None = None  # None: until it is withdrawn
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    active: ActiveCandidate | None = None  # of a default route policy

    def notes(self) -> dict[str, dict[str, str]]:
        """What people and their programs attached to it, as documents tell it."""
        found = {"labels": self.labels, "annotations": self.annotations}
        return {name: dict(sorted(said.items())) for name, said in found.items() if said}

    @property
    def well(self) -> bool:
        return self.phase in (Phase.HEALTHY, Phase.SUPPRESSED)


@dataclass(slots=True)
class _Tally:
    artifacts: int = 0
    found: dict[Phase, str] = field(default_factory=dict)

    def note(self, phase: Phase, reason: str) -> None:
        self.found.setdefault(phase, reason)


def phases(
    plan: Plan, resources: Iterable[Resource], suppressed: Iterable[Suppressed] = ()
) -> list[ResourceStatus]:
    """Of all that the effective config declares, and of what masks keep out of it."""
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
        phase = Phase.UNKNOWN if held.unknown else Phase.BLOCKED
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
    found = [(resource.index, _status(resource, tallies[resource.id])) for resource in resources]
    found += [(one.resource.index, _masked(one)) for one in suppressed]
    return [status for _, status in sorted(found, key=lambda entry: entry[0])]


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
    return ResourceStatus(
        resource.id,
        resource.place,
        phase,
        tally.artifacts,
        reason,
        labels=redact_notes(resource.labels),
        annotations=redact_notes(resource.annotations),
    )


def _masked(suppressed: Suppressed) -> ResourceStatus:
    by = f"masked by {', '.join(suppressed.masked_by)}"
    by += f" until {format_moment(suppressed.until)}" if suppressed.until is not None else ""
    return ResourceStatus(
        suppressed.resource.id,
        suppressed.resource.place,
        Phase.SUPPRESSED,
        0,
        f"{by}: {suppressed.reason}" if suppressed.reason else by,
        suppressed.masked_by,
        suppressed.until,
        redact_notes(suppressed.resource.labels),
        redact_notes(suppressed.resource.annotations),
    )
