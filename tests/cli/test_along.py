"""What of ours goes with a change, and comes back in the same pass, is said beforehand."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

Resource = tuple[str, str, str]
LAN = ("Interface", "lan", "{ifname: lan0, adminUp: true}")
OTHER = ("Interface", "other", "{ifname: oth0, adminUp: true}")
ROUTE = ("IPv4Route", "a", "{destination: 10.1.0.0/16, interface: lan}")
ROUTE6 = ("IPv6Route", "c", "{destination: '2001:db8:9::/48', interface: lan}")
NEIGHBOUR = ("Neighbour", "n", "{interface: lan, address: 192.0.2.9, mac: '02:00:5e:10:00:09'}")
ON_LAN = (ROUTE, NEIGHBOUR)


def lan(**said: object) -> Resource:
    more = "".join(f", {name}: {value}" for name, value in said.items())
    return ("Interface", "lan", f"{{ifname: lan0{more}}}")


def ip4(address: str, name: str = "lan") -> Resource:
    return ("IPv4StaticAddress", name, f"{{interface: lan, address: {address}}}")


def ip6(address: str) -> Resource:
    return ("IPv6StaticAddress", "lan6", f"{{interface: lan, address: '{address}'}}")


def source(address: str) -> Resource:
    said = f"{{destination: 10.8.0.0/16, interface: other, preferredSource: {address}}}"
    return ("IPv4Route", "s", said)


FIRST = ip4("192.0.2.1/24")
# Before, after, what is put back and what is not.
CASES: dict[str, tuple[tuple[Resource, ...], tuple[Resource, ...], set[str], set[str]]] = {
    "the-last-address": (
        (LAN, FIRST, *ON_LAN),
        (LAN, *ON_LAN),
        {"route 10.1.0.0/16", "neighbour 192.0.2.9 dev lan0"},
        set(),
    ),
    "another-address-in-its-subnet": (
        (LAN, FIRST, *ON_LAN),
        (LAN, ip4("192.0.2.2/24"), *ON_LAN),
        {"route 10.1.0.0/16", "neighbour 192.0.2.9 dev lan0"},
        set(),
    ),
    "another-address-elsewhere": (
        (LAN, FIRST, *ON_LAN),
        (LAN, ip4("198.51.100.1/24"), *ON_LAN),
        set(),
        set(),
    ),
    "a-secondary": (
        (LAN, FIRST, ip4("192.0.2.2/24", "second"), *ON_LAN),
        (LAN, ip4("192.0.2.2/24", "second"), *ON_LAN),
        {"address 192.0.2.2/24 dev lan0", "route 10.1.0.0/16", "neighbour 192.0.2.9 dev lan0"},
        set(),
    ),
    "what-is-no-longer-declared": (
        (LAN, FIRST, *ON_LAN),
        (LAN, NEIGHBOUR),
        {"neighbour 192.0.2.9 dev lan0"},
        set(),
    ),
    "replaced": (
        (LAN, ip6("2001:db8::1/64"), ROUTE6),
        (LAN, ip6("2001:db8::1/60"), ROUTE6),
        set(),
        set(),
    ),
    "down": (
        (LAN, FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        (lan(adminUp="false"), FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        {"address 2001:db8::1 dev lan0", "neighbour 192.0.2.9 dev lan0"},
        {"route 10.1.0.0/16", "route 2001:db8:9::/48"},
    ),
    "too-small-for-ipv6": (
        (LAN, FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        (lan(adminUp="true", mtu=1000), FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        set(),
        {"address 2001:db8::1 dev lan0", "route 2001:db8:9::/48"},
    ),
    "large-enough": (
        (LAN, FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        (lan(adminUp="true", mtu=1400), FIRST, ip6("2001:db8::1/64"), *ON_LAN, ROUTE6),
        set(),
        set(),
    ),
    "another-mac": (
        (LAN, FIRST, *ON_LAN),
        (lan(adminUp="true", mac="'02:00:5e:10:00:77'"), FIRST, *ON_LAN),
        {"neighbour 192.0.2.9 dev lan0"},
        set(),
    ),
}


@pytest.fixture
def links(netns: Namespace) -> Namespace:
    netns.veth("lan0", "far0")
    netns.ip("link set far0 up")
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan0.accept_dad=0")
    return netns


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("case", CASES)
def test_told_beforehand(holdfast: Holdfast, case: str) -> None:
    """And as the kernel does it: what a pass creates is what was planned, and what goes along."""
    before, after, back, gone = CASES[case]
    holdfast.declare(*before)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(*after)
    _check(holdfast, back, gone)


def _check(holdfast: Holdfast, back: set[str], gone: set[str]) -> None:
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    told = [one for op in plan["operations"] for one in op["along"]]
    assert {one["what"] for one in told if one["put_back"]} == back
    assert {one["what"] for one in told if not one["put_back"]} == gone
    shown = holdfast.ok("plan", "router.yaml").out
    for what in back:
        assert f"      goes with it and is put back: {what}\n" in shown
    for what in gone:
        assert f"      goes with it: {what}\n" in shown
    planned = {_name(op) for op in plan["operations"] if op["action"] == "create"}
    done = holdfast.run("apply", "router.yaml", "--yes", "-o", "json").json
    made = {_name(op) for op in done["results"] if op["action"] == "create" and op["done"]}
    notes = {note for op in done["results"] for note in op["notes"]}
    swept = {what for what in back if f"{what} went with it and was put back" in notes}
    assert made - planned == back - swept


def _name(operation: dict[str, object]) -> str:
    artifact = operation["artifact"]
    assert isinstance(artifact, dict)
    return f"{artifact['kind']} {artifact['name']}"


def test_a_preferred_source(holdfast: Holdfast, links: Namespace) -> None:
    """A route over another link goes with the address that it is sent from, though that is on the
    router again in the end."""
    links.veth("oth0", "far1")
    links.ip("link set far1 up")
    kept = ip4("192.0.2.2/24", "second")
    holdfast.declare(LAN, OTHER, FIRST, kept, source("192.0.2.2"))
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(LAN, OTHER, kept, source("192.0.2.2"))
    _check(holdfast, {"address 192.0.2.2/24 dev lan0", "route 10.8.0.0/16"}, set())
    assert "10.8.0.0/16 dev oth0" in links.ip("route show")


def test_a_port_of_a_bridge(holdfast: Holdfast, links: Namespace) -> None:
    """The bridge has another MAC once its only port left, and forgets its neighbours."""
    links.ip("link add br0 type bridge")
    bridge = ("Interface", "br", "{ifname: br0, adminUp: true}")
    on_it = ("Neighbour", "n", "{interface: br, address: 192.0.2.9, mac: '02:00:5e:10:00:09'}")
    address = ("IPv4StaticAddress", "br", "{interface: br, address: 192.0.2.1/24}")
    route = ("IPv4Route", "a", "{destination: 10.1.0.0/16, interface: br}")
    holdfast.declare(lan(adminUp="true", master="br"), bridge, address, on_it, route)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(lan(adminUp="true", master='""'), bridge, address, on_it, route)
    _check(holdfast, {"neighbour 192.0.2.9 dev br0"}, set())


@pytest.mark.usefixtures("netns")
def test_a_link_that_is_made_anew(holdfast: Holdfast) -> None:
    def pair(peer: str) -> Resource:
        return ("Interface", "lan", f"{{ifname: v0, type: veth, veth: {{peer: {peer}}}}}")

    up = ("Interface", "far", "{ifname: v1, adminUp: true}")
    holdfast.declare(pair("v1"), up, FIRST)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(pair("v2"), FIRST)
    _check(holdfast, {"address 192.0.2.1/24 dev v0"}, set())


def test_a_saved_plan_is_valid(holdfast: Holdfast, links: Namespace) -> None:
    holdfast.declare(LAN, FIRST, *ON_LAN)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.declare(LAN, *ON_LAN)
    holdfast.ok("plan", "router.yaml", "--out", "saved.json")
    # Gone meanwhile: what the plan does is the same.
    links.ip("neigh del 192.0.2.9 dev lan0")
    links.ip("neigh add 192.0.2.9 lladdr 02:00:5e:10:00:09 dev lan0 protocol 72 nud permanent")
    holdfast.ok("apply", "saved.json", "--yes")
    assert "10.1.0.0/16" in links.ip("route show")
