"""What others would lose by a change of ours: told by the plan, and left alone unless allowed."""

from __future__ import annotations

import pytest

from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.cli.served import daemon
from tests.namespace import Namespace

PRESENT = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 7}, adminUp: true}")
ABSENT = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 7}, state: absent}")
OTHER = ("Interface", "vx", "{ifname: vx0, type: vxlan, vxlan: {id: 8}, adminUp: true}")
REMEDY = "; if that is meant, say --allow-side-effects"
LOST = "others would lose address 192.0.2.9/24 dev vx0"


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
    assert "others would lose the preferred source of route fd09::/64" in held["reason"]
    wan.ip("-6 route del fd09::/64")
    planned = holdfast.ok("plan", "router.yaml", "-o", "json").json["operations"]
    assert {op["artifact"]["kind"]: op["action"] for op in planned} == {
        "link": "keep",
        "address": "replace",
    }


@pytest.mark.parametrize("promotes", [False, True])
@pytest.mark.parametrize("address", ["192.0.2.5/24", "192.0.2.5/25", "198.51.100.5/24"])
def test_an_address_that_gives_way_to_another(
    holdfast: Holdfast, wan: Namespace, address: str, *, promotes: bool
) -> None:
    """One in the same subnet is made as its secondary, and goes with it for a moment: others lose
    what the last address of a link takes along. So the plan says, and the apply does nothing that
    it did not say."""
    wan.run("sysctl", "-qw", f"net.ipv4.conf.wan0.promote_secondaries={promotes:d}")
    interface = ("Interface", "wan", "{ifname: wan0, adminUp: true}")
    for one in ("192.0.2.1/24", address):
        holdfast.declare(
            interface, ("IPv4StaticAddress", "a", f"{{interface: wan, address: {one}}}")
        )
        if one != address:
            holdfast.ok("apply", "router.yaml", "--yes")
            wan.ip("route add 10.9.0.0/16 via 192.0.2.9 dev wan0 proto static")
    kept = address == "192.0.2.5/24" and not promotes
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    (orphan,) = plan["orphans"]
    assert orphan["removed"] is not kept
    assert orphan["losses"] == (["route 10.9.0.0/16 (protocol static)"] if kept else [])
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert "failed" not in done.err
    assert "10.9.0.0/16" in wan.ip("route show")
    shown = wan.ip("addr show wan0")
    assert ("192.0.2.1/24" in shown, address in shown) == (kept, True)
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-side-effects")
    shown = wan.ip("addr show wan0")
    assert ("192.0.2.1/24" in shown, address in shown) == (False, True)
    assert ("10.9.0.0/16" in wan.ip("route show")) is not kept


ROUTE4 = "route 10.9.0.0/16 (protocol static)"
ROUTE6 = "route fd09::/64 (protocol static)"
NEIGHBOUR = "neighbour 192.0.2.7 dev wan0"
UP = "{ifname: wan0, adminUp: true}"
# What is declared, what others lose by that, and a part of how `ip link` shows that it was done.
CHANGES = [
    ("{ifname: wan0, adminUp: false, alias: isp}", (ROUTE4, ROUTE6), "state DOWN"),
    ("{ifname: wan0, adminUp: true, mtu: 1200, alias: isp}", (ROUTE6,), "mtu 1200"),
    (
        "{ifname: wan0, adminUp: true, mac: '02:00:00:00:00:01', alias: isp}",
        (NEIGHBOUR,),
        "02:00:00:00:00:01",
    ),
]


@pytest.fixture
def crowded(holdfast: Holdfast, wan: Namespace) -> Holdfast:
    """wan0 is kept up, and others have put things on it."""
    holdfast.declare(("Interface", "wan", UP))
    holdfast.set_up("apply", "router.yaml", "--yes")
    wan.ip("addr add 192.0.2.1/24 dev wan0")
    wan.ip("route add 10.9.0.0/16 via 192.0.2.254 proto static")
    wan.ip("-6 route add fd09::/64 dev wan0 proto static")
    wan.ip("neigh add 192.0.2.7 lladdr 02:00:00:00:00:77 dev wan0 nud permanent")
    return holdfast


def _others(wan: Namespace) -> str:
    shown = ("route show proto static", "-6 route show proto static", "neigh show nud permanent")
    return "".join(map(wan.ip, shown))


@pytest.mark.parametrize(("spec", "lost", "done"), CHANGES)
def test_a_change_that_others_lose_by_is_blocked_and_the_rest_is_made(
    crowded: Holdfast, wan: Namespace, spec: str, lost: tuple[str, ...], done: str
) -> None:
    before = _others(wan)
    crowded.declare(("Interface", "wan", spec))
    plan = crowded.ok("plan", "router.yaml", "-o", "json").json
    (held,) = plan["blocked"]
    assert held["artifact"] == {"kind": "link", "name": "wan0"}
    assert held["reason"].endswith(REMEDY)
    assert all(any(one.startswith(each) for one in held["losses"]) for each in lost)
    assert all(each in held["reason"] for each in lost)
    (change,) = plan["operations"]
    assert [one["field"] for one in change["changes"]] == ["alias"]
    assert change["losses"] == []
    applied = crowded.run("apply", "router.yaml", "--yes")
    assert (applied.code, held["reason"] in applied.out) == (1, True)
    shown = wan.ip("link show wan0")
    assert (done in shown, "alias isp" in shown) == (False, True)
    assert _others(wan) == before
    assert "is blocked: " in crowded.ok("explain", "wan0", "router.yaml").out


