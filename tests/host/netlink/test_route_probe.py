"""A look at one route, against what a dump shows of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.host.netlink.routes.route_decode import Reader, key_of, settle
from holdfast.host.netlink.routes.route_probe import look_at
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.socket import NetlinkSocket
from tests.engine.memory_routes import pack_prefix
from tests.namespace import Namespace

MAIN = 254


@pytest.fixture
def sock(netns: Namespace) -> Iterator[NetlinkSocket]:
    netns.veth("wan", "far", "192.0.2.1/24", "2001:db8::1/64")
    opened = NetlinkSocket()
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "line",
    [
        "10.0.0.0/24 via 192.0.2.2 proto 72",
        "10.0.0.0/24 dev wan",
        "10.0.0.1/32 via 192.0.2.2 onlink dev wan",
        "10.0.0.0/31 nexthop via 192.0.2.2 weight 3 nexthop via 192.0.2.3",
        "10.0.0.0/24 via 192.0.2.2 metric 5 mtu 1400 src 192.0.2.1",
        "default via 192.0.2.2",
        "2001:db8:1::/48 via 2001:db8::2 proto 72",
        "2001:db8:1::1/128 dev wan metric 9",
        "default via 2001:db8::2",
    ],
)
def test_it_shows_what_a_dump_shows(netns: Namespace, sock: NetlinkSocket, line: str) -> None:
    family = 6 if "2001:" in line else 4
    netns.ip(f"-{family} route add {line}")
    prefix = line.split()[0].replace("default", "::/0" if family == 6 else "0.0.0.0/0")
    key = pack_prefix(prefix)
    bodies = settle(dump_routes(sock, family, table=MAIN), family)
    (body,) = [one for one in bodies if key_of(one) == key]
    found = look_at(sock, MAIN, key)
    assert found.known
    assert found.body == body


def test_the_legs_of_an_ipv6_route_are_all_told(netns: Namespace, sock: NetlinkSocket) -> None:
    """In an order of its own."""
    legs = [f"2001:db8::{number}" for number in range(2, 6)]
    netns.ip("-6 route add 2001:db8:1::/48" + "".join(f" nexthop via {leg}" for leg in legs))
    found = look_at(sock, MAIN, pack_prefix("2001:db8:1::/48"))
    assert found.body is not None
    told = [one.gateway for one in Reader({}).read(found.body)[0].nexthops]
    assert sorted(told) == legs
    at = told.index(legs[0])
    assert told[at:] + told[:at] == legs


def test_one_that_is_partly_hidden_is_found(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.ip("route add 10.0.0.0/8 via 192.0.2.2 proto 72")
    netns.ip("route add 10.0.0.0/24 via 192.0.2.3")
    netns.ip("route add 10.255.255.0/24 via 192.0.2.3")
    found = look_at(sock, MAIN, pack_prefix("10.0.0.0/8"))
    assert found.body is not None
    assert key_of(found.body) == pack_prefix("10.0.0.0/8")


def test_one_that_is_hidden_everywhere_is_not_known(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.ip("route add 10.0.0.0/8 via 192.0.2.2")
    for half in ("10.0.0.0/9", "10.128.0.0/9"):
        netns.ip(f"route add {half} via 192.0.2.3")
    assert not look_at(sock, MAIN, pack_prefix("10.0.0.0/8")).known


@pytest.mark.parametrize("default", [True, False])
def test_one_that_is_not_there(netns: Namespace, sock: NetlinkSocket, default: bool) -> None:
    if default:
        netns.ip("route add default via 192.0.2.2")
        netns.ip("-6 route add default via 2001:db8::2")
    for prefix in ("10.0.0.0/8", "2001:db8:1::/48"):
        found = look_at(sock, MAIN, pack_prefix(prefix))
        assert found.known
        assert found.body is None


def test_other_tables_and_routes_to_nowhere_are_not_known(
    netns: Namespace, sock: NetlinkSocket
) -> None:
    netns.ip("route add 10.0.0.0/8 via 192.0.2.2 table 300")
    assert not look_at(sock, 300, pack_prefix("10.0.0.0/8")).known
    netns.ip("rule add priority 100 lookup 300")
    assert look_at(sock, 300, pack_prefix("10.0.0.0/8")).known
    netns.ip("route add blackhole 198.51.100.0/24")
    assert not look_at(sock, MAIN, pack_prefix("198.51.100.0/24")).known


def test_of_several_the_one_in_effect_is_told(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.ip("route add 10.0.0.0/8 via 192.0.2.2 metric 5")
    netns.ip("route append 10.0.0.0/8 via 192.0.2.3 metric 5")
    netns.ip("route add 10.0.0.0/8 via 192.0.2.4 metric 9")
    found = look_at(sock, MAIN, pack_prefix("10.0.0.0/8"))
    bodies = settle(dump_routes(sock, 4, table=MAIN), 4)
    assert found.body == next(one for one in bodies if key_of(one) == pack_prefix("10.0.0.0/8"))
