"""What is said to an executor and what it may answer: one JSON document each way. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.config.part import Raw
from holdfast.dataclass import dataclass, field
from holdfast.resources.spec.moments import format_moment
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.shape import (
    ShapeError,
    Spec,
    choice,
    flag,
    nested,
    optional,
    required,
    text,
)
from holdfast.runtime.actions.plan import ActionPlan
from holdfast.runtime.plugins import sanitize
from holdfast.runtime.plugins.protocol import (
    OBJECT,
    Nonsense,
    parse_json,
    shown_resources,
)
from holdfast.state.actions import RESULTS, SUCCEEDED

VERSION = "provideraction.holdfast.dev/v1alpha1"
_VERSIONS = (VERSION, "provideraction.routerd.net/v1alpha1")
REQUEST, RESULT = "ExecuteActionRequest", "ExecuteActionResult"
EXECUTE = "execute"
# What is kept in the journal and handed back for an undo: facts, not an archive.
_MOST_OBSERVED = 16 << 10


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything an executor is told."""

    key: str
    plan: ActionPlan
    mode: str  # execute or dry-run
    now: float
    source: str
    generation: int  # of the part that proposed it
    resources: Sequence[Raw] = ()  # those that the plugin's context names

    def document(self) -> bytes:
        plan = self.plan
        spec = {
            "action": plan.action,
            "provider": plan.provider,
            "providerRef": plan.provider_ref or "",
            "target": plan.target,
            "parameters": plan.parameters or {},
            "mode": self.mode,
            "idempotencyKey": self.key,
            "context": {
                "now": format_moment(self.now),
                "source": self.source,
                "generation": self.generation,
                "resources": shown_resources(self.resources),
            },
        }
        said = {
            "apiVersion": VERSION,
            "kind": REQUEST,
            "metadata": {"name": plan.name},
            "spec": spec,
        }
        return json.dumps(said).encode()


class Status(Spec):
    status: str = required(choice(*RESULTS), "what came of it")
    message: str = optional(text(least=0, unchecked=True), "for people", default="")
    observed: dict[str, Any] | None = optional(OBJECT, "what it found, for an undo")
    undo_available: bool = optional(flag(), "whether it can undo this", default=False)
    error: str = optional(text(least=0, unchecked=True), "why it failed", default="")


class Result(Spec):
    api_version: str | None = optional(choice(*_VERSIONS), "version")
    kind: str = optional(choice(RESULT), f"always {RESULT}", default=RESULT)
    metadata: Any = optional(OBJECT, "not looked at")
    status: Status = required(nested(Status), "what came of it")


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    message: str = ""
    error: str = ""
    observed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    undo_available: bool = False

    def document(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return {
            "status": self.status,
            "message": self.message,
            "error": self.error,
            "observed": dict(self.observed),
            "undoAvailable": self.undo_available,
        }


def read_answer(out: bytes, secrets: Iterable[str] = ()) -> Answer:
    """secrets: texts that it was told and must not tell others. Raises Nonsense."""
    try:
        status = Result.read(parse_json(out)).status
    except ShapeError as error:
        raise Nonsense(
            f"{dotted(complaint.location)}: {complaint.message}" for complaint in error.complaints
        ) from None
    except ValueError as error:
        raise Nonsense([f"its answer {error}"]) from None
    if status.status == SUCCEEDED and status.error:
        raise Nonsense(["status.error: is there, and status.status says that it succeeded"])
    observed = status.observed or {}
    if len(json.dumps(observed)) > _MOST_OBSERVED:
        raise Nonsense([f"status.observed: is more than {_MOST_OBSERVED >> 10} KiB"])
    return Answer(
        status.status,
        sanitize.line(status.message, secrets),
        sanitize.line(status.error, secrets),
        observed,
        status.undo_available,
    )
