"""Plans and policies for tests, with as little writing as possible."""

from __future__ import annotations

from typing import Any

from holdfast.config.part import Part
from holdfast.resources.dynamic.provider_action_policy import ProviderActionPolicy

NOW = 1_764_000_000.0  # 2025-11-24T16:00:00Z, a Monday


def plan(key: str = "k1", **changes: Any) -> dict[str, Any]:
    """An assignment of 10.0.1.123; a change to None leaves the field out."""
    whole = {
        "name": "app",
        "provider": "aws",
        "action": "assign-secondary-ip",
        "target": {"address": "10.0.1.123", "nicRef": "eni-1"},
        "idempotencyKey": key,
        "undo": {"action": "unassign-secondary-ip"},
    } | changes
    return {name: value for name, value in whole.items() if value is not None}


def part(
    *plans: dict[str, Any],
    source: str = "Owner/ci",
    generation: int = 1,
    observed: float = NOW,
    lasts: float | None = 3600.0,
) -> Part:
    end = None if lasts is None else observed + lasts
    return Part(source, generation, observed, end, action_plans=plans)


def policy(**changes: Any) -> ProviderActionPolicy:
    """One that lets `plan` through."""
    open_ = {
        "enabled": True,
        "dryRunOnly": False,
        "requireApproval": False,
        "allowedProviders": ["aws"],
        "allowedActions": ["assign-secondary-ip", "unassign-secondary-ip"],
        "maxActionsPerRun": 2,
    } | changes
    return ProviderActionPolicy.read({k: v for k, v in open_.items() if v is not None})
