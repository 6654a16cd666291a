"""`explain`: from the kernel's object back to the line of YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.host.netlink.messages import Run
from holdfast.paths import Paths
from holdfast.render.explain.by_name import explain
from holdfast.render.style import Style
from holdfast.runtime.load import load
from tests.agent.two_providers import until
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.host.facts.test_leases import GOOD4, Client
from tests.namespace import Namespace

LIST = ("RouteList", "list", "{gateway: 192.0.2.254, interface: wan, file: routes.txt}")


@pytest.fixture
def applied(holdfast: Holdfast, wan: Namespace) -> Holdfast:
    (holdfast.folder / "routes.txt").write_text("# transit\n10.5.0.0/16\n10.6.0.0/16\n")
    holdfast.declare(WAN, WAN_ADDRESS, LIST, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("route add 10.99.0.0/16 via 192.0.2.250 proto static metric 100")
    wan.ip("route add 10.98.0.0/16 via 192.0.2.250 proto bird metric 4000000000")
    wan.ip("route add blackhole 10.97.0.0/16 table 7")
    wan.ip("-6 route add blackhole fd97::/64 proto zebra metric 70000 table 1000")
    wan.ip("addr add 192.0.2.77/24 dev wan0")
    wan.ip("rule add priority 500 fwmark 5 lookup 7")
    return holdfast


def _finding(holdfast: Holdfast, *words: str) -> Any:
    (found,) = holdfast.ok("explain", *words, "router.yaml", "-o", "json").json["findings"]
    return found


def test_a_route_of_a_list_leads_to_its_line(applied: Holdfast) -> None:
    done = applied.ok("explain", "10.6.0.0/16", "router.yaml")
    assert done.out == (
        "route 10.6.0.0/16 via 192.0.2.254 dev wan0\n"
        "  there now   yes, carrying our kernel tag (protocol 72)\n"
        "  declared    by RouteList/list at routes.txt:3:1\n"
        "  ours        yes, by kernel tag: protocol 72\n"
        "  next apply  keeps it: as declared\n"
    )


@pytest.mark.parametrize(
    ("words", "holder"),
    [
        (["route", "10.99.0.0/16"], "protocol static"),
        (["10.99.0.0/16", "metric", "100"], "protocol static"),
        (["10.98.0.0/16"], "protocol bird"),
        (["10.97.0.0/16"], "protocol boot"),
        (["10.97.0.0/16", "table", "7"], "protocol boot"),
        (["fd97::/64"], "protocol zebra"),
        (["route", "192.0.2.77/32", "table", "255"], "protocol kernel"),
        (["192.0.2.77"], "protocol 0"),
        (["rule", "500"], "protocol"),
        (["isp0"], "a veth link"),
    ],
)
def test_what_is_foreign_is_left_alone_and_why(
    applied: Holdfast, words: list[str], holder: str
) -> None:
    found = _finding(applied, *words)
    assert found["observed"][0]["holder"].startswith(holder)
    assert found["proof"] == ""
    assert found["declared"] == []
    assert found["next"]["action"] == "none"
    assert "touches only what it can prove it owns" in found["next"]["says"]


def test_routes_that_differ_only_in_metric_and_table(applied: Holdfast, wan: Namespace) -> None:
    wan.ip("route add blackhole 10.6.0.0/16 table 7 metric 5000")
    found = applied.ok("explain", "10.6.0.0/16", "router.yaml", "-o", "json").json["findings"]
    names = [(one["artifact"]["name"], one["proof"] != "") for one in found]
    assert names == [("10.6.0.0/16", True), ("10.6.0.0/16 table 7 metric 5000", False)]


def test_an_orphan_leads_to_the_generation_that_declared_it(applied: Holdfast) -> None:
    (applied.folder / "routes.txt").write_text("10.5.0.0/16\n")
    found = _finding(applied, "10.6.0.0/16")
    assert found["declared"] == []
    assert found["declared_until"] == {
        "generation": 1,
        "owner": "RouteList/list",
        "place": f"{applied.folder}/routes.txt:3:1",
    }
    assert found["next"]["action"] == "delete"
    said = applied.ok("explain", "10.6.0.0/16", "router.yaml").out
    assert "no longer; until generation 1 by RouteList/list at routes.txt:3:1" in said
    assert "deletes it: nothing declares it any more" in said


def test_a_created_address_and_its_claim(applied: Holdfast) -> None:
    found = _finding(applied, "192.0.2.1")
    assert found["declared"] == [
        {"owner": "IPv4StaticAddress/wan", "place": f"{applied.folder}/router.yaml:10:7"}
    ]
    assert found["claim"]["provenance"] == "created"
    assert found["proof"] == "kernel tag: protocol 72"


def test_a_nic_whose_settings_are_declared(applied: Holdfast) -> None:
    said = applied.ok("explain", "wan0", "router.yaml").out
    assert "before that: up no" in said
    assert "keeps it: as declared" in said


def test_a_kernel_setting_that_nobody_declares(applied: Holdfast) -> None:
    said = applied.ok("explain", "sysctl", "net.ipv4.ip_forward", "router.yaml").out
    assert "sysctl net.ipv4.ip_forward = 0" in said
    assert "a setting: it always exists" in said


def test_drift_and_what_becomes_of_it(applied: Holdfast, wan: Namespace) -> None:
    wan.ip("link set wan0 mtu 1400")
    said = applied.ok("explain", "wan0", "router.yaml").out
    assert "updates it: mtu differs" in said
    assert "mtu  1400 → 1500" in said


def test_a_resource(applied: Holdfast, wan: Namespace) -> None:
    said = applied.ok("explain", "RouteList/list", "router.yaml").out
    assert said.startswith("RouteList/list: declared at router.yaml:14:7; Healthy\n")
    assert "route 10.5.0.0/16 via 192.0.2.254 dev wan0" in said
    wan.ip("route del 10.5.0.0/16")
    story = applied.ok("explain", "RouteList/list", "router.yaml", "-o", "json").json
    assert story["phase"] == "Drifted"
    actions = {op["artifact"]["name"]: op["action"] for op in story["operations"]}
    assert actions == {"10.5.0.0/16": "create", "10.6.0.0/16": "keep"}


def test_a_resource_that_is_gone(applied: Holdfast) -> None:
    applied.declare(WAN, WAN_ADDRESS, LIST)
    said = applied.ok("explain", "IPv4Route/a", "router.yaml").out
    assert "IPv4Route/a: no longer declared; until generation 1 at router.yaml:18:7" in said
    done = applied.run("explain", "IPv4Route/never", "router.yaml")
    assert done.code == 1
    assert "no such resource" in done.err


def test_what_is_nowhere(applied: Holdfast) -> None:
    done = applied.run("explain", "eth9", "router.yaml")
    assert (done.code, done.out) == (1, "")
    assert "eth9: no link, service or sysctl of this name is there, declared or" in done.err
    done = applied.run("explain", "a", "router.yaml")
    assert "did you mean IPv4Route/a?" in done.err
    done = applied.run("explain", "Ipv4route/aa", "router.yaml")
    assert "did you mean 'IPv4Route/a'?" in done.err


def test_one_route_is_picked_out_of_many_without_an_object_for_each(
    applied: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"10.{200 + i // 256}.{i % 256}.0/24\n" for i in range(6000))
    (applied.folder / "routes.txt").write_text(lines)
    applied.ok("apply", "router.yaml", "--yes")
    paths = Paths(applied.root)
    loaded = load(paths, applied.folder / "router.yaml", print)
    made: list[int] = []
    bodies = Run.bodies

    def counted(run: Run) -> list[bytes]:
        made.append(run.count)
        return bodies(run)

    monkeypatch.setattr(Run, "bodies", counted)
    told = explain(paths, loaded, "10.205.7.0/24")
    assert "/routes.txt:1288:1\n" in "\n".join(told.lines(Style(False)))
    assert sum(made) < 2000


@pytest.mark.usefixtures("wan")
def test_what_is_left_undeclared_is_told_to_programs_too(holdfast: Holdfast) -> None:
    made = ("Interface", "pair", "{ifname: pair0, type: veth, veth: {peer: pair1}}")
    holdfast.declare(WAN, made)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(WAN)
    done = holdfast.ok("apply", "router.yaml", "--yes", "-o", "json").json
    told = holdfast.ok("explain", "Interface/pair", "router.yaml", "-o", "json").json
    for found in (done, told):
        assert {one["artifact"]["name"] for one in found["orphans"]} == {"pair0"}


@pytest.mark.parametrize(
    ("asked", "route", "owner"),
    [
        ("10.6.7.5", "10.6.0.0/16", "RouteList/list"),
        ("10.1.7.5", "10.1.0.0/16", "IPv4Route/a"),
        ("10.1.7.5/32", "10.1.0.0/16", "IPv4Route/a"),
        ("10.99.7.5", "10.99.0.0/16 metric 100", ""),
    ],
)
def test_a_bare_address_leads_to_the_route_by_longest_match(
    applied: Holdfast, asked: str, route: str, owner: str
) -> None:
    told = applied.ok("explain", asked, "router.yaml", "-o", "json").json
    assert told["longest_match"] == route
    (found,) = told["findings"]
    assert found["artifact"] == {"kind": "route", "name": route}
    assert [one["owner"] for one in found["declared"]] == ([owner] if owner else [])
    assert f"{asked} is on nothing by itself" in applied.ok("explain", asked, "router.yaml").out


def test_each_link_has_a_route_to_link_local_addresses(applied: Holdfast) -> None:
    """And each is told with the reason that it is there for itself."""

    def told() -> list[tuple[str, str]]:
        found = applied.ok("explain", "fe80::99", "router.yaml", "-o", "json").json["findings"]
        return [(str(one["observed"][0]["fields"]["nexthops"]), one["made_for"]) for one in found]

    until(lambda: len(told()) == 2, "addresses of both links")
    (ours, why), (other, none) = told()
    assert "dev wan0" in ours
    assert why.startswith("the kernel made it, as address fe80::")
    assert "on wan0" in why
    assert ("dev isp0" in other, none) == (True, "")


def test_an_address_that_no_route_leads_to(applied: Holdfast) -> None:
    done = applied.run("explain", "172.16.9.9", "router.yaml")
    assert done.code == 1
    assert "172.16.9.9: no address, " in done.err
    assert ", neighbour, ospf prefix or route of this name is there" in done.err


def test_what_the_kernel_made_for_an_address_of_ours(applied: Holdfast) -> None:
    found = _finding(applied, "route", "192.0.2.0/24")
    assert found["made_for"].startswith(
        "the kernel made it, as address 192.0.2.1/24 is on wan0: IPv4StaticAddress/wan at "
    )
    assert found["next"]["action"] == "none"
    # The same by one of its addresses.
    told = applied.ok("explain", "192.0.2.200", "router.yaml").out
    assert "ours        not by itself; the kernel made it, as address 192.0.2.1/24" in told


def test_what_a_dhcp_client_of_ours_brought(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(
        ("Interface", "wan", "{ifname: wan0, managed: false}"),
        ("IPv4DHCPAddress", "wan", "{interface: wan}"),
    )
    holdfast.root.mkdir()
    Client(holdfast.root).says(GOOD4)
    wan.ip("link set wan0 up")
    wan.ip("addr add 203.0.113.7/24 dev wan0 noprefixroute")
    wan.ip("route add 203.0.113.0/24 dev wan0 proto dhcp src 203.0.113.7")
    wan.ip("route add default via 203.0.113.1 dev wan0 proto dhcp")
    for asked in ("203.0.113.7", "203.0.113.0/24", "default", "198.51.100.9"):
        told = holdfast.ok("explain", asked, "router.yaml").out
        assert "not by itself; the DHCP client of IPv4DHCPAddress/wan at" in told, asked


def test_what_router_advertisements_and_the_kernel_make(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(("Interface", "wan", "{ifname: wan0, managed: false}"))
    Path("/proc/sys/net/ipv6/conf/wan0/accept_dad").write_text("0")
    wan.ip("link set wan0 up")
    wan.ip("-6 route add 2001:db8:9::/64 dev wan0 proto ra")
    told = holdfast.ok("explain", "2001:db8:9::/64", "router.yaml").out
    assert "router advertisements on wan0 led to it, the link of Interface/wan at" in told
    own = next(
        one["local"]
        for one in wan.ip_json("-6 addr show dev wan0")[0]["addr_info"]
        if one["scope"] == "link"
    )
    told = holdfast.ok("explain", own, "router.yaml").out
    assert "the kernel made it, as every link has one, for Interface/wan" in told
