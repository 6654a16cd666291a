"""Which candidate of a default route policy is taken, as facts come and go."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv6Address
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds.route import in_table
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Facts, Lease, Verdict
from holdfast.resources.questions import lookups
from holdfast.resources.router import Router
from holdfast.resources.site import site_of
from holdfast.resources.uplinks import default_route_policy
from holdfast.resources.uplinks.active import active_candidates
from holdfast.resources.uplinks.default_route_policy import IPv4DefaultRoutePolicy
from tests.resources.routers import load

LEASE = Lease((IPv4Interface("192.0.2.9/24"),), IPv4Address("192.0.2.1"))
NO_GATEWAY = Lease((IPv4Interface("192.0.2.9/24"),))
DOWN = Verdict(False, "no answer")
BOTH_DOWN = {"tunnel": DOWN, "wan": DOWN}


def router(folder: Path) -> Router:
    """A tunnel first, then PPPoE, then DHCP."""

    def candidate(number: int, link: str, **more: Any) -> dict[str, Any]:
        return {
            "name": link, "interface": link, "priority": number * 10, "table": 100 + number,
            "mark": 100 + number, **more,
        }  # fmt: skip

    return load(
        folder,
        ("Interface", "wan", {"ifname": "eth0"}),
        ("DSLiteTunnel", "tunnel", {
            "interface": "wan", "aftrFQDN": "gw.example.net", "localAddressSource": "static",
            "localAddress": "2001:db8::2",
        }),
        ("PPPoEInterface", "ppp", {
            "interface": "wan", "ifname": "ppp0", "username": "u", "password": "p"
        }),
        ("HealthCheck", "tunnel", {"target": "192.0.2.1"}),
        ("HealthCheck", "wan", {"target": "192.0.2.1"}),
        ("IPv4DefaultRoutePolicy", "default", {
            "candidates": [
                candidate(1, "tunnel", healthCheck="tunnel"),
                candidate(2, "ppp"),
                candidate(3, "wan", gatewaySource="dhcp4", healthCheck="wan"),
            ]
        }),
    )  # fmt: skip


def order(made: Router, facts: Facts) -> list[str]:
    site = site_of(made.resources, facts)
    policy = site.get(IPv4DefaultRoutePolicy, "default")
    return [
        f"{choice.shown} {choice.state.name}"
        for choice in default_route_policy.choices(policy, site)
    ]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(), ["tunnel UNKNOWN", "ppp UNKNOWN", "wan UNKNOWN"]),
        (Facts(leases4={"eth0": LEASE}), ["wan READY", "tunnel UNKNOWN", "ppp UNKNOWN"]),
        (
            Facts(leases4={"eth0": LEASE}, sessions={"ppp0": LEASE}),
            ["ppp READY", "wan READY", "tunnel UNKNOWN"],
        ),
        (
            Facts(leases4={"eth0": GONE}, sessions={"ppp0": GONE}),
            ["tunnel UNKNOWN", "ppp DOWN", "wan DOWN"],
        ),
        (Facts(leases4={"eth0": NO_GATEWAY}), ["tunnel UNKNOWN", "ppp UNKNOWN", "wan DOWN"]),
        (
            Facts(verdicts={"tunnel": DOWN}, leases4={"eth0": GONE}, sessions={"ppp0": GONE}),
            ["tunnel DOWN", "ppp DOWN", "wan DOWN"],
        ),
        (  # none is healthy, and the last one has a gateway
            Facts(verdicts=BOTH_DOWN, leases4={"eth0": LEASE}, sessions={"ppp0": GONE}),
            ["wan DOWN", "tunnel DOWN", "ppp DOWN"],
        ),
        (  # one that may still lead somewhere comes before one that does not
            Facts(verdicts=BOTH_DOWN, leases4={"eth0": GONE}, sessions={"ppp0": GONE}),
            ["tunnel DOWN", "ppp DOWN", "wan DOWN"],
        ),
    ],
)
def test_order(facts: Facts, expected: list[str], tmp_path: Path) -> None:
    assert order(router(tmp_path), facts) == expected


def test_a_tunnel_whose_far_end_is_known_is_ready(tmp_path: Path) -> None:
    made = router(tmp_path)
    answers = dict.fromkeys(lookups(made), (IPv6Address("2001:db8::1"),))
    assert order(made, Facts(answers=answers))[0] == "tunnel READY"
    down = Facts(answers=answers, verdicts={"tunnel": DOWN})
    assert order(made, down) == ["ppp UNKNOWN", "wan UNKNOWN", "tunnel DOWN"]


def test_only_what_lacks_a_fact_waits(tmp_path: Path) -> None:
    """Each candidate that could be used has its route; the policy is never held up as a whole."""
    made = router(tmp_path)
    desired = compile_router(made, Facts(sessions={"ppp0": LEASE}))
    tables = {
        intent.batch.template.table for intent in desired.intents if isinstance(intent, BulkIntent)
    }
    assert tables == {101, 102}
    waiting = [one for one in desired.waiting if one.owner == "IPv4DefaultRoutePolicy/default"]
    assert [(one.reason, one.keeps, one.groups) for one in waiting] == [
        ("candidate wan: waits for a DHCP lease on eth0", True, frozenset({in_table(103)}))
    ]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            Facts(),
            "tunnel: no candidate is known to work, and it may (tunnel: DSLiteTunnel/tunnel",
        ),
        (
            Facts(leases4={"eth0": LEASE}, verdicts={"tunnel": DOWN}),
            "wan: it is the first that works (tunnel: HealthCheck/tunnel says: no answer; ppp: "
            "waits for the PPP session on ppp0)",
        ),
        (
            Facts(verdicts={"tunnel": DOWN}, leases4={"eth0": GONE}, sessions={"ppp0": GONE}),
            "tunnel: no candidate is healthy, so it is kept as the last resort (tunnel: "
            "HealthCheck/tunnel says: no answer; ppp: ",
        ),
        (
            Facts(verdicts=BOTH_DOWN, leases4={"eth0": LEASE}, sessions={"ppp0": GONE}),
            "wan: no candidate is healthy, so it is kept as the last resort (tunnel: ",
        ),
    ],
)
def test_why(facts: Facts, expected: str, tmp_path: Path) -> None:
    (found,) = active_candidates(router(tmp_path).resources, facts)
    assert f"{found.candidate}: {found.why}".startswith(expected)
    assert (found.policy, found.candidates) == (
        "IPv4DefaultRoutePolicy/default",
        ("tunnel", "ppp", "wan"),
    )


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({}, "and HealthCheck/tunnel has not come to a verdict yet"),
        (
            {"tunnel": Verdict(True, "answered twice")},
            "and HealthCheck/tunnel says: answered twice",
        ),
    ],
)
def test_the_first_is_told_of_with_its_check(
    verdicts: dict[str, Verdict], expected: str, tmp_path: Path
) -> None:
    made = router(tmp_path)
    answers = dict.fromkeys(lookups(made), (IPv6Address("2001:db8::1"),))
    (found,) = active_candidates(made.resources, Facts(answers=answers, verdicts=verdicts))
    assert found.why == f"it is the first by priority, {expected}"


def test_none_that_leads_anywhere(tmp_path: Path) -> None:
    """Of candidates without any gateway nobody says that one is kept as a last resort."""
    made = load(
        tmp_path,
        ("Interface", "wan", {"ifname": "eth0"}),
        ("Interface", "lte", {"ifname": "eth1"}),
        ("IPv4DefaultRoutePolicy", "default", {
            "candidates": [
                {"interface": name, "gatewaySource": "dhcp4", "priority": number,
                 "table": number, "mark": number}
                for name, number in (("wan", 10), ("lte", 20))
            ]
        }),
    )  # fmt: skip
    facts = Facts(leases4={"eth0": GONE, "eth1": GONE})
    told = "wan: the DHCP lease on eth0 is over; lte: the DHCP lease on eth1 is over"
    (found,) = active_candidates(made.resources, facts)
    assert (found.candidate, found.why) == (
        "wan",
        f"no candidate leads anywhere, and it is the first by priority ({told})",
    )
    reasons = [one.reason for one in compile_router(made, facts).waiting]
    assert f"no candidate leads anywhere ({told})" in reasons
