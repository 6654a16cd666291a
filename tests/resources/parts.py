"""Parts for tests, with as little writing as possible."""

from __future__ import annotations

from typing import Any

from holdfast.config.part import Directive, Part, Target
from holdfast.resources import registry

NOW = 1_000_000.0


def raw(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": registry.api_versions(kind)[0],
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def admitting(source: str = "Owner/ci", **more: Any) -> tuple[str, str, dict[str, Any]]:
    """A DynamicConfigSource by which a source may declare all that any other may. more: other
    fields of its spec."""
    allow = {
        "kinds": [name for name in registry.names() if registry.kind(name).open_to_others],
        "names": ["*"],
        "maxResources": 1_000_000,
        "prefixes": ["0.0.0.0/0", "::/0"],
        "interfaces": ["*"],
        "peers": ["0.0.0.0/0", "::/0"],
        "autonomousSystems": ["1-4294967295"],
        "mayConfigureInstance": True,
    }
    spec = {"source": source, "allow": allow} | more
    return "DynamicConfigSource", source.replace("/", "-").lower(), spec


def mask(kind: str, name: str, reason: str = "", version: str = "") -> Directive:
    return Directive("mask", Target(version or registry.api_versions(kind)[0], kind, name), reason)


def part(
    source: str,
    *resources: dict[str, Any],
    masks: tuple[Directive, ...] = (),
    generation: int = 1,
    lasts: float | None = 300.0,
    observed: float = NOW,
) -> Part:
    end = None if lasts is None else observed + lasts
    return Part(source, generation, observed, end, resources, masks)
