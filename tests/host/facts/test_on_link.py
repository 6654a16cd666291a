"""What the kernel says of gateways, whichever way it would send a packet to them."""

from __future__ import annotations

from ipaddress import ip_address

from holdfast.engine.kinds.route import MAIN_TABLE
from holdfast.host.facts.on_link import read_on_link
from holdfast.host.netlink.socket import NetlinkSocket
from tests.namespace import Namespace


def links(gateway: str, table: int = MAIN_TABLE) -> tuple[str, ...]:
    sock = NetlinkSocket()
    asked = table, ip_address(gateway)
    try:
        return read_on_link(sock, [asked]).get(asked, ())
    finally:
        sock.close()


def test_by_the_networks_of_links(netns: Namespace) -> None:
    netns.veth("wan0", "far0", "10.0.0.1/8", "2001:db8:1::1/64")
    netns.veth("lan0", "far1", "10.1.0.1/16")
    netns.veth("ppp0", "far2")
    netns.ip("addr add 192.0.2.1 peer 198.51.100.1 dev ppp0")
    assert links("10.1.0.9") == ("lan0", "wan0"), "the longest prefix first"
    assert links("10.2.0.9") == ("wan0",)
    assert links("198.51.100.1") == ("ppp0",)
    assert links("2001:db8:1::fe") == ("wan0",)
    assert links("10.1.0.9", 100) == ()
    netns.ip("route add 203.0.113.0/24 dev lan0 table 100")
    assert links("203.0.113.9", 100) == ("lan0",)
    assert links("203.0.113.9") == ()


def test_whatever_else_leads_there(netns: Namespace) -> None:
    netns.veth("lan0", "far0", "10.1.0.1/16", "2001:db8:1::1/64")
    netns.veth("ppp0", "farp")
    for command in (
        "route add default dev ppp0",
        "route add 128.0.0.0/1 dev ppp0",
        "-6 route add default dev ppp0",
        "route add 192.0.2.0/24 via 10.1.0.254",
        "route add unreachable 203.0.113.0/24",
        "route add 10.1.0.0/16 dev ppp0 table 100",
        "-6 route add 2001:db8:1::/64 dev ppp0 table 100",
        "rule add priority 100 lookup 100",
        "-6 rule add priority 100 lookup 100",
    ):
        netns.ip(command)
    assert links("10.1.0.9") == ("lan0",)
    assert links("2001:db8:1::fe") == ("lan0",)
    for gateway in ("192.0.2.9", "203.0.113.9", "172.16.0.1", "2001:db8:2::fe", "10.1.0.1"):
        found = links(gateway)
        assert "ppp0" not in found, gateway
        assert found == (("lan0",) if gateway == "10.1.0.1" else ()), gateway
