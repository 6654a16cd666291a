"""For plugins written in Python: read the question, collect the answer, write it.

    from holdfast.plugin import Request, Result, run

    def look(request: Request) -> Result:
        result = Result(ttl="5m")
        result.add("net.holdfast.dev/v1alpha1", "IPv4Route", "lab",
                   {"destination": "203.0.113.0/24", "gateway": "192.0.2.1"})
        return result

    run(look)

An executor, which carries out what others propose, is asked otherwise:

    from holdfast.plugin import Action, Done, execute

    def carry_out(action: Action) -> Done:
        if action.dry_run:
            return Done("succeeded", f"would {action.action} {action.target['address']}")
        ...
        return Done("succeeded", "done", observed={"id": "10"}, undo_available=True)

    execute(carry_out)

Only the standard library is used, so the file may also be copied beside a plugin.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_VERSION = "plugin.holdfast.dev/v1alpha1"
_ACTION_VERSION = "provideraction.holdfast.dev/v1alpha1"


class Failed(Exception):  # noqa: N818 (a plugin says so of itself)
    """Raised by a plugin that cannot answer: what it contributed before stays until it expires.
    By an executor: nothing was done."""


@dataclass(frozen=True, slots=True)
class Request:
    name: str
    spec: Mapping[str, Any]

    @property
    def now(self) -> str:
        return str(self.spec.get("now", ""))

    @property
    def trigger(self) -> str:
        """interval, event or manual."""
        return str(self.spec.get("trigger", {}).get("type", ""))

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """What happened since the last run, for a plugin that events trigger."""
        return list(self.spec.get("events", ()))

    @property
    def resources(self) -> Sequence[Mapping[str, Any]]:
        """What the plugin's context lets it see, without secrets."""
        return list(self.spec.get("context", {}).get("resources", ()))


@dataclass(slots=True)
class Result:
    ttl: str  # how long this holds: "5m"
    observed_at: str = ""  # RFC 3339; without, the moment it is read
    resources: list[dict[str, Any]] = field(default_factory=list)
    directives: list[dict[str, Any]] = field(default_factory=list)
    action_plans: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def add(self, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """A resource for the effective config. Names must be new: a startup resource cannot be
        replaced, only masked."""
        self.resources.append(
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": name},
                "spec": dict(spec),
            }
        )

    def mask(self, api_version: str, kind: str, name: str, reason: str) -> None:
        """Keeps a startup resource out while this holds, where a DynamicOverridePolicy allows."""
        target = {"apiVersion": api_version, "kind": kind, "name": name}
        self.directives.append({"op": "mask", "target": target, "reason": reason})

    def propose(self, plan: Mapping[str, Any]) -> None:
        """An action of a provider, which somebody may approve."""
        self.action_plans.append(dict(plan))

    def tell(self, type: str, message: str, **attributes: Any) -> None:  # noqa: A002 (as written)
        self.events.append({"type": type, "message": message, "attributes": attributes})

    def document(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "ttl": self.ttl,
            "resources": self.resources,
            "directives": self.directives,
            "actionPlans": self.action_plans,
            "events": self.events,
        }
        if self.observed_at:
            status["observedAt"] = self.observed_at
        return {"apiVersion": _VERSION, "kind": "PluginResult", "status": status}


@dataclass(frozen=True, slots=True)
class Action:
    """What an executor is to do. It may be asked again with the same key, after a crash or when
    its answer was lost: what was done already must not be done twice then."""

    name: str
    spec: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.spec["idempotencyKey"])

    @property
    def action(self) -> str:
        return str(self.spec["action"])

    @property
    def provider(self) -> str:
        return str(self.spec["provider"])

    @property
    def provider_ref(self) -> str:
        return str(self.spec.get("providerRef", ""))

    @property
    def target(self) -> Mapping[str, str]:
        return dict(self.spec["target"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        return dict(self.spec.get("parameters", {}))

    @property
    def observed(self) -> Mapping[str, Any]:
        """In an undo: what was answered as `observed` when it was done."""
        return dict(self.parameters.get("observed", {}))

    @property
    def dry_run(self) -> bool:
        """Say what would be done, and do nothing: for everything that is not `execute`."""
        return self.spec.get("mode") != "execute"


@dataclass(frozen=True, slots=True)
class Done:
    status: str  # succeeded, failed, skipped
    message: str = ""
    observed: Mapping[str, Any] = field(default_factory=dict)  # kept, and handed back for an undo
    undo_available: bool = False

    def document(self) -> dict[str, Any]:
        failed = self.status == "failed"
        status = {
            "status": self.status,
            "message": "" if failed else self.message,
            "error": self.message if failed else "",
            "observed": dict(self.observed),
            "undoAvailable": self.undo_available,
        }
        return {"apiVersion": _ACTION_VERSION, "kind": "ExecuteActionResult", "status": status}


def run(look: Callable[[Request], Result]) -> None:
    """Answers one question and ends the process: 0, or 1 with the reason on standard error."""
    _answer(lambda name, spec: look(Request(name, spec)).document())


def execute(carry_out: Callable[[Action], Done]) -> None:
    """Carries out one action and ends the process. `Failed` says that nothing was done."""

    def answer(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return carry_out(Action(name, spec)).document()
        except Failed as error:
            return Done("failed", str(error)).document()

    _answer(answer)


def _answer(find: Callable[[str, Mapping[str, Any]], dict[str, Any]]) -> None:
    try:
        asked = json.load(sys.stdin)
        answer = find(str(asked["metadata"]["name"]), asked["spec"])
    except (Failed, ValueError, KeyError, OSError) as error:
        sys.exit(
            f"{type(error).__name__}: {error}" if not isinstance(error, Failed) else str(error)
        )
    json.dump(answer, sys.stdout)
    sys.stdout.flush()
    sys.exit(0)
