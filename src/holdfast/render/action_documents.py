"""Actions as documents: what `holdfast action` and the API show. Secrets are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.provider_action_policy import policy_of
from holdfast.resources.spec.moments import format_moment
from holdfast.runtime.actions import intake
from holdfast.runtime.actions.engine import Done
from holdfast.runtime.actions.gates import Gates
from holdfast.runtime.actions.plan import name_of
from holdfast.runtime.plugins.redaction import redacted
from holdfast.state.actions import PENDING, SUCCEEDED, Action
from holdfast.state.ledger import Ledger


def list_document(paths: Paths, effective: Effective, now: float) -> dict[str, Any]:
    """What waits, is under way or is proposed still, and what is kept from each; plans that cannot
    be taken in. Nothing is written: a proposal that is new shows as it will be taken in."""
    with Ledger.read(paths) as ledger:
        taken = intake.take_in(effective.active, ledger.actions(), now)
        gates = Gates.of(paths, effective, ledger, now)
    # What a source says need not be a key, nor hold as one.
    said = (plan.get("idempotencyKey") for part in effective.active for plan in part.action_plans)
    proposed = {key for key in said if isinstance(key, str)}
    shown = [
        action for action in taken.journal.values() if not action.decided or action.key in proposed
    ]
    return {
        "format_version": "1.0",
        "policy": _policy(effective),
        "actions": [_entry(action, gates) for action in shown],
        "rejected": [
            {"source": rejected.part.ref, "name": rejected.name, "reasons": list(rejected.reasons)}
            for rejected in taken.rejected
        ],
    }


def show_document(paths: Paths, effective: Effective, key: str, now: float) -> dict[str, Any]:
    """Raises Refused where there is no such action."""
    with Ledger.read(paths) as ledger:
        taken = intake.take_in(effective.active, ledger.actions(), now)
        gates = Gates.of(paths, effective, ledger, now)
        if key not in taken.journal:
            raise Refused(f"there is no action {key}; `holdfast action list` shows those there are")
        events = [event for event in ledger.events() if event.subject == intake.subject(key)]
    action = taken.journal[key]
    return {
        "format_version": "1.0",
        **_entry(action, gates),
        "plan": redacted(dict(action.plan)),
        "result": redacted(dict(action.result)),
        "events": [
            {"time": format_moment(event.time), "kind": event.kind, "message": event.message}
            for event in events
        ],
    }


def journal_document(paths: Paths) -> dict[str, Any]:
    """Everything that the journal holds, the last change first."""
    with Ledger.read(paths) as ledger:
        found = sorted(ledger.actions(), key=lambda action: action.changed, reverse=True)
    return {"format_version": "1.0", "actions": [_entry(action, None) for action in found]}


def approved_document(action: Action) -> dict[str, Any]:
    return {"format_version": "1.0", **_entry(action, None)}


def done_document(done: Iterable[Done], *, dry_run: bool) -> dict[str, Any]:
    """Of `execute` and `rollback`."""
    return {
        "format_version": "1.0",
        "dryRun": dry_run,
        "results": [
            {
                "key": one.action.key,
                "outcome": one.outcome,
                "reason": one.reason,
                "state": one.action.state,
                "answer": one.answer and redacted(one.answer.document()),
                **(_rehearsed(one) if dry_run else {}),
            }
            for one in done
        ],
    }


def _rehearsed(done: Done) -> dict[str, Any]:
    """What the executor would be asked for, and what keeps it from being asked now."""
    plan = redacted(dict(done.action.plan))
    told = ("provider", "action", "target", "parameters")
    return {
        "undoes": done.action.undoes or None,
        "asked": {name: plan[name] for name in told if name in plan},
        "held": [{"gate": each.gate, "why": each.why} for each in done.held],
    }


def _entry(action: Action, gates: Gates | None) -> dict[str, Any]:
    """gates: what is kept from it is told as well."""
    plan = action.plan
    target = plan.get("target")
    entry = {
        "key": action.key,
        "state": action.state,
        "name": name_of(plan),
        "provider": plan.get("provider"),
        "providerRef": plan.get("providerRef"),
        "action": plan.get("action"),
        "target": redacted(target) if isinstance(target, dict) else {},
        "risk": plan.get("riskLevel"),
        "source": f"{action.source}#{action.generation}",
        "undoes": action.undoes or None,
        "planDigest": action.digest,
        "approvedBy": action.approved_by or None,
        "attempts": action.epoch,
        "created": format_moment(action.created),
        "changed": format_moment(action.changed),
        "reason": action.reason,
        "undoAvailable": _undoable(action),
    }
    if gates is None:
        return entry
    held = gates.against(action, 0) if not action.decided else []
    needs = (
        [{"gate": "approval", "why": "it is not approved"}]
        if action.state == PENDING and gates.asks
        else []
    )
    return entry | {
        "held": needs + [{"gate": objection.gate, "why": objection.why} for objection in held]
    }


def _undoable(action: Action) -> bool:
    """Whether it was done, is not undone, and plan and executor know how."""
    done = action.state == SUCCEEDED and not action.undoes
    return done and "undo" in action.plan and action.result.get("undoAvailable") is True


def _policy(effective: Effective) -> dict[str, Any] | None:
    policy = policy_of(effective.startup.resources)
    if policy is None:
        return None
    return {
        "name": policy.name,
        "place": policy.place,
        "enabled": policy.spec.enabled,
        "dryRunOnly": policy.spec.dry_run_only,
        "requireApproval": policy.spec.require_approval,
    }
