"""Which candidate of each default route policy is taken, and why that one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.dataclass import dataclass
from holdfast.resources import registry
from holdfast.resources.facts import Facts
from holdfast.resources.resource import Resource, id_of
from holdfast.resources.site import site_of
from holdfast.resources.uplinks.uplink import State

if TYPE_CHECKING:  # a kind is loaded where one is declared
    from holdfast.resources.uplinks.default_route_policy import Choice


@dataclass(frozen=True, slots=True)
class Active:
    policy: str  # "IPv4DefaultRoutePolicy/default"
    candidate: str
    why: str
    candidates: tuple[str, ...]  # all of them, as declared


def active_candidates(resources: Sequence[Resource], facts: Facts) -> tuple[Active, ...]:
    found = registry.having(resources, lambda kind: kind.uplinks)
    if not found:
        return ()
    from holdfast.resources.uplinks import default_route_policy

    kinds = tuple(default_route_policy.POLICIES.values())
    policies = [resource for resource in found if isinstance(resource.spec, kinds)]
    site = site_of(resources, facts)
    return tuple(
        _active(policy, default_route_policy.choices(policy, site), facts) for policy in policies
    )


def _active(policy: Resource, ordered: Sequence[Choice], facts: Facts) -> Active:
    taken = ordered[0]
    before = [
        choice for choice in ordered[1:] if choice.candidate.priority < taken.candidate.priority
    ]
    match taken.state:
        case State.DOWN if taken.unchecked is State.DOWN:
            why = f"no candidate leads anywhere, and it is the first by priority ({_told(ordered)})"
        case State.DOWN:
            why = f"no candidate is healthy, so it is kept as the last resort ({_told(ordered)})"
        case State.UNKNOWN:
            why = f"no candidate is known to work, and it may ({_told(ordered)})"
        case _ if before:
            why = f"it is the first that works ({_told(before)})"
        case _:
            why = f"it is the first by priority{_verdict(taken, facts)}"
    declared = sorted(ordered, key=lambda choice: policy.spec.candidates.index(choice.candidate))
    return Active(policy.id, taken.shown, why, tuple(choice.shown for choice in declared))


def _told(choices: Iterable[Choice]) -> str:
    by_priority = sorted(choices, key=lambda choice: choice.candidate.priority)
    return "; ".join(f"{choice.shown}: {choice.why}" for choice in by_priority)


def _verdict(taken: Choice, facts: Facts) -> str:
    check = taken.candidate.health_check
    if check is None:
        return ""
    from holdfast.resources.uplinks.health_check import HealthCheck  # one is declared

    verdict = facts.verdicts.get(check)
    said = "has not come to a verdict yet" if verdict is None else f"says: {verdict.reason}"
    return f", and {id_of(HealthCheck, check)} {said}"
