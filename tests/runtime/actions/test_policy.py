"""Every gate by itself, and the window at its edges."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.resources.dynamic.provider_action_policy import ExecutionWindow, ProviderActionPolicy
from holdfast.runtime.actions.plan import read
from holdfast.runtime.actions.policy import is_open, judge, shown
from tests.runtime.actions.plans import NOW, plan, policy


def gates(policy: ProviderActionPolicy | None, done: int = 0, **changes: Any) -> list[str]:
    return [one.gate for one in judge(read(plan(**changes)), policy, NOW, done)]


def test_an_open_policy_lets_it_through() -> None:
    assert gates(policy()) == []


def test_nothing_is_allowed_by_default() -> None:
    assert gates(None) == ["policy"]
    assert gates(ProviderActionPolicy.read({})) == ["enabled"]
    by_default = gates(ProviderActionPolicy.read({"enabled": True}))
    assert by_default == ["provider", "action", "dryRunOnly", "maxActionsPerRun"]


@pytest.mark.parametrize(
    ("change", "gate", "passing"),
    [
        ({"enabled": False}, "enabled", False),
        ({"dryRunOnly": True}, "dryRunOnly", False),
        ({"dryRunOnly": None}, "dryRunOnly", False),
        ({"allowedProviders": ["gcp", "oci"]}, "provider", False),
        ({"allowedProviders": []}, "provider", False),
        ({"allowedActions": ["unassign-secondary-ip"]}, "action", False),
        ({"allowedProviderRefs": ["prod"]}, "providerRef", False),
        ({"allowedCIDRs": ["10.0.2.0/24", "::/0"]}, "cidr", False),
        ({"maxActionsPerRun": 0}, "maxActionsPerRun", False),
        ({"executionWindow": {"from": "16:01", "to": "16:00"}}, "executionWindow", True),
    ],
)
def test_each_gate_alone(change: dict[str, Any], gate: str, passing: bool) -> None:
    found = judge(read(plan()), policy(**change), NOW, 0)
    assert [(one.gate, one.passing) for one in found] == [(gate, passing)]


def test_the_account_is_compared() -> None:
    assert gates(policy(allowedProviderRefs=["prod"]), providerRef="prod") == []
    assert gates(policy(allowedProviderRefs=["prod"]), providerRef="lab") == ["providerRef"]


def test_so_many_in_a_run() -> None:
    assert gates(policy(maxActionsPerRun=2), done=1) == []
    found = judge(read(plan()), policy(maxActionsPerRun=2), NOW, 2)
    assert [(one.gate, one.passing) for one in found] == [("maxActionsPerRun", True)]


def test_a_plan_that_is_for_dry_runs_is_not_executed() -> None:
    found = judge(read(plan(mode="dry-run")), policy(), NOW, 0)
    assert [(one.gate, one.dry_run_may) for one in found] == [("mode", True)]


@pytest.mark.parametrize(
    ("address", "cidr", "inside"),
    [
        ("10.0.1.123", "10.0.1.0/24", True),
        ("10.0.1.123", "10.0.1.123", True),
        ("10.0.1.0/24", "10.0.1.0/24", True),
        ("10.0.0.0/16", "10.0.1.0/24", False),
        ("10.0.1.5/16", "10.0.1.0/24", False),
        ("0.0.0.0/0", "10.0.1.0/24", False),
        ("2001:db8::5", "2001:db8::/64", True),
        ("2001:db8:1::5", "2001:db8::/64", False),
        ("::ffff:10.0.1.123", "10.0.1.0/24", False),
        ("10.0.1.123", "::/0", False),
    ],
)
def test_addresses_lie_in_what_is_allowed(address: str, cidr: str, inside: bool) -> None:
    target = {"address": address, "nicRef": "eni-1"}
    assert gates(policy(allowedCIDRs=[cidr]), target=target) == ([] if inside else ["cidr"])


def test_no_other_word_leads_around_the_cidrs() -> None:
    only = policy(allowedCIDRs=["10.0.1.0/24"])
    assert gates(only, parameters={"destination": "192.0.2.0/24"}) == ["cidr"]
    undo = {"action": "unassign-secondary-ip", "parameters": {"give_to": ["192.0.2.1"]}}
    assert gates(only, undo=undo) == ["cidr"]


def at(written: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("window", "moment", "open_"),
    [
        # 2026-05-29 is a Friday.
        ({"from": "22:00", "to": "23:00"}, "2026-05-29T21:59:59", False),
        ({"from": "22:00", "to": "23:00"}, "2026-05-29T22:00:00", True),
        ({"from": "22:00", "to": "23:00"}, "2026-05-29T22:59:59", True),
        ({"from": "22:00", "to": "23:00"}, "2026-05-29T23:00:00", False),
        # Over midnight, of the day it opens on.
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-29T23:59:59", True),
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-30T00:00:00", True),
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-30T03:59:59", True),
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-30T04:00:00", False),
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-29T03:00:00", False),
        ({"days": ["fri"], "from": "22:00", "to": "04:00"}, "2026-05-30T22:00:00", False),
        ({"days": ["sun"], "from": "22:00", "to": "04:00"}, "2026-06-01T01:00:00", True),
        # To the end of the day, and from its beginning.
        ({"days": ["fri"], "from": "22:00"}, "2026-05-29T23:59:59", True),
        ({"days": ["fri"], "from": "22:00"}, "2026-05-30T00:00:00", False),
        ({"days": ["fri"], "to": "02:00"}, "2026-05-29T00:00:00", True),
        ({"days": ["fri"], "to": "02:00"}, "2026-05-29T02:00:00", False),
        # All day.
        ({"days": ["fri"]}, "2026-05-29T00:00:00", True),
        ({"days": ["fri"]}, "2026-05-29T23:59:59", True),
        ({"days": ["fri"]}, "2026-05-30T00:00:00", False),
        ({}, "2026-05-30T12:34:00", True),
    ],
)
def test_the_window(window: dict[str, Any], moment: str, open_: bool) -> None:
    assert is_open(ExecutionWindow.read(window), at(moment)) is open_


def test_the_window_is_that_of_its_zone() -> None:
    berlin = ExecutionWindow.read(
        {"days": ["fri"], "from": "22:00", "to": "02:00", "timeZone": "Europe/Berlin"}
    )
    # Two hours ahead of UTC in May, one in November.
    assert is_open(berlin, at("2026-05-29T20:00:00"))
    assert not is_open(berlin, at("2026-05-29T19:59:59"))
    assert is_open(berlin, at("2026-05-29T23:59:59"))
    assert not is_open(berlin, at("2026-05-30T00:00:00"))
    assert not is_open(berlin, at("2026-11-27T20:00:00"))
    assert is_open(berlin, at("2026-11-27T21:00:00"))
    assert shown(berlin) == "fri 22:00 to 02:00 Europe/Berlin"


def test_a_window_in_the_hour_that_comes_twice_is_open_twice() -> None:
    """On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00."""
    berlin = ExecutionWindow.read({"from": "02:00", "to": "03:00", "timeZone": "Europe/Berlin"})
    moments = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC).timestamp() for hour in range(4)]
    assert [is_open(berlin, moment) for moment in moments] == [True, True, False, False]


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ("22:00-04:00", {"from": "22:00", "to": "04:00"}),
        (" 09:30 - 17:00 ", {"from": "09:30", "to": "17:00"}),
        ("mon-wed 22:00-04:00", {"days": ["mon", "tue", "wed"], "from": "22:00", "to": "04:00"}),
        ("Sat,Sun 00:00-12:00 UTC", {"days": ["sat", "sun"], "from": "00:00", "to": "12:00"}),
        (
            "sat-mon,wed 01:00-02:00 Europe/Berlin",
            {
                "days": ["sat", "sun", "mon", "wed"],
                "from": "01:00",
                "to": "02:00",
                "timeZone": "Europe/Berlin",
            },
        ),
    ],
)
def test_a_window_in_one_line(written: str, fields: dict[str, Any]) -> None:
    read_so = ProviderActionPolicy.read({"executionWindow": written}).execution_window
    assert read_so == ExecutionWindow.read(fields)


@pytest.mark.parametrize("written", ["", "  "])
def test_no_window_in_one_line(written: str) -> None:
    assert ProviderActionPolicy.read({"executionWindow": written}).execution_window is None
