"""`explain`: from the kernel's object back to the line of YAML."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.load import load
from holdfast.agent.stories.explained import explain
from holdfast.agent.stories.style import Style
from holdfast.host.netlink.messages import Run
from holdfast.paths import Paths
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
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
