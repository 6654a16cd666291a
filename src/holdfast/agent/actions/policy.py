"""What speaks against an action, gate by gate. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from holdfast.agent.actions.plan import DRY_RUN, ActionPlan, addresses
from holdfast.dataclass import dataclass
from holdfast.resources.dynamic import provider_action_policy
from holdfast.resources.dynamic.provider_action_policy import (
    DAYS,
    ExecutionWindow,
    ProviderActionPolicy,
)
from holdfast.resources.values import Network

_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Against:
    gate: str
    why: str
    # It goes by itself: a window opens, the next run counts anew. All others take somebody.
    passing: bool = False
    # Only the doing is kept back; an executor may still be asked what it would do.
    dry_run_may: bool = False

    def __str__(self) -> str:
        return self.why


def judge(
    plan: ActionPlan, policy: ProviderActionPolicy | None, now: float, done_in_this_run: int
) -> list[Against]:
    """Everything that speaks against executing a plan now; approval is not looked at."""
    if policy is None:
        return [Against("policy", "there is no ProviderActionPolicy")]
    if not policy.enabled:
        return [Against("enabled", "ProviderActionPolicy: enabled is false")]
    return [*_allowed(plan, policy), *_ready(plan, policy, now, done_in_this_run)]


def _allowed(plan: ActionPlan, policy: ProviderActionPolicy) -> Iterator[Against]:
    if plan.provider not in policy.allowed_providers:
        yield Against("provider", f"allowedProviders does not have {plan.provider}")
    if plan.action not in policy.allowed_actions:
        yield Against("action", f"allowedActions does not have {plan.action}")
    refs = policy.allowed_provider_refs
    if refs is not None and plan.provider_ref not in refs:
        named = plan.provider_ref or "an action without providerRef"
        yield Against("providerRef", f"allowedProviderRefs does not have {named}")
    if policy.allowed_cidrs is None:
        return
    for path, network in addresses(plan):
        if not any(_within(network, one) for one in policy.allowed_cidrs):
            yield Against("cidr", f"allowedCIDRs does not cover {network} ({path})")


def _within(network: Network, other: Network) -> bool:
    return (
        network.version == other.version
        and int(other.network_address) <= int(network.network_address)
        and int(network.broadcast_address) <= int(other.broadcast_address)
    )


def _ready(
    plan: ActionPlan, policy: ProviderActionPolicy, now: float, done: int
) -> Iterator[Against]:
    if plan.mode == DRY_RUN:
        yield Against("mode", f"the plan says mode: {DRY_RUN}", dry_run_may=True)
    if policy.dry_run_only:
        yield Against("dryRunOnly", "ProviderActionPolicy: dryRunOnly is true", dry_run_may=True)
    most = policy.max_actions_per_run
    if done >= most:
        why = f"maxActionsPerRun is {most}"
        # With 0 there is no later run that has room for it.
        yield Against("maxActionsPerRun", why, passing=most > 0, dry_run_may=True)
    window = policy.execution_window
    if window is not None and not is_open(window, now):
        why = f"the execution window is closed ({shown(window)})"
        yield Against("executionWindow", why, passing=True, dry_run_may=True)


def is_open(window: ExecutionWindow, now: float) -> bool:
    """A window belongs to the day it opens on: one of Friday from 22:00 to 04:00 is open in the
    small hours of Saturday, and not in those of Friday."""
    local = datetime.fromtimestamp(now, _zone(window))
    minute = local.hour * 60 + local.minute
    opens, closes = window.opens or 0, window.closes or 0
    if opens < closes:
        return opens <= minute < closes and _on(window, local)
    if minute >= opens:
        return _on(window, local)
    return minute < closes and _on(window, local - timedelta(days=1))


def shown(window: ExecutionWindow) -> str:
    opens, closes = window.opens or 0, window.closes or _DAY_MINUTES
    days = ", ".join(window.days) if window.days else "every day"
    return f"{days} {_clock(opens)} to {_clock(closes)} {window.time_zone}"


def _on(window: ExecutionWindow, day: datetime) -> bool:
    return window.days is None or DAYS[day.weekday()] in window.days


def _zone(window: ExecutionWindow) -> tzinfo:
    name = window.time_zone
    return UTC if name == provider_action_policy.UTC else ZoneInfo(name)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
