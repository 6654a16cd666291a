"""What is said to a plugin and what it may answer: one JSON document each way. Pure.

An answer is untrusted. It is read whole or not at all, and only what the plugin's capabilities
let it propose is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.config.part import Directive, Part, Raw, Target
from holdfast.dataclass import dataclass
from holdfast.resources.dynamic.dynamic_config_part import DynamicConfigDirective
from holdfast.resources.dynamic.source_name import plugin_source
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.moments import format_moment, moment
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.shape import (
    Shape,
    ShapeError,
    Spec,
    choice,
    listed,
    nested,
    optional,
    required,
    text,
)
from holdfast.runtime.part_checks import SKEW_S
from holdfast.runtime.plugins.redaction import redacted

VERSION = "plugin.holdfast.dev/v1alpha1"
_VERSIONS = (VERSION, "plugin.routerd.net/v1alpha1")
REQUEST, RESULT = "PluginRequest", "PluginResult"
LONGEST_TTL_S = 30 * 86400.0
_MOST_EVENTS = 100
_MOST_ATTRIBUTES = 4 << 10
_MOST_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Trigger:
    type: str  # interval, event, manual
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything a plugin is told."""

    plugin: str
    trigger: Trigger
    now: float
    startup_hash: str
    generation: int  # of the effective config
    previous: int  # generation of its own last part, 0 for none
    events: Sequence[Mapping[str, Any]] = ()
    resources: Sequence[Raw] = ()  # those that its context names, as they are declared

    def document(self) -> bytes:
        said = {
            "apiVersion": VERSION,
            "kind": REQUEST,
            "metadata": {"name": self.plugin},
            "spec": {
                "trigger": {"type": self.trigger.type, "topic": self.trigger.topic},
                "startupConfigHash": self.startup_hash,
                "effectiveGeneration": self.generation,
                "previousDynamicGeneration": self.previous,
                "now": format_moment(self.now),
                "events": [redacted(dict(event)) for event in self.events],
                "context": {"resources": shown_resources(self.resources)},
            },
        }
        return json.dumps(said).encode()


def shown_resources(resources: Iterable[Raw]) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": resource.get("apiVersion"),
            "kind": resource.get("kind"),
            "name": (resource.get("metadata") or {}).get("name"),
            "spec": redacted(resource.get("spec")),
        }
        for resource in resources
    ]


class Nonsense(Exception):  # noqa: N818 (it is what the plugin said)
    """Why an answer is not taken; each reason with the path inside the answer."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    return value


OBJECT = Shape(_mapping, {"type": "object"}, "object", lines=True)


class Said(Spec):
    type: str = required(text("kind of event", longest=64), "kind")
    message: str = optional(text(least=0, longest=1024, unchecked=True), "for people", default="")
    attributes: Any = optional(OBJECT, "more", default=None)


class Status(Spec):
    observed_at: float | None = optional(moment(), "when it looked")
    ttl: float = required(duration(1.0, LONGEST_TTL_S), "how long this holds")
    resources: tuple[Any, ...] = optional(listed(OBJECT, least=0), "to add", default=())
    directives: tuple[DynamicConfigDirective, ...] = optional(
        listed(nested(DynamicConfigDirective), least=0), "to mask", default=()
    )
    action_plans: tuple[Any, ...] = optional(listed(OBJECT, least=0), "to propose", default=())
    events: tuple[Said, ...] = optional(listed(nested(Said), least=0), "to tell", default=())


class Result(Spec):
    api_version: str | None = optional(choice(*_VERSIONS), "version")
    kind: str = optional(choice(RESULT), "always PluginResult", default=RESULT)
    metadata: Any = optional(OBJECT, "not looked at", default=None)
    status: Status = required(nested(Status), "what it found")


@dataclass(frozen=True, slots=True)
class Answer:
    part: Part
    events: tuple[Said, ...]


def read_answer(
    out: bytes,
    plugin: str,
    *,
    generation: int,
    now: float,
    longest: float,
    capabilities: Iterable[str],
) -> Answer:
    """longest: seconds that a part of it may be in force. Raises Nonsense."""
    result = _parse(out)
    status = result.status
    reasons = [*_not_capable(status, frozenset(capabilities))]
    observed = now if status.observed_at is None else status.observed_at
    if observed > now + SKEW_S:
        ahead = f"{observed - now:.0f} s ahead of this machine's clock"
        reasons.append(f"status.observedAt: lies in the future, {ahead}")
    if observed + min(status.ttl, longest) <= now:
        reasons.append("status.observedAt: with its ttl it is over already")
    twice = _twice(status.resources)
    if twice is not None:
        reasons.append(f"status.resources: {twice.kind}/{twice.name} is there twice")
    if len(status.events) > _MOST_EVENTS:
        reasons.append(f"status.events: more than {_MOST_EVENTS}")
    for number, said in enumerate(status.events):
        if len(json.dumps(said.attributes)) > _MOST_ATTRIBUTES:
            most = f"more than {_MOST_ATTRIBUTES >> 10} KiB"
            reasons.append(f"status.events[{number}].attributes: {most}")
    if reasons:
        raise Nonsense(reasons)
    observed = min(observed, now)
    return Answer(
        Part(
            plugin_source(plugin),
            generation,
            observed,
            observed + min(status.ttl, longest),
            status.resources,
            tuple(
                Directive(directive.op, directive.target.target, directive.reason)
                for directive in status.directives
            ),
            status.action_plans,
        ),
        status.events,
    )


def parse_json(out: bytes, what: str = "its answer") -> Any:
    """What can be stored and shown, whatever stands in it. Raises Nonsense."""
    too_deep = Nonsense([f"{what} is not JSON to be taken: nested over {_MOST_DEPTH} levels deep"])
    if not out.strip():
        raise Nonsense([f"{what} is not JSON: it is empty"])
    try:
        data = json.loads(out, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
    except RecursionError:
        raise too_deep from None
    except ValueError as error:
        raise Nonsense([f"{what} is not JSON: {error}"]) from None
    if _deeper_than(data, _MOST_DEPTH):
        raise too_deep
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        raise Nonsense([f"{what} holds text that is not Unicode"]) from None
    return data


def _deeper_than(value: Any, levels: int) -> bool:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(below) and (levels == 0 or any(_deeper_than(one, levels - 1) for one in below))


def _parse(out: bytes) -> Result:
    data = parse_json(out)
    try:
        return Result.read(data)
    except ShapeError as error:
        raise Nonsense(
            f"{dotted(complaint.location)}: {complaint.message}" for complaint in error.complaints
        ) from None
    except ValueError as error:
        raise Nonsense([f"its answer {error}"]) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return found


def _not_capable(status: Status, capabilities: frozenset[str]) -> Iterable[str]:
    if (status.resources or status.directives) and "propose.dynamicConfig" not in capabilities:
        yield "it proposes resources or masks without the capability propose.dynamicConfig"
    if status.action_plans and "propose.providerAction" not in capabilities:
        yield "it proposes actions without the capability propose.providerAction"


def _twice(resources: Iterable[Any]) -> Target | None:
    seen: set[Target] = set()
    for resource in resources:
        name = (
            resource["metadata"].get("name") if isinstance(resource.get("metadata"), dict) else None
        )
        target = Target(str(resource.get("apiVersion")), str(resource.get("kind")), str(name))
        if target in seen:
            return target
        seen.add(target)
    return None
