"""Addresses that cannot be what the file wants of them: told by `validate`, with their place."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.resources.routers import load

Declared = tuple[str, str, dict[str, Any]]
LINKS: list[Declared] = [
    ("Interface", "lan", {"ifname": "lan0"}),
    ("Interface", "wan", {"ifname": "wan0"}),
    ("IPv4StaticAddress", "lan", {"interface": "lan", "address": "192.168.1.1/24"}),
    ("IPv4StaticAddress", "wan", {"interface": "wan", "address": "192.0.2.1/30"}),
    ("IPv6StaticAddress", "lan", {"interface": "lan", "address": "2001:db8:1::1/64"}),
]
SERVER: Declared = ("IPv4DHCPServer", "lan", {})
SERVER6: Declared = ("IPv6DHCPServer", "lan", {})
NOWHERE, OWN = "in no network that is declared", "is the router's own address"


def route(gateway: str, **more: Any) -> Declared:
    kind, leads = (
        ("IPv6Route", "2001:db8:9::/48") if ":" in gateway else ("IPv4Route", "10.9.0.0/16")
    )
    return kind, "tested", {"destination": leads, "gateway": gateway, **more}


def legs(*gateways: str) -> Declared:
    hops = [{"gateway": gateway} for gateway in gateways]
    return "IPv4Route", "tested", {"destination": "10.9.0.0/16", "nexthops": hops}


def listed(gateway: str) -> Declared:
    return "RouteList", "tested", {"gateway": gateway, "routes": ["10.9.0.0/16"]}


def policy(gateway: str) -> Declared:
    candidate: dict[str, Any] = {
        "name": "a",
        "interface": "wan",
        "gatewaySource": "static",
        "gateway": gateway,
    }
    candidate |= {"priority": 20, "table": 111, "mark": 0x111}
    return "IPv4DefaultRoutePolicy", "tested", {"candidates": [candidate]}


def exposed(host: str) -> list[Declared]:
    spec: dict[str, Any] = {"family": "ipv4", "fromZone": "out", "protocol": "tcp"}
    spec |= {"externalPort": 443, "internalAddress": host, "internalPort": 443}
    return [("Zone", "out", {"interfaces": ["wan"]}), ("ExposeService", "tested", spec)]


def pool(first: str, last: str, **more: Any) -> list[Declared]:
    spec = {"server": "lan", "interface": "lan", "rangeStart": first, "rangeEnd": last, **more}
    return [SERVER, ("IPv4DHCPScope", "tested", {"dnsSource": "none", **spec})]


def pool6(first: str, last: str) -> list[Declared]:
    spec = {"server": "lan", "interface": "lan", "rangeStart": first, "rangeEnd": last}
    return [SERVER6, ("IPv6DHCPScope", "tested", {"dnsSource": "none", "mode": "stateful", **spec})]


def said(folder: Path, *resources: Declared) -> list[tuple[str, str]]:
    """Path and message of each warning, all of which have a place."""
    warnings = load(folder, *LINKS, *resources).warnings
    assert all(str(warning.place).rpartition("/")[2].count(":") == 2 for warning in warnings)
    return [(warning.path, warning.message) for warning in warnings]


TOLD: dict[str, tuple[list[Declared], str, str]] = {
    "a gateway off every link": ([route("10.77.0.1")], "spec.gateway", NOWHERE),
    "an IPv6 gateway off every link": ([route("2001:db8:77::1")], "spec.gateway", NOWHERE),
    "a leg off every link": (
        [legs("192.168.1.9", "10.77.0.1")],
        "spec.nexthops[1].gateway",
        NOWHERE,
    ),
    "a list off every link": ([listed("10.77.0.1")], "spec.gateway", NOWHERE),
    "one that only a default route leads to": (
        [route("10.77.0.1"), ("IPv4Route", "all", {"destination": "default", "interface": "wan"})],
        "spec.gateway",
        NOWHERE,
    ),
    "itself": ([route("192.168.1.1")], "spec.gateway", OWN),
    "itself over another link": ([route("192.168.1.1", interface="wan")], "spec.gateway", OWN),
    "itself as a leg": ([legs("192.168.1.9", "192.0.2.1")], "spec.nexthops[1].gateway", OWN),
    "itself of a list": ([listed("192.168.1.1")], "spec.gateway", OWN),
    "itself by IPv6": ([route("2001:db8:1::1")], "spec.gateway", OWN),
    "a candidate off its link": (
        [policy("192.168.1.9")],
        "spec.candidates[0].gateway",
        "declare a route to it",
    ),
    "a candidate that is the router": ([policy("192.0.2.1")], "spec.candidates[0].gateway", OWN),
    "a host in no subnet": (exposed("10.77.0.1"), "spec.internalAddress", NOWHERE),
    "a pool with the router": (pool("192.168.1.1", "192.168.1.9"), "spec.rangeStart", "holds"),
    "a pool with the router of the clients": (
        pool("192.168.1.2", "192.168.1.9", routerSource="static", router="192.168.1.5"),
        "spec.rangeStart",
        "the `router` of the clients",
    ),
    "an IPv6 pool with the router": (pool6("::1", "::ff"), "spec.rangeStart", "holds ::1"),
}
UNSAID: dict[str, list[Declared]] = {
    "a gateway on a link": [route("192.168.1.9")],
    "on the link by word": [route("10.77.0.1", interface="wan", onlink=True)],
    "another address from outside": [
        route("10.77.0.1"),
        ("Interface", "isp", {"ifname": "isp0"}),
        ("IPv4DHCPAddress", "isp", {"interface": "isp"}),
    ],
    "a route that leads there": [
        route("10.77.0.1"),
        ("IPv4Route", "there", {"destination": "10.77.0.0/24", "interface": "wan"}),
    ],
    "a list that leads there": [
        route("10.77.0.1"),
        ("RouteList", "there", {"interface": "wan", "routes": ["10.77.0.0/24"]}),
    ],
    "a list that leads there by the link": [
        route("10.77.0.1", interface="wan"),
        ("RouteList", "there", {"interface": "wan", "routes": ["10.77.0.0/24"]}),
    ],
    "a peer of WireGuard": [
        route("10.77.0.1"),
        (
            "WireGuardInterface",
            "vpn",
            {
                "ifname": "wg0",
                "privateKeyFile": "key",
                "peers": [
                    {
                        "name": "office",
                        "publicKey": "nSo3VxMXxNtZ9BN4mEfPCN7UVkIi+DHLmZ+2eO1krmo=",
                        "allowedIPs": ["10.77.0.0/24"],
                    }
                ],
            },
        ),
    ],
    "the same address in a VRF": [
        ("Interface", "blue", {"ifname": "vrf0", "type": "vrf", "vrf": {"table": 500}}),
        ("Interface", "far", {"ifname": "far0", "master": "blue"}),
        ("IPv4StaticAddress", "far", {"interface": "far", "address": "192.0.2.2/30"}),
        route("192.0.2.2", interface="wan"),
    ],
    "a candidate on its link": [policy("192.0.2.2")],
    "a host on a link": exposed("192.168.1.9"),
    "a pool beside the router": pool("192.168.1.2", "192.168.1.9"),
    "an IPv6 pool beside the router": pool6("::2", "::ff"),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_told(name: str, tmp_path: Path) -> None:
    resources, path, words = TOLD[name]
    assert [one for one in said(tmp_path, *resources) if one[0] == path and words in one[1]]


@pytest.mark.parametrize("name", UNSAID)
def test_what_is_not(name: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    (tmp_path / "key").chmod(0o600)
    words = ("network", "own address", "holds")
    assert not [one for one in said(tmp_path, *UNSAID[name]) if any(w in one[1] for w in words)]


near = st.integers(1, 510).map(lambda offset: IPv4Address("192.168.0.0") + offset)


@pytest.mark.long
@given(
    st.lists(near, min_size=1, max_size=3, unique=True), st.integers(23, 32), near, st.booleans()
)
def test_a_gateway_is_told_of_exactly_where_no_network_holds_it(
    own: list[IPv4Address], length: int, gateway: IPv4Address, named: bool
) -> None:
    addresses = [IPv4Interface((address, length)) for address in own]
    ends = {end for one in addresses for end in (one.network[0], one.network[-1])}
    assume(length > 30 or ends.isdisjoint(own))  # those are no addresses of hosts
    resources: list[Declared] = [("Interface", "lan", {"ifname": "lan0"})]
    resources += [
        ("IPv4StaticAddress", f"a{number}", {"interface": "lan", "address": str(address)})
        for number, address in enumerate(addresses)
    ]
    resources.append(route(str(gateway), **({"interface": "lan"} if named else {})))
    with TemporaryDirectory() as folder:
        told = [
            one.message for one in load(Path(folder), *resources).warnings if "gateway" in one.path
        ]
    held = any(gateway in address.network for address in addresses)
    assert bool(told) == (gateway in own or not held)
    assert all(str(gateway) in message for message in told)


@pytest.mark.long
@given(near, st.integers(1, 254), st.integers(1, 254))
def test_a_pool_is_told_of_exactly_where_it_holds_the_router(
    router: IPv4Address, first: int, last: int
) -> None:
    first, last = min(first, last), max(first, last)
    resources: list[Declared] = [
        ("Interface", "lan", {"ifname": "lan0"}),
        ("IPv4StaticAddress", "lan", {"interface": "lan", "address": f"{router}/23"}),
        *pool(f"192.168.1.{first}", f"192.168.1.{last}"),
    ]
    held = IPv4Address("192.168.1.0") + first <= router <= IPv4Address("192.168.1.0") + last
    with TemporaryDirectory() as folder:
        told = [one for one in load(Path(folder), *resources).warnings if "holds" in one.message]
    assert bool(told) == held
