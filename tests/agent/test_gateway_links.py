"""Routes by a gateway alone, on the link that the gateway is behind: whatever else leads there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.safety.router_scene import document

# Nobody but the test sets the link up or down.
LINK = {"Interface/lan": "{ifname: lan0}"}
ADDRESSES = {
    "IPv4StaticAddress/lan": "{interface: lan, address: 192.168.1.1/24}",
    "IPv6StaticAddress/lan": "{interface: lan, address: '2001:db8:1::1/64'}",
}
ROUTES = {
    "IPv4Route/branch": "{destination: 10.20.0.0/16, gateway: 192.168.1.254}",
    "IPv4Route/two": "{destination: 10.21.0.0/16, nexthops: [{gateway: 192.168.1.253},"
    " {gateway: 192.168.1.252}]}",
    "IPv4Route/table": "{destination: 10.22.0.0/16, gateway: 192.168.1.254, table: 500}",
    "IPv6Route/branch": "{destination: '2001:db8:20::/48', gateway: '2001:db8:1::fe'}",
    "RouteList/more": "{gateway: 192.168.1.251, routes: [10.23.0.0/16, 10.24.0.0/16]}",
}
LEGS = 7
# What leads to the gateways over another link: a default route there, or a table that is asked
# before the main one.
OTHERS = {
    "a default route": ("route add default dev ppp0", "-6 route add default dev ppp0"),
    "another table": (
        "route add 192.168.1.0/24 dev ppp0 table 100",
        "rule add priority 100 lookup 100",
        "-6 route add 2001:db8:1::/64 dev ppp0 table 100",
        "-6 rule add priority 100 lookup 100",
    ),
}


@pytest.fixture
def holdfast(netns: Namespace, tmp_path: Path, root: Path) -> Holdfast:
    netns.veth("lan0", "far0")
    netns.veth("ppp0", "farp")
    root.mkdir()
    return Holdfast(tmp_path, root)


def links(netns: Namespace) -> list[str]:
    """Of each leg of the routes declared here."""
    found = []
    for family in ("-4", "-6"):
        for route in netns.ip_json(f"{family} route show table all proto 72"):
            found += [leg["dev"] for leg in route.get("nexthops", [route])]
    return sorted(found)


def phases(holdfast: Holdfast) -> dict[str, tuple[str, str]]:
    """Each route resource, how it is and why, as `holdfast status` tells it."""
    told = holdfast.run("status", "-o", "json").json["resources"]
    return {
        one["resource"]: (one["phase"], one["reason"]) for one in told if "Route" in one["resource"]
    }


@contextmanager
def serving(
    holdfast: Holdfast, netns: Namespace, resources: dict[str, str], legs: int
) -> Iterator[Daemon]:
    file = holdfast.folder / "router.yaml"
    file.write_text(document(resources))
    with serve(holdfast.root, file) as daemon:
        daemon.wait_for(" read: ")
        until(lambda: links(netns) == ["lan0"] * legs, daemon.said())
        yield daemon
        assert daemon.end() == 0


@pytest.mark.parametrize("commands", OTHERS.values(), ids=OTHERS)
def test_a_link_goes_down_and_up(
    holdfast: Holdfast, netns: Namespace, commands: tuple[str, ...]
) -> None:
    with serving(holdfast, netns, LINK | ADDRESSES | ROUTES, LEGS) as daemon:
        for command in commands:
            netns.ip(command)
        netns.ip("link set lan0 down")
        daemon.rest()
        assert links(netns) == []
        assert set(phases(holdfast).values()) == {("Pending", "waits for link lan0: it is down")}
        netns.ip("link set lan0 up")
        until(lambda: len(links(netns)) == LEGS, daemon.said())
        assert set(links(netns)) == {"lan0"}
        daemon.rest()
        assert {phase for phase, _ in phases(holdfast).values()} == {"Healthy"}
        assert "because of the timer" not in daemon.said()


def test_a_route_on_another_link_is_drift(holdfast: Holdfast, netns: Namespace) -> None:
    """As an earlier version may have left it, or as somebody with our tag puts it there."""
    for command in OTHERS["a default route"]:
        netns.ip(command)
    with serving(holdfast, netns, LINK | ADDRESSES | ROUTES, LEGS) as daemon:
        daemon.rest()
        netns.ip("route replace 10.20.0.0/16 via 192.168.1.254 dev ppp0 onlink proto 72")
        until(lambda: links(netns) == ["lan0"] * LEGS, daemon.said())
        daemon.wait_for("repaired route 10.20.0.0/16")
    # While nobody serves, all of them, and a plan says where they are and where they are to be.
    netns.ip("route replace 10.20.0.0/16 via 192.168.1.254 dev ppp0 onlink proto 72")
    netns.ip("-6 route add 2001:db8:1::fe/128 dev ppp0")
    netns.ip("-6 route del 2001:db8:20::/48 proto 72")
    netns.ip("-6 route add 2001:db8:20::/48 via 2001:db8:1::fe dev ppp0 proto 72")
    netns.ip("-6 route del 2001:db8:1::fe/128 dev ppp0")
    assert links(netns).count("ppp0") == 2
    planned = holdfast.run("plan", "router.yaml", "-o", "json")
    assert [planned.json["summary"][one] for one in ("create", "update", "delete")] == [0, 2, 0]
    assert "via 192.168.1.254 dev lan0" in planned.out
    assert "via 2001:db8:1::fe dev lan0" in planned.out
    told = holdfast.run("status", "router.yaml", "-o", "json").json["resources"]
    drifted = {one["resource"] for one in told if one["phase"] == "Drifted"}
    assert drifted == {"IPv4Route/branch", "IPv6Route/branch"}
    assert holdfast.run("apply", "router.yaml", "--yes").code == 0
    assert links(netns) == ["lan0"] * LEGS


def test_what_nothing_declared_tells_is_waited_for_and_compared(
    holdfast: Holdfast, netns: Namespace
) -> None:
    """The address that a gateway is behind is somebody else's."""
    for command in OTHERS["a default route"]:
        netns.ip(command)
    routes = {name: spec for name, spec in ROUTES.items() if name.startswith("IPv4Route/")}
    with serving(holdfast, netns, LINK | routes, 0) as daemon:
        daemon.rest()
        assert links(netns) == []
        for phase, reason in phases(holdfast).values():
            assert phase == "Pending"
            assert reason.startswith("waits for the link of gateway")
        netns.ip("addr add 192.168.1.1/24 dev lan0")
        until(lambda: links(netns) == ["lan0"] * 4, daemon.said())
        daemon.rest()
        assert {phase for phase, _ in phases(holdfast).values()} == {"Healthy"}
        # A default route that comes and goes says nothing; the address on another link does.
        netns.ip("route del default dev ppp0")
        netns.ip("addr add 192.168.1.1/24 dev ppp0")
        netns.ip("addr del 192.168.1.1/24 dev lan0")
        until(lambda: links(netns) == ["ppp0"] * 4, daemon.said())
        # Once nothing tells any more, what is there stays.
        netns.ip("addr add 192.0.2.1/24 dev ppp0")  # or the kernel takes all of them
        netns.ip("addr del 192.168.1.1/24 dev ppp0")
        until(lambda: phases(holdfast)["IPv4Route/branch"][0] == "Pending", daemon.said())
        assert links(netns) == ["ppp0"] * 4


