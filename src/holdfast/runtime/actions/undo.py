"""The action that undoes another one. Pure."""

from __future__ import annotations

from holdfast.errors import Refused
from holdfast.runtime.actions.plan import UNDO, read, undoing
from holdfast.state.actions import APPROVED, SUCCEEDED, Action


def undo_of(action: Action, before: Action | None, by: str, now: float) -> Action:
    """before: the last time that it was to be undone. Refused where it cannot be."""
    key = action.key
    if action.state != SUCCEEDED or action.undoes:
        what = "an undo" if action.undoes else action.state
        raise Refused(f"{key} is {what}: only an action that succeeded is undone")
    plan = read(action.plan)
    if plan.undo is None:
        raise Refused(f"{key} cannot be undone: its plan does not say how")
    if action.result.get("undoAvailable") is not True:
        raise Refused(f"{key} cannot be undone: its executor said so when it was done")
    observed = action.result.get("observed")
    return Action(
        f"{key}{UNDO}",
        action.source,
        action.generation,
        APPROVED,
        now if before is None else before.created,
        now,
        undoing(action.plan, plan, observed if isinstance(observed, dict) else {}),
        0 if before is None else before.epoch,
        approved_by=by,
        undoes=key,
    )
