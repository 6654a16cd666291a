"""DynamicConfigSource: lets a plugin contribute resources, for a bounded time."""

from __future__ import annotations

from holdfast.resources.dynamic.plugin import Plugin, Trigger, check_triggers
from holdfast.resources.resource import Kind, nothing_alone
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    listed,
    nested,
    optional,
    reference,
    required,
)

LONGEST_TTL_S = 30 * 86400.0


class MergePolicy(Spec):
    conflict: str = optional(
        choice("reject"),
        "a part that conflicts with the startup file or with an earlier part is rejected",
        default="reject",
    )


class DynamicConfigSource(Spec):
    plugin_ref: str = required(reference(Plugin), "whose parts are taken in")
    ttl: float = required(
        duration(1.0, LONGEST_TTL_S),
        "how long a part of it is in force at most, counted from when it was observed",
    )
    merge_policy: MergePolicy = optional(
        nested(MergePolicy), "what becomes of conflicts", default=MergePolicy(conflict="reject")
    )
    triggers: tuple[Trigger, ...] | None = optional(
        listed(nested(Trigger)), "when the plugin runs, besides what it says itself"
    )


KINDS = (
    Kind(
        DynamicConfigSource,
        "Binds a plugin to the effective config: what `Plugin/NAME` contributes is in force for"
        " `ttl` at most. A plugin that no DynamicConfigSource names contributes nothing.",
        (),
        "pluginRef: inventory\nttl: 5m\nmergePolicy: {conflict: reject}\n",
        nothing_alone,
        lambda resource: check_triggers(resource.spec.triggers or ()),
        effect="lets what its plugin contributes be in force",
        maskable=False,
        groups=("plugin",),
        cross_checks="dynamic.dynamic_checks",
        admits_parts=True,
    ),
)
