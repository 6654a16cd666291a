"""What speaks against an action, gate by gate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from holdfast.dataclass import dataclass
from holdfast.resources.dynamic import provider_action_policy
from holdfast.resources.dynamic.provider_action_policy import (
    DAYS,
    ExecutionWindow,
    ProviderActionPolicy,
)
from holdfast.resources.spec.values import Network
from holdfast.runtime.actions.plan import DRY_RUN, ActionPlan, addresses

_DAY_MINUTES = 24 * 60
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Objection:
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
) -> list[Objection]:
    """Everything that speaks against executing a plan now; approval is not looked at."""
    if policy is None:
        return [Objection("policy", "there is no ProviderActionPolicy")]
    if not policy.enabled:
        return [Objection("enabled", "ProviderActionPolicy: enabled is false")]
    return [*_allowed(plan, policy), *_ready(plan, policy, now, done_in_this_run)]


def _allowed(plan: ActionPlan, policy: ProviderActionPolicy) -> Iterator[Objection]:
    if plan.provider not in policy.allowed_providers:
        yield Objection("provider", f"allowedProviders does not have {plan.provider}")
    if plan.action not in policy.allowed_actions:
        yield Objection("action", f"allowedActions does not have {plan.action}")
    refs = policy.allowed_provider_refs
    if refs is not None and plan.provider_ref not in refs:
        named = plan.provider_ref or "an action without providerRef"
        yield Objection("providerRef", f"allowedProviderRefs does not have {named}")
    if policy.allowed_cidrs is None:
        return
    yield from _outside(plan, policy.allowed_cidrs)


def _outside(plan: ActionPlan, allowed: Sequence[Network]) -> Iterator[Objection]:
    """Each once, and not more of them than somebody reads."""
    said: dict[str, None] = {}
    for named in addresses(plan):
        if named.network is None:
            said[f"allowedCIDRs cannot be held against {named.path}: write the addresses out"] = (
                None
            )
        elif not any(_within(named.network, other) for other in allowed):
            said[f"allowedCIDRs does not cover {named.network} ({named.path})"] = None
        if len(said) == _MOST_SHOWN:
            break
    yield from (Objection("cidr", why) for why in said)


def _within(network: Network, other: Network) -> bool:
    return (
        network.version == other.version
        and int(other.network_address) <= int(network.network_address)
        and int(network.broadcast_address) <= int(other.broadcast_address)
    )


def _ready(
    plan: ActionPlan, policy: ProviderActionPolicy, now: float, done: int
) -> Iterator[Objection]:
    if plan.mode == DRY_RUN:
        yield Objection("mode", f"the plan says mode: {DRY_RUN}", dry_run_may=True)
    if policy.dry_run_only:
        yield Objection("dryRunOnly", "ProviderActionPolicy: dryRunOnly is true", dry_run_may=True)
    most = policy.max_actions_per_run
    if done >= most:
        why = f"maxActionsPerRun is {most}"
        # With 0 there is no later run that has room for it.
        yield Objection("maxActionsPerRun", why, passing=most > 0, dry_run_may=True)
    window = policy.execution_window
    if window is not None and not is_open(window, now):
        why = f"the execution window is closed ({shown(window)})"
        yield Objection("executionWindow", why, passing=True, dry_run_may=True)


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
