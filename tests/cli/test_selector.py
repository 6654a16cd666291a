"""What a name on the command line is about."""

from __future__ import annotations

import pytest

from holdfast.engine.artifact import Key
from holdfast.errors import HoldfastError
from holdfast.render.explain.selector import parse

KEYS = [
    Key("link", "eth0"),
    Key("link", "eth0.100"),
    Key("sysctl", "net.ipv4.ip_forward"),
    Key("hostname", "system"),
    Key("file", "/etc/x"),
    Key("address", "192.0.2.1/24 dev eth0"),
    Key("address", "192.0.2.1/32 dev lo"),
    Key("address", "2001:db8::1 dev eth0"),
    Key("neighbour", "192.0.2.1 dev eth0"),
    Key("route", "192.0.2.0/24"),
    Key("route", "192.0.2.1/32"),
    Key("route", "10.0.0.0/8"),
    Key("route", "10.0.0.0/8 table 100"),
    Key("route", "10.0.0.0/8 table 100 metric 5"),
    Key("route", "0.0.0.0/0"),
    Key("route", "::/0 metric 50"),
    Key("rule", "1000: from all lookup 100"),
    Key("rule", "inet6 1000: from all lookup 100"),
    Key("rule", "10: from all lookup 1000"),
    Key("nft", "inet holdfast_filter"),
    Key("service", "dnsmasq"),
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("eth0", ["link eth0"]),
        ("link eth0", ["link eth0"]),
        ("eth0.100", ["link eth0.100"]),
        ("net.ipv4.ip_forward", ["sysctl net.ipv4.ip_forward"]),
        ("sysctl net.ipv4.ip_forward", ["sysctl net.ipv4.ip_forward"]),
        ("hostname", ["hostname system"]),
        ("/etc/x", ["file /etc/x"]),
        (
            "192.0.2.1",
            [
                "address 192.0.2.1/24 dev eth0",
                "address 192.0.2.1/32 dev lo",
                "neighbour 192.0.2.1 dev eth0",
                "route 192.0.2.1/32",
            ],
        ),
        ("192.0.2.1/24", ["address 192.0.2.1/24 dev eth0", "neighbour 192.0.2.1 dev eth0"]),
        ("addr 192.0.2.1/24", ["address 192.0.2.1/24 dev eth0"]),
        ("address 192.0.2.1 dev lo", ["address 192.0.2.1/32 dev lo"]),
        ("address 192.0.2.1/24 dev eth0", ["address 192.0.2.1/24 dev eth0"]),
        ("2001:db8::1/64", ["address 2001:db8::1 dev eth0"]),
        ("neigh 192.0.2.1", ["neighbour 192.0.2.1 dev eth0"]),
        ("192.0.2.0/24", ["route 192.0.2.0/24"]),
        ("route 192.0.2.1/24", ["route 192.0.2.0/24"]),
        (
            "10.0.0.0/8",
            [
                "route 10.0.0.0/8",
                "route 10.0.0.0/8 table 100",
                "route 10.0.0.0/8 table 100 metric 5",
            ],
        ),
        ("route 10.0.0.0/8 metric 5", ["route 10.0.0.0/8 table 100 metric 5"]),
        ("default", ["route 0.0.0.0/0", "route ::/0 metric 50"]),
        (
            "rule 1000",
            ["rule 1000: from all lookup 100", "rule inet6 1000: from all lookup 100"],
        ),
        ("rule 1000: from all lookup 100", ["rule 1000: from all lookup 100"]),
        ("inet holdfast_filter", ["nft inet holdfast_filter"]),
        ("table inet holdfast_filter", ["nft inet holdfast_filter"]),
        ("dnsmasq", ["service dnsmasq"]),
        ("nothing", []),
        ("IPv4Route/x", []),
    ],
)
def test_meant(text: str, meant: list[str]) -> None:
    selector = parse(text)
    assert [str(key) for key in KEYS if selector.matches(key)] == meant


def test_resources() -> None:
    assert parse("RouteList/transit").resource == "RouteList/transit"
    assert parse("10.0.0.0/8").resource == ""


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(HoldfastError, match="about nothing"):
        parse("  ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.2.7.256", "Octet 256"),
        ("10.2.7.5/33", "'33' is not a valid netmask"),
        ("route 10.2.7.5/33", "'33' is not a valid netmask"),
        ("10.2.7.5.6", "Expected 4 octets"),
        ("10.0/8", "Expected 4 octets"),
        ("2001:db8::12345", "At most 4 characters"),
        ("2001:db8::/129", "'129' is not a valid netmask"),
    ],
)
def test_what_is_nearly_an_address(text: str, why: str) -> None:
    with pytest.raises(HoldfastError, match=f"is no address or prefix: .*{why}"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.2.7.5", "10.2.7.5"), ("10.2.7.5/32", "10.2.7.5"), ("::1/128", "::1"), ("::/64", "None")],
)
def test_one_address(text: str, address: str) -> None:
    assert str(parse(text).address) == address
