"""Status as a document and as lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from holdfast.engine import document
from holdfast.numbers import counted, thousands
from holdfast.render.style import Style
from holdfast.resources.spec.moments import format_moment
from holdfast.runtime.phases import LOOKS, ResourceStatus
from holdfast.runtime.status import Status, Trial


def members(status: Status) -> Iterator[tuple[str, Any]]:
    past = status.past
    yield "format_version", document.FORMAT_VERSION
    yield "router", status.router
    yield "healthy", status.healthy
    newest = {"number": past.generation, "state": past.state} if past.generation else None
    yield "generation", newest
    yield "trial", None if past.trial is None else _trial(past.trial)
    yield "last_pass", past.last_pass
    yield "namespace", status.namespace
    yield "troubles", list(status.troubles)
    yield "counts", status.counts()
    yield "summary", dict(status.summary)
    yield "resources", map(_entry, status.resources)


def lines(status: Status, style: Style) -> Iterator[str]:
    yield f"{style(status.router, 'bold')}, {_history(status)}"
    yield ""
    width = max((len(resource.resource) for resource in status.resources), default=0)
    phases = max(8, *(len(resource.phase.value) for resource in status.resources), 0)
    for resource in status.resources:
        phase = style(resource.phase.value.ljust(phases), LOOKS[resource.phase])
        said = resource.reason or counted(resource.artifacts, "artifact") + " as declared"
        yield f"  {phase}  {resource.resource.ljust(width)}  {style(said, 'dim')}"
    if status.resources:
        yield ""
    leaving = status.summary["delete"]
    if leaving:
        text = f"{counted(leaving, 'artifact')} to be deleted by the next apply"
        yield style(text, "yellow")
    said = ", ".join(f"{thousands(count)} {phase}" for phase, count in status.counts().items())
    yield f"{counted(len(status.resources), 'resource')}: {said or 'nothing is declared'}."


def _history(status: Status) -> str:
    past = status.past
    if not past.generation or past.last_pass is None:
        return "never applied"
    age = max(0, int(time.time()) - int(past.last_pass["time"]))
    return f"generation {past.generation}, last pass {ago(age)}: {past.last_pass['outcome']}"


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "generation": trial.generation,
        "state": trial.state,
        "deadline": format_moment(int(trial.deadline)),
        "lifelines": list(trial.lifelines),
    }


def ago(seconds: int) -> str:
    return f"{elapsed(seconds)} ago"


def elapsed(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{thousands(seconds // length)} {unit}"
    return f"{seconds} s"


def _entry(resource_status: ResourceStatus) -> dict[str, Any]:
    masked = {
        "maskedBy": list(resource_status.masked_by),
        "maskedUntil": None
        if resource_status.masked_until is None
        else format_moment(resource_status.masked_until),
    }
    return {
        "resource": resource_status.resource,
        "place": resource_status.place,
        "phase": resource_status.phase.value,
        "artifacts": resource_status.artifacts,
        "reason": resource_status.reason,
        **(masked if resource_status.masked_by else {}),
        **resource_status.notes(),
        **(
            {"active": resource_status.active.entry()} if resource_status.active is not None else {}
        ),
    }
