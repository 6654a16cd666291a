"""What goes along with an IPv6 address: the prediction against what really vanished."""

from __future__ import annotations

import time

import pytest

from holdfast.host.netlink.addresses.driver import AddressDriver
from tests.host.netlink.drive import at, create, error, look, replace, succeed
from tests.host.netlink.vanished import foreign, gone_with, names
from tests.namespace import Namespace

OURS = at("fd00::1/64", "lan")


@pytest.fixture
def driver(between_two_links: AddressDriver) -> AddressDriver:
    return between_two_links


def test_ipv6_routes_lose_their_preferred_source(netns: Namespace, driver: AddressDriver) -> None:
    settled(netns, driver)
    foreign(
        netns,
        "-6 route add fd20::/64 via fd01::9 src fd00::1 proto static",
        "-6 route add fd21::/64 via fd00::9 src fd00::1 proto static",
        "-6 route add fd22::/64 via fd00::9 src fd00::1 proto static table 300",
        "-6 route add fd23::/64 via fd00::9 proto static",
        "nexthop add id 9 via fd01::9 dev wan",
        "-6 route add fd24::/64 nhid 9 src fd00::1 proto static",
        "-6 route add fd25::/64 src fd00::1 proto static"
        " nexthop via fd00::9 dev lan nexthop via fd01::9 dev wan",
    )
    predicted, lost = gone_with(netns, driver, OURS)
    assert names(predicted) == names(lost)
    assert predicted == [
        "the preferred source of route fd20::/64 (protocol static)",
        "the preferred source of route fd21::/64 (protocol static)",
        "the preferred source of route fd22::/64 table 300 (protocol static)",
        "the preferred source of route fd25::/64 (protocol static)",
    ]


def settled(netns: Namespace, driver: AddressDriver) -> None:
    """Our IPv6 address, in use at once: a tentative one is no preferred source yet."""
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan.accept_dad=0")
    succeed(driver, create(OURS))
    for _ in range(3000):
        if not netns.ip("-6 addr show dev lan tentative to fd00::1"):
            return
        time.sleep(0.01)
    raise AssertionError("fd00::1 stays tentative")


def test_an_ipv6_source_that_remains_elsewhere(netns: Namespace, driver: AddressDriver) -> None:
    settled(netns, driver)
    foreign(
        netns,
        "addr add fd00::1/64 dev wan nodad",
        "-6 route add fd21::/64 via fe80::9 dev lan src fd00::1 proto static",
        "-6 route add fd22::/64 via fe80::9 dev wan src fd00::1 proto static",
    )
    assert gone_with(netns, driver, OURS) == ([], set())


PREFIX_ROUTES = {
    "lower metric": (["-6 route add fd00::/64 dev lan proto static metric 100"], True),
    "higher metric": (["-6 route add fd00::/64 dev lan proto static metric 1000"], False),
    "in place of the kernel's": (
        ["-6 route replace fd00::/64 dev lan proto static metric 256"],
        True,
    ),
    "another table": (["-6 route add fd00::/64 dev lan proto static metric 9 table 300"], False),
    "another link": (["-6 route add fd00::/64 dev wan proto static metric 9"], False),
    "through a gateway": (["-6 route add fd00::/64 via fe80::9 dev lan proto 4 metric 9"], False),
    "a nexthop object": (
        ["-6 nexthop add id 5 dev lan", "-6 route add fd00::/64 nhid 5 proto 4 metric 9"],
        False,
    ),
    "a longer prefix": (["-6 route add fd00::/80 dev lan proto static metric 9"], False),
    "an address that shares it": (
        [
            "addr add fd00::2/64 dev lan nodad",
            "-6 route add fd00::/64 dev lan proto static metric 100",
        ],
        False,
    ),
    "an address that shares it but made no route": (
        [
            "addr add fd00::2/64 dev lan nodad noprefixroute",
            "-6 route add fd00::/64 dev lan proto static metric 100",
        ],
        False,
    ),
}


@pytest.mark.parametrize("case", PREFIX_ROUTES)
def test_the_kernel_mistakes_a_foreign_route_for_its_prefix_route(
    netns: Namespace, driver: AddressDriver, case: str
) -> None:
    commands, mistaken = PREFIX_ROUTES[case]
    settled(netns, driver)
    foreign(netns, *commands)
    predicted, lost = gone_with(netns, driver, OURS)
    assert names(predicted) == names(lost)
    assert bool(lost) is mistaken


def test_an_address_without_prefix_route_takes_none(
    netns: Namespace, driver: AddressDriver
) -> None:
    artifact = at("fd00::1/64", "lan", no_prefix_route=True)
    succeed(driver, create(artifact))
    foreign(netns, "-6 route add fd00::/64 dev lan proto static metric 100")
    assert gone_with(netns, driver, artifact) == ([], set())


def test_dropping_the_prefix_route_by_update_is_refused_alike(
    netns: Namespace, driver: AddressDriver
) -> None:
    succeed(driver, create(OURS))
    foreign(netns, "-6 route add fd00::/64 dev lan proto static metric 100")
    wanted = at("fd00::1/64", "lan", no_prefix_route=True)
    said = error(driver, replace(wanted, look(driver, OURS).artifact))
    assert said == "would take what others made: route fd00::/64 metric 100 (protocol static)"
    assert "metric 100" in netns.ip("-6 route show")


def test_a_replaced_prefix_length_may_not_cost_others_either(
    netns: Namespace, driver: AddressDriver
) -> None:
    settled(netns, driver)
    foreign(netns, "-6 route add fd20::/64 via fd01::9 src fd00::1 proto static")
    said = error(driver, replace(at("fd00::1/48", "lan"), look(driver, OURS).artifact))
    assert "the preferred source of route fd20::/64" in said
    assert look(driver, OURS).artifact.fields["prefix_length"] == 64
