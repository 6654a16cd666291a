"""The plugins that are declared, and how each of them did: what `holdfast plugin list` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.resources.dynamic.dynamic_config_source import DynamicConfigSource
from holdfast.resources.dynamic.plugin import Plugin, Trigger
from holdfast.resources.resource import Resource
from holdfast.resources.spec.durations import format_duration
from holdfast.resources.spec.moments import format_moment
from holdfast.state.plugin_runs import PluginRun


def document(startup: Sequence[Resource], runs: Iterable[PluginRun]) -> dict[str, Any]:
    """runs: the newest first."""
    last: dict[str, PluginRun] = {}
    for run in runs:
        last.setdefault(run.plugin, run)
    sources = {
        resource.spec.plugin_ref: resource
        for resource in startup
        if isinstance(resource.spec, DynamicConfigSource)
    }
    return {
        "format_version": "1.0",
        "plugins": [
            _entry(resource, sources.get(resource.name), last.get(resource.name))
            for resource in startup
            if isinstance(resource.spec, Plugin)
        ],
    }


def _entry(plugin: Resource, source: Resource | None, run: PluginRun | None) -> dict[str, Any]:
    bound = source.spec.triggers or () if source is not None else ()
    return {
        "name": plugin.name,
        "place": plugin.place,
        "executable": plugin.spec.executable,
        "capabilities": list(plugin.spec.capabilities or ()),
        "triggers": [_trigger(trigger) for trigger in (*(plugin.spec.triggers or ()), *bound)],
        "ttl": format_duration(source.spec.ttl) if source is not None else None,
        "lastRun": run
        and {
            "trigger": run.trigger,
            "started": format_moment(run.started),
            "durationMs": round(run.seconds * 1000),
            "outcome": run.outcome,
            "generation": run.generation,
            "reason": run.reason,
            "stderr": run.stderr,
        },
    }


def _trigger(trigger: Trigger) -> str:
    if trigger.type == "interval":
        return f"every {format_duration(trigger.every or 0.0)}"
    return f"on {trigger.topic}"