@pytest.mark.parametrize(("spec", "lost", "done"), CHANGES)
def test_allowed_it_is_made_and_said(
    crowded: Holdfast, wan: Namespace, spec: str, lost: tuple[str, ...], done: str
) -> None:
    crowded.declare(("Interface", "wan", spec))
    plan = crowded.ok("plan", "router.yaml", "--allow-side-effects", "-o", "json").json
    assert plan["blocked"] == []
    (change,) = plan["operations"]
    assert all(any(one.startswith(each) for one in change["losses"]) for each in lost)
    text = crowded.ok("plan", "router.yaml", "--allow-side-effects").out
    assert all(f"others lose: {each}" in text for each in change["losses"])
    applied = crowded.ok("apply", "router.yaml", "--yes", "--allow-side-effects").out
    assert all(f"others lost: {each}" in applied for each in change["losses"])
    assert done in wan.ip("link show wan0")
    events = crowded.ok("events", "--kind", "updated", "-o", "json").json["events"]
    assert events[-1]["data"]["losses"] == change["losses"]
    # All that is said to be gone is gone, and it is not asked for again.
    again = crowded.ok("plan", "router.yaml", "-o", "json").json
    assert (again["blocked"], [one["action"] for one in again["operations"]]) == ([], ["keep"])


def test_a_setting_that_switches_ipv6_off(crowded: Holdfast, wan: Namespace) -> None:
    off = "{key: net.ipv6.conf.wan0.disable_ipv6, value: 1}"
    crowded.declare(("Interface", "wan", UP), ("Sysctl", "off", off))
    (held,) = crowded.ok("plan", "router.yaml", "-o", "json").json["blocked"]
    assert held["losses"] == [ROUTE6]
    assert crowded.run("apply", "router.yaml", "--yes").code == 1
    assert "fd09::/64" in wan.ip("-6 route show")
    done = crowded.ok("apply", "router.yaml", "--yes", "--allow-side-effects")
    assert f"others lost: {ROUTE6}" in done.out
    assert "fd09::/64" not in wan.ip("-6 route show")


def test_a_stored_plan_takes_what_it_says_and_no_more(crowded: Holdfast, wan: Namespace) -> None:
    crowded.declare(("Interface", "wan", "{ifname: wan0, adminUp: false}"))
    crowded.ok("plan", "router.yaml", "--allow-side-effects", "--out", "stored")
    wan.ip("route add 10.10.0.0/16 via 192.0.2.254 proto static")
    stale = crowded.run("apply", "stored")
    assert (stale.code, "10.10.0.0/16 (protocol static)" in stale.err) == (4, True)
    wan.ip("route del 10.10.0.0/16")
    crowded.ok("apply", "stored")
    assert "state DOWN" in wan.ip("link show wan0")


def test_a_port_that_moves_the_mac_of_a_bridge(holdfast: Holdfast, wan: Namespace) -> None:
    """Told by the plan, for a port that is there and for one that is to be made."""
    wan.ip("link set wan0 address 02:00:00:00:00:05")
    bridge = ("Interface", "br", "{ifname: br0, type: bridge, adminUp: true}")
    port = ("Interface", "wan", "{ifname: wan0, master: br}")
    made = "type: veth, veth: {peer: p1}, mac: '02:00:00:00:00:03', master: br"
    holdfast.declare(bridge)
    holdfast.set_up("apply", "router.yaml", "--yes")
    wan.ip("neigh add 192.0.2.7 lladdr 02:00:00:00:00:77 dev br0 nud permanent")
    holdfast.declare(bridge, port, ("Interface", "p", f"{{ifname: p0, {made}}}"))
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    held = {one["artifact"]["name"]: one["losses"][0] for one in plan["blocked"]}
    assert set(held) == {"wan0", "p0"}
    assert all(one.startswith("neighbour 192.0.2.7 dev br0") for one in held.values())
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    assert " p0@" not in wan.ip("link show")
    assert "192.0.2.7" in wan.ip("neigh show nud permanent")
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-side-effects")
    assert " p0@" in wan.ip("link show master br0")