# What makes the network of a gateway go and come on a link that is nobody's business but others',
# and how many legs are left meanwhile: an IPv6 route outlives the address of its link.
SETBACKS = {
    "admin state": ("link set lan0 down", "link set lan0 up", 0),
    "carrier": ("link set far0 down", "link set far0 up", LEGS),
    "addresses": ("addr flush dev lan0 scope global", "addr add 192.168.1.1/24 dev lan0", 1),
}


@pytest.mark.parametrize(("goes", "comes", "left"), SETBACKS.values(), ids=SETBACKS)
def test_a_link_that_nothing_declares_goes_and_comes(
    holdfast: Holdfast, netns: Namespace, goes: str, comes: str, left: int
) -> None:
    """It is a guest's, by all that can be told, until the network of a gateway is on it."""
    Path("/proc/sys/net/ipv6/conf/lan0/keep_addr_on_down").write_text("1")
    Path("/proc/sys/net/ipv6/conf/lan0/accept_dad").write_text("0")
    netns.ip("addr add 192.168.1.1/24 dev lan0")
    netns.ip("-6 addr add 2001:db8:1::1/64 dev lan0")
    with serving(holdfast, netns, ROUTES, LEGS) as daemon:
        for _ in range(3):
            daemon.rest()
            netns.ip(goes)
            until(lambda: links(netns) == ["lan0"] * left, daemon.said())
            daemon.rest()
            netns.ip(comes)
            if "addr" in comes:
                netns.ip("-6 addr add 2001:db8:1::1/64 dev lan0")
            until(lambda: links(netns) == ["lan0"] * LEGS, daemon.said())
        daemon.rest()
        assert {phase for phase, _ in phases(holdfast).values()} == {"Healthy"}
        assert "because of the timer" not in daemon.said()


def test_what_is_lacking_is_looked_for_when_asked(holdfast: Holdfast, netns: Namespace) -> None:
    """Nobody tells the daemon of a route of others': `status` and `plan` see that it is there."""
    routes = {"IPv4Route/branch": ROUTES["IPv4Route/branch"]}
    with serving(holdfast, netns, routes, 0) as daemon:
        daemon.rest()
        assert phases(holdfast)["IPv4Route/branch"][0] == "Pending"
        netns.ip("route add 192.168.1.0/24 dev lan0 proto static")
        planned = holdfast.run("plan", "router.yaml", "-o", "json")
        # The timer may have been first.
        assert planned.json["summary"]["create"] == 1 or links(netns) == ["lan0"], planned.out
        assert phases(holdfast)["IPv4Route/branch"][0] != "Pending"
