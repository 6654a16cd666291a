"""Plugin: a program that observes, and proposes what it would add or mask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.engine.event_kinds import EVENT_KINDS
from holdfast.resources.dynamic import dynamic_target
from holdfast.resources.dynamic.dynamic_target import TargetSpec
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.nearest import nearest
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    choice,
    listed,
    nested,
    optional,
    parsed,
    required,
)

EXECUTES = "execute.providerAction"
CAPABILITIES = (
    "observe.cloud",
    "observe.providerPrivateIPs",
    "propose.dynamicConfig",
    "propose.providerAction",
    EXECUTES,
)
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_DAY = 86400.0


def _parse_executable(text: str) -> str:
    if not text.startswith("/") or not text.isprintable() or "/../" in f"{text}/":
        raise ValueError(f"{text!r} is not an absolute path")
    return text


def _read_environment(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be a mapping of names to text")
    for name, content in value.items():
        if not re.fullmatch(_VARIABLE, name):
            raise ValueError(f"{name!r} cannot name a variable: letters, digits and _")
        if not isinstance(content, str):
            raise ValueError(f"{name} must be text; write it in quotes")
    return dict(value)


def _parse_topic(text: str) -> str:
    """One that no event has would never run anything."""
    if text not in EVENT_KINDS:
        hint = nearest(text, EVENT_KINDS) or f"; there are {', '.join(EVENT_KINDS)}"
        raise ValueError(f"there are no events of the kind {text!r}{hint}")
    return text


_ENVIRONMENT = Shape(
    _read_environment,
    {"type": "object", "additionalProperties": {"type": "string"}},
    "mapping of names to text",
    lines=True,
)


class Trigger(Spec):
    type: str = required(choice("interval", "event"), "what it waits for")
    every: float | None = optional(duration(1.0, _DAY), "for `type: interval`")
    topic: str | None = optional(
        parsed(_parse_topic, "kind of an event", {"enum": list(EVENT_KINDS)}), "for `type: event`"
    )


class Context(Spec):
    resources: tuple[TargetSpec, ...] | None = optional(
        listed(nested(TargetSpec)), "what it is shown of the effective config, without secrets"
    )


class Plugin(Spec):
    executable: str = required(parsed(_parse_executable, "absolute path"), "the program")
    timeout: float = optional(duration(0.1, 600.0), "until it is ended", default=10.0)
    env: dict[str, str] | None = optional(
        _ENVIRONMENT, "all it gets besides PATH; the values are never shown", secret=True
    )
    capabilities: tuple[str, ...] | None = optional(
        listed(choice(*CAPABILITIES)), "what it may do; nothing without"
    )
    triggers: tuple[Trigger, ...] | None = optional(
        listed(nested(Trigger)), "when it runs by itself"
    )
    context: Context | None = optional(nested(Context), "what it is told; nothing without")


def check_triggers(triggers: Iterable[Trigger]) -> Iterator[Fault]:
    for index, trigger in enumerate(triggers):
        needed, other = ("every", "topic") if trigger.type == "interval" else ("topic", "every")
        at = ("triggers", index)
        if getattr(trigger, needed) is None:
            yield Fault((*at, needed), f"is missing; `type: {trigger.type}` needs it")
        if getattr(trigger, other) is not None:
            yield Fault((*at, other), f"has no meaning for `type: {trigger.type}`")


def check(resource: Resource) -> Iterator[Fault]:
    spec: Plugin = resource.spec
    yield from check_triggers(spec.triggers or ())
    shown = spec.context.resources if spec.context is not None else None
    for index, target in enumerate(shown or ()):
        field, wrong = dynamic_target.trouble(target.target)
        if wrong:
            yield Fault(("context", "resources", index, field), wrong)


KINDS = (
    Kind(
        Plugin,
        "A program of yours that is asked now and then what it would add to the configuration or"
        " mask of it, and answers in JSON.",
        (),
        """\
executable: /usr/local/lib/holdfast/inventory
timeout: 10s
capabilities: [propose.dynamicConfig]
triggers:
  - {type: interval, every: 1m}
""",
        nothing_alone,
        check,
        effect="`holdfast serve` runs it; what it proposes goes through a DynamicConfigSource",
        maskable=False,
        groups=("plugin",),
        program=lambda resource: ("executable", resource.spec.executable),
        proposes_parts=True,
    ),
)
