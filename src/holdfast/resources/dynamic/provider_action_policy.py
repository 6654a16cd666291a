"""ProviderActionPolicy: what may be done at providers of what parts propose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.repeats import repeated
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    choice,
    flag,
    integer,
    listed,
    optional,
    parsed,
    text,
)
from holdfast.resources.spec.values import Network, prefix

PROVIDERS = ("aws", "azure", "oci", "gcp")
ACTIONS = (
    "assign-secondary-ip",
    "unassign-secondary-ip",
    "assign-route-table-route",
    "unassign-route-table-route",
    "ensure-forwarding-enabled",
    "ensure-forwarding-disabled",
)
# As datetime counts them.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UTC = "UTC"
_MOST_PER_RUN = 1000


def _parse_time_of_day(written: str) -> int:
    """Minutes since midnight."""
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", written)
    if found is None:
        raise ValueError(f"{written!r} is not a time of the day, from 00:00 to 23:59")
    return int(found[1]) * 60 + int(found[2])


def _parse_zone(name: str) -> str:
    if name == UTC:
        return name
    from zoneinfo import ZoneInfo  # few name one

    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown, a folder, a path out of the database
        raise ValueError(
            f"{name!r} is no time zone that this machine knows, such as Europe/Berlin or UTC"
        ) from None
    return name


_TIME_OF_DAY = parsed(
    _parse_time_of_day, "time of the day, as 22:30", {"pattern": r"^([01]\d|2[0-3]):[0-5]\d$"}
)


class ExecutionWindow(Spec):
    days: tuple[str, ...] | None = optional(
        listed(choice(*DAYS)), "on which it opens; every day without"
    )
    opens: int | None = optional(_TIME_OF_DAY, "when it opens; midnight without", name="from")
    closes: int | None = optional(
        _TIME_OF_DAY,
        "when it closes, on the next day if that is not after `from`; midnight without",
        name="to",
    )
    time_zone: str = optional(
        parsed(_parse_zone, "UTC, or a name as Europe/Berlin"), "of these times", default=UTC
    )


_WINDOW = re.compile(
    r"(?:(?P<days>[a-z]+(?:[-,][a-z]+)*) +)?(?P<opens>[0-9:]+) *- *(?P<closes>[0-9:]+)"
    r"(?: +(?P<zone>\S+))?",
    re.IGNORECASE,
)


def _read_window(value: Any) -> ExecutionWindow | None:
    """As fields, or in the one line that people write; "" is none, as to routerd.net."""
    if not isinstance(value, str):
        return ExecutionWindow.read(value)
    if not value.strip():
        return None
    found = _WINDOW.fullmatch(value.strip())
    if found is None:
        raise ValueError(f"{value[:80]!r} is not a window, such as `mon-fri 22:00-04:00 UTC`")
    fields: dict[str, Any] = {"from": found["opens"], "to": found["closes"]}
    if found["days"]:
        fields["days"] = _days(found["days"].lower())
    if found["zone"]:
        fields["timeZone"] = found["zone"]
    return ExecutionWindow.read(fields)


def _days(written: str) -> list[str]:
    """`mon-fri`, `sat,sun`: what is no day stays, to be complained of."""
    found: list[str] = []
    for piece in written.split(","):
        first, _, last = piece.partition("-")
        if last and first in DAYS and last in DAYS:
            start, count = DAYS.index(first), (DAYS.index(last) - DAYS.index(first)) % len(DAYS)
            found += (DAYS[(start + step) % len(DAYS)] for step in range(count + 1))
        else:
            found.append(piece)
    return found


class ProviderActionPolicy(Spec):
    enabled: bool = optional(flag(), "whether anything is ever asked of an executor", default=False)
    dry_run_only: bool = optional(
        flag(), "let executors say what they would do, and never do it", default=True
    )
    require_approval: bool = optional(
        flag(), "wait for somebody to approve each action", default=True
    )
    allowed_providers: tuple[str, ...] = optional(
        listed(choice(*PROVIDERS), least=0), "none without", default=()
    )
    allowed_provider_refs: tuple[str, ...] | None = optional(
        listed(text("providerRef of a plan")), "any without"
    )
    allowed_actions: tuple[str, ...] = optional(
        listed(choice(*ACTIONS), least=0), "none without", default=()
    )
    allowed_cidrs: tuple[Network, ...] | None = optional(
        listed(prefix()),
        "every address that an action names must lie in one of them; any without",
        name="allowedCIDRs",
    )
    max_actions_per_run: int = optional(
        integer(0, _MOST_PER_RUN), "how many are executed at once; none without", default=0
    )
    allow_undo: bool = optional(flag(), "let what was done be undone", default=False)
    execution_window: ExecutionWindow | None = optional(
        Shape(
            _read_window,
            {"type": "string"},
            "fields below, or text such as `mon-fri 22:00-04:00 Europe/Berlin`",
            nested=ExecutionWindow,
        ),
        "when actions are executed; always without",
    )


def policy_of(startup: Iterable[Resource]) -> Resource | None:
    """The one there is; a startup file with two is invalid."""
    return next(
        (resource for resource in startup if isinstance(resource.spec, ProviderActionPolicy)), None
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: ProviderActionPolicy = resource.spec
    window = spec.execution_window
    if window is not None:
        opens, closes = window.opens or 0, window.closes or 0
        whole_day = window.opens is None and window.closes is None
        if opens == closes and not whole_day:
            message = "is the same as `from`; leave both out where it is open all day"
            yield Fault(("executionWindow", "to"), message)
        yield from repeated(window.days or (), ("executionWindow", "days"))
    for name, values in (
        ("allowedProviders", spec.allowed_providers),
        ("allowedProviderRefs", spec.allowed_provider_refs or ()),
        ("allowedActions", spec.allowed_actions),
        ("allowedCIDRs", spec.allowed_cidrs or ()),
    ):
        yield from repeated(values, (name,))
    yield from _idle(spec)


def _idle(spec: ProviderActionPolicy) -> Iterator[Fault]:
    """What is switched on and can do nothing is rarely meant."""
    if not spec.enabled:
        return
    for name, empty in (
        ("allowedProviders", not spec.allowed_providers),
        ("allowedActions", not spec.allowed_actions),
        ("maxActionsPerRun", not spec.dry_run_only and not spec.max_actions_per_run),
    ):
        if empty:
            message = "allows nothing, so that no action is ever executed"
            yield Fault((name,), message, warning=True)


KINDS = (
    Kind(
        ProviderActionPolicy,
        "Lets actions that parts propose be carried out at a provider, by a Plugin with the"
        " capability `execute.providerAction`. Without it, and by its defaults, none is. Only the"
        " startup file may hold one, and no more than one.",
        (),
        """\
enabled: true
dryRunOnly: false
requireApproval: true
allowedProviders: [aws]
allowedActions: [assign-secondary-ip, unassign-secondary-ip]
allowedCIDRs: [10.0.1.0/24]
maxActionsPerRun: 3
allowUndo: true
executionWindow: {days: [mon, tue, wed, thu, fri], from: "22:00", to: "04:00"}
""",
        nothing_alone,
        check,
        effect="decides which actions are executed",
        maskable=False,
        groups=("hybrid",),
        cross_checks="dynamic.provider_action_checks",
        only_one="there can be one policy for provider actions, and there is",
    ),
)