def test_a_port_that_leaves_its_bridge(holdfast: Holdfast, wan: Namespace) -> None:
    """It takes others' entries of the bridge's table along."""
    bridge = ("Interface", "br", "{ifname: br0, type: bridge, adminUp: true}")
    holdfast.declare(bridge, ("Interface", "wan", "{ifname: wan0, master: br}"))
    holdfast.set_up("apply", "router.yaml", "--yes")
    wan.run("bridge", "fdb", "add", "02:00:00:00:00:aa", "dev", "wan0", "master", "static")
    group = ("dev", "br0", "port", "wan0", "grp", "239.1.1.1", "permanent")
    wan.run("bridge", "mdb", "add", *group)
    holdfast.declare(bridge, ("Interface", "wan", "{ifname: wan0, master: ''}"))
    (held,) = holdfast.ok("plan", "router.yaml", "-o", "json").json["blocked"]
    by_hand = "protocol 0 (made by hand or by a program that sets none)"
    assert held["losses"] == [
        f"forwarding entry 02:00:00:00:00:aa dev wan0 ({by_hand})",
        "multicast entry 239.1.1.1 dev br0 port wan0 (protocol static)",
    ]
    assert holdfast.forked("apply", "router.yaml", "--yes")[0] == 1
    assert "master br0" in wan.ip("link show wan0")
    holdfast.set_up("apply", "router.yaml", "--yes", "--allow-side-effects")
    assert "master" not in wan.ip("link show wan0")


def test_an_address_that_is_no_longer_declared(holdfast: Holdfast, wan: Namespace) -> None:
    interface = ("Interface", "wan", UP)
    holdfast.declare(
        interface, ("IPv4StaticAddress", "a", "{interface: wan, address: 192.0.2.1/24}")
    )
    holdfast.set_up("apply", "router.yaml", "--yes")
    wan.ip("route add 10.9.0.0/16 via 192.0.2.254 proto static")
    holdfast.declare(interface)
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert f"kept: others would lose {ROUTE4}{REMEDY}" in done.out
    assert "192.0.2.1" in wan.ip("addr show wan0")
    done = holdfast.ok("apply", "router.yaml", "--yes", "--allow-side-effects")
    assert f"others lost: {ROUTE4}" in done.out
    assert "192.0.2.1" not in wan.ip("addr show wan0")


def test_what_is_ours_is_back_after_the_same_pass(holdfast: Holdfast, wan: Namespace) -> None:
    """A new MAC takes our neighbour along, and another vxlan our address and route."""

    def declare(mac: str, vni: int) -> None:
        holdfast.declare(
            ("Interface", "wan", f"{{ifname: wan0, adminUp: true, mac: '{mac}'}}"),
            ("IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.1/24}"),
            ("Neighbour", "n", "{interface: wan, address: 192.0.2.7, mac: '02:00:00:00:00:77'}"),
            (
                "Interface",
                "vx",
                f"{{ifname: vx0, type: vxlan, vxlan: {{id: {vni}}}, adminUp: true}}",
            ),
            ("IPv4StaticAddress", "vx", "{interface: vx, address: 198.51.100.1/24}"),
            ("IPv4Route", "r", "{destination: 10.1.0.0/16, gateway: 198.51.100.9, interface: vx}"),
        )

    declare("02:00:00:00:00:01", 7)
    holdfast.set_up("apply", "router.yaml", "--yes")
    declare("02:00:00:00:00:02", 8)
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert "Converged" in done.out
    assert "192.0.2.7" in wan.ip("neigh show nud permanent")
    assert "10.1.0.0/16" in wan.ip("route show")
    assert "02:00:00:00:00:02" in wan.ip("link show wan0")


def test_a_daemon_says_so_and_keeps_the_rest(holdfast: Holdfast, wan: Namespace) -> None:
    """It allows nothing by itself; asked by a command it does what that allows."""
    wan.ip("link set wan0 up")
    file = holdfast.root / "etc/holdfast/router.yaml"
    file.parent.mkdir(parents=True)
    route = ("IPv4Route", "r", "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}")
    address = ("IPv4StaticAddress", "a", "{interface: wan, address: 192.0.2.1/24}")
    holdfast.declare(("Interface", "wan", UP), address).rename(file)
    with daemon(holdfast, file) as running:
        wan.ip("route add 10.9.0.0/16 via 192.0.2.254 proto static")
        declared = ("Interface", "wan", "{ifname: wan0, adminUp: false, alias: isp}")
        holdfast.declare(declared, address, route).rename(file)
        running.wait_for(
            f"blocked: Interface/wan link wan0: up differs; others would lose {ROUTE4}"
        )
        until(lambda: "10.1.0.0/16" in wan.ip("route show"), "the rest is made")
        assert "alias isp" in wan.ip("link show wan0")
        assert "10.9.0.0/16" in wan.ip("route show")
        wan0, *rest = holdfast.run("status", "-o", "json").json["resources"]
        assert (wan0["phase"], wan0["reason"].endswith(REMEDY)) == ("Blocked", True)
        assert {one["phase"] for one in rest} == {"Healthy"}
        assert holdfast.run("apply", "--yes").code == 1
        plan = holdfast.ok("plan", "--allow-side-effects", "-o", "json").json
        assert ROUTE4 in [one for change in plan["operations"] for one in change["losses"]]
        said = holdfast.run("apply", "--yes", "--allow-side-effects").out
        assert f"others lost: {ROUTE4}" in said
        assert "state DOWN" in wan.ip("link show wan0")
        assert running.end() == 0
