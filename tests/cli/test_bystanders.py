"""What others would lose with an artifact of ours: told by the plan, and left alone."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

PRESENT = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 7}, adminUp: true}")
ABSENT = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 7}, state: absent}")
OTHER = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 8}, adminUp: true}")
LOST = "would also remove address 192.0.2.9/24 dev vx0"


@pytest.fixture
def built_on(holdfast: Holdfast, netns: Namespace) -> Holdfast:
    holdfast.declare(PRESENT)
    holdfast.ok("apply", "router.yaml", "--yes")
    netns.ip("addr add 192.0.2.9/24 dev vx0")
    return holdfast


def _claim(holdfast: Holdfast) -> tuple[str, str]:
    (claim,) = holdfast.ok("ledger", "show", "-o", "json").json["claims"]
    return claim["artifact"]["name"], claim["state"]


@pytest.mark.parametrize("declared", [ABSENT, OTHER])
def test_the_plan_says_who_would_lose_what_and_plans_nothing(
    built_on: Holdfast, netns: Namespace, declared: tuple[str, str, str]
) -> None:
    built_on.declare(declared)
    plan = built_on.ok("plan", "router.yaml", "-o", "json").json
    (held,) = plan["blocked"]
    assert LOST in held["reason"]
    assert [op["action"] for op in plan["operations"]] == []
    assert LOST in built_on.ok("plan", "router.yaml").out
    for _ in range(2):
        done = built_on.run("apply", "router.yaml", "--yes")
        assert done.code == 1
        assert LOST in done.out + done.err
        assert _claim(built_on) == ("vx0", "owned")
    assert netns.ip_json("addr show vx0")[0]["addr_info"][0]["local"] == "192.0.2.9"


@pytest.mark.parametrize(("declared", "left"), [(ABSENT, []), (OTHER, [8])])
def test_it_goes_once_nobody_depends_on_it(
    built_on: Holdfast, netns: Namespace, declared: tuple[str, str, str], left: list[int]
) -> None:
    built_on.declare(declared)
    assert built_on.run("apply", "router.yaml", "--yes").code == 1
    netns.ip("addr del 192.0.2.9/24 dev vx0")
    built_on.ok("apply", "router.yaml", "--yes")
    there = netns.ip_json("-d link show type vxlan")
    assert [one["linkinfo"]["info_data"]["id"] for one in there] == left


def test_an_address_that_others_routes_hang_on_is_not_replaced(
    holdfast: Holdfast, wan: Namespace
) -> None:
    wan.run("sysctl", "-qw", "net.ipv6.conf.wan0.accept_dad=0")
    interface = ("Interface", "wan", "{ifname: wan0, adminUp: true}")
    for length in (64, 80):
        spec = f"{{interface: wan, address: fd00::1/{length}}}"
        holdfast.declare(interface, ("IPv6StaticAddress", "a", spec))
        if length == 64:
            holdfast.ok("apply", "router.yaml", "--yes")
            wan.ip("-6 route add fd09::/64 dev wan0 src fd00::1 proto static")
    (held,) = holdfast.ok("plan", "router.yaml", "-o", "json").json["blocked"]
    assert "would also remove the preferred source of route fd09::/64" in held["reason"]
    wan.ip("-6 route del fd09::/64")
    planned = holdfast.ok("plan", "router.yaml", "-o", "json").json["operations"]
    assert {op["artifact"]["kind"]: op["action"] for op in planned} == {
        "link": "keep",
        "address": "replace",
    }
