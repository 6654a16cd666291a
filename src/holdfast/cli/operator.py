"""The operator's own connection: a plan that would cut it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dataclass import replace
from holdfast.engine.plan import Plan

if TYPE_CHECKING:  # most passes are not started over SSH
    from holdfast.runtime.load import Loaded


def guarded(plan: Plan, loaded: Loaded, *, allow: bool, trial: bool) -> Plan:
    """The plan, refused where it would cut the connection that the operator came in on."""
    if allow or plan.refusal or not plan.changes:
        return plan
    from holdfast.runtime import operators

    came_in = operators.operator(operators.ancestral())
    if came_in is None:
        return plan
    reason = operators.cut(plan, loaded.router, loaded.facts, loaded.root, came_in, trial=trial)
    return replace(plan, refusal=reason)
