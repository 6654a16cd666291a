"""Which link a gateway is behind, by what is declared and what is known."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv6Network, ip_address
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds.route import MAIN_TABLE
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Facts, Lease
from holdfast.resources.questions import gateways
from tests.resources.routers import load

Declared = tuple[str, str, dict[str, Any]]
LINKS: list[Declared] = [
    ("Interface", "lan", {"ifname": "lan0"}),
    ("Interface", "wan", {"ifname": "wan0"}),
    ("Interface", "dmz", {"ifname": "dmz0"}),
    ("Interface", "blue", {"ifname": "vrf0", "type": "vrf", "vrf": {"table": 500}}),
    ("Interface", "guest", {"ifname": "guest0", "master": "blue"}),
]
DHCP: Declared = ("IPv4DHCPAddress", "wan", {"interface": "wan"})
PPP: Declared = (
    "PPPoEInterface",
    "isp",
    {"interface": "wan", "ifname": "ppp0", "username": "u", "passwordFile": "password"},
)
DELEGATED: list[Declared] = [
    ("IPv6PrefixDelegation", "wan", {"interface": "wan"}),
    (
        "IPv6DelegatedAddress",
        "lan",
        {"prefixDelegation": "wan", "interface": "lan", "addressSuffix": "::1"},
    ),
]


def address(name: str, text: str, **more: Any) -> Declared:
    kind = "IPv6StaticAddress" if ":" in text else "IPv4StaticAddress"
    return (
        kind,
        f"{name}-{text.partition('/')[0].replace(':', '.')}",
        {"interface": name, "address": text, **more},
    )


def overlapping(name: str, text: str) -> Declared:
    return address(name, text, allowOverlap=True, allowOverlapReason="a test")


def route(gateway: str, **more: Any) -> Declared:
    kind, destination = "IPv4Route", "10.200.0.0/16"
    if ":" in gateway:
        kind, destination = "IPv6Route", "2001:db8:200::/48"
    return kind, "tested", {"destination": destination, "gateway": gateway, **more}


def legs(folder: Path, resources: list[Declared], facts: Facts) -> tuple[tuple[str, ...], str]:
    """The nexthops of the tested resource, and what it waits for."""
    (folder / "password").write_text("secret\n")
    (folder / "password").chmod(0o600)
    desired = compile_router(load(folder, *LINKS, *resources), facts)
    (intent,) = [one for one in desired.intents if one.owner.endswith("/tested")]
    assert isinstance(intent, BulkIntent)
    return tuple(map(str, intent.batch.template.nexthops)), intent.lacks


def on_link(gateway: str, *links: str, table: int = MAIN_TABLE) -> Facts:
    return Facts(on_link={(table, ip_address(gateway)): links})


LEASE = Lease((IPv4Interface("10.1.2.3/24"),), IPv4Address("10.1.2.1"))
TOLD: dict[str, tuple[list[Declared], Facts, str]] = {
    "an address": ([address("lan", "192.168.1.1/24"), route("192.168.1.254")], Facts(), "lan0"),
    "an IPv6 address": (
        [address("lan", "2001:db8:1::1/64"), route("2001:db8:1::fe")],
        Facts(),
        "lan0",
    ),
    "the longest of several": (
        [
            overlapping("wan", "10.0.0.1/8"),
            overlapping("lan", "10.1.0.1/16"),
            overlapping("dmz", "10.1.1.1/30"),
            route("10.1.9.9"),
        ],
        Facts(),
        "lan0",
    ),
    "an address against what the kernel would do": (
        [address("lan", "192.168.1.1/24"), route("192.168.1.254")],
        on_link("192.168.1.254", "wan0"),
        "lan0",
    ),
    "of equal ones, what the kernel prefers": (
        [overlapping("lan", "10.1.0.1/16"), overlapping("dmz", "10.1.0.2/16"), route("10.1.9.9")],
        on_link("10.1.9.9", "wan0", "dmz0", "lan0"),
        "dmz0",
    ),
    "of equal ones, the first": (
        [overlapping("lan", "10.1.0.1/16"), overlapping("dmz", "10.1.0.2/16"), route("10.1.9.9")],
        Facts(),
        "lan0",
    ),
    "a lease": ([DHCP, route("10.1.2.254")], Facts(leases4={"wan0": LEASE}), "wan0"),
    "a lease within a larger network": (
        [address("lan", "10.0.0.1/8"), DHCP, route("10.1.2.254")],
        Facts(leases4={"wan0": LEASE}),
        "wan0",
    ),
    "a gateway outside of the lease": (
        [DHCP, route("198.51.100.1")],
        Facts(leases4={"wan0": Lease(LEASE.addresses, IPv4Address("198.51.100.1"))}),
        "wan0",
    ),
    "the far end of a session": (
        [PPP, route("198.51.100.1")],
        Facts(sessions={"ppp0": Lease((IPv4Interface("192.0.2.9"),), IPv4Address("198.51.100.1"))}),
        "ppp0",
    ),
    "a delegated prefix": (
        [*DELEGATED, route("2001:db8:a00::fe")],
        Facts(delegations={"wan0": (IPv6Network("2001:db8:a00::/56"),)}),
        "lan0",
    ),
    "a route to a link": (
        [
            ("IPv4Route", "link", {"destination": "203.0.113.0/24", "interface": "dmz"}),
            address("lan", "203.0.0.1/16"),
            route("203.0.113.9"),
        ],
        Facts(),
        "dmz0",
    ),
    "a line of a list": (
        [("RouteList", "link", {"routes": ["203.0.113.0/24 dev dmz"]}), route("203.0.113.9")],
        Facts(),
        "dmz0",
    ),
    "the network of a VRF": (
        [
            overlapping("lan", "10.1.0.1/16"),
            overlapping("guest", "10.1.0.1/16"),
            route("10.1.9.9", table=500),
        ],
        Facts(),
        "guest0",
    ),
    "not that of a VRF": (
        [
            overlapping("guest", "10.1.0.1/24"),
            overlapping("lan", "10.1.0.1/16"),
            route("10.1.0.9"),
        ],
        Facts(),
        "lan0",
    ),
    "the main table for one without networks": (
        [address("lan", "192.168.1.1/24"), route("192.168.1.254", table=100)],
        Facts(),
        "lan0",
    ),
    "the kernel": ([route("10.1.9.9")], on_link("10.1.9.9", "eth7", "wan0"), "eth7"),
    "the kernel, of a table": (
        [route("10.1.9.9", table=100)],
        on_link("10.1.9.9", "eth7", table=100),
        "eth7",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_told_by(name: str, tmp_path: Path) -> None:
    resources, facts, link = TOLD[name]
    gateway = resources[-1][2]["gateway"]
    assert legs(tmp_path, resources, facts) == ((f"via {gateway} dev {link}",), "")


WAITING: dict[str, tuple[list[Declared], Facts]] = {
    "nothing": ([route("10.1.9.9")], Facts()),
    "an address that is the gateway's": (
        [address("lan", "10.1.9.9/32"), route("10.1.9.9")],
        Facts(),
    ),
    "a lease that is over": ([DHCP, route("10.1.2.254")], Facts(leases4={"wan0": GONE})),
    "a lease of nobody's client": ([route("10.1.2.254")], Facts(leases4={"wan0": LEASE})),
    "a default route": (
        [
            ("IPv4Route", "default", {"destination": "default", "interface": "wan"}),
            route("10.1.9.9"),
        ],
        Facts(),
    ),
    "a default route in two": (
        [
            ("IPv4Route", "half", {"destination": "0.0.0.0/1", "interface": "wan"}),
            route("10.1.9.9"),
        ],
        Facts(),
    ),
    "a VRF, for the main table": ([address("guest", "10.1.0.1/16"), route("10.1.9.9")], Facts()),
    "another table of the kernel": ([route("10.1.9.9")], on_link("10.1.9.9", "eth7", table=100)),
}


@pytest.mark.parametrize("name", WAITING)
def test_not_told_by(name: str, tmp_path: Path) -> None:
    resources, facts = WAITING[name]
    gateway = resources[-1][2]["gateway"]
    found, lacks = legs(tmp_path, resources, facts)
    assert found == (f"via {gateway}",)
    assert lacks.startswith(f"waits for the link of gateway {gateway}: ")


def test_each_leg_has_its_own(tmp_path: Path) -> None:
    """Also where a gateway is of the other family."""
    hops = [{"gateway": "192.168.1.254", "weight": 2}, {"gateway": "2001:db8:1::fe"}]
    spec = {"destination": "10.200.0.0/16", "nexthops": hops}
    resources = [address("lan", "192.168.1.1/24"), address("dmz", "2001:db8:1::1/64")]
    found, lacks = legs(tmp_path, [*resources, ("IPv4Route", "tested", spec)], Facts())
    assert found == ("via 192.168.1.254 dev lan0 weight 2", "via 2001:db8:1::fe dev dmz0")
    assert not lacks
    found, lacks = legs(tmp_path, [resources[0], ("IPv4Route", "tested", spec)], Facts())
    assert found == ("via 192.168.1.254 dev lan0 weight 2", "via 2001:db8:1::fe")
    assert "gateway 2001:db8:1::fe:" in lacks


def test_the_kernel_is_asked_only_for_what_is_not_declared(tmp_path: Path) -> None:
    lines = ["10.3.0.0/16 via 192.168.1.254", "10.4.0.0/16 via 203.0.113.9 table 7"]
    router = load(
        tmp_path,
        *LINKS,
        address("lan", "192.168.1.1/24"),
        route("192.168.1.253"),
        ("RouteList", "list", {"routes": [*lines, "10.5.0.0/16 via 203.0.113.8 dev wan"]}),
    )
    asked = ip_address("203.0.113.9")
    assert gateways(router) == {(7, asked), (MAIN_TABLE, asked)}
    assert gateways(load(tmp_path, *LINKS, address("lan", "192.168.1.1/24"))) == frozenset()
