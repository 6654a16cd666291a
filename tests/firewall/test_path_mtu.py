"""TCP handshakes on the wire, both ways."""

from __future__ import annotations

import pytest

from tests.firewall.home_network import ISP, ISP6, NAT, HomeNetwork
from tests.firewall.hosts import handshake_mss


def policy(more: str) -> dict[str, str]:
    return {"PathMTUPolicy/home": f"{{fromInterface: lan, toInterfaces: [wan], {more}}}"}


STATIC = "mtu: {source: static, value: 1454}, "


@pytest.mark.parametrize(
    ("more", "target", "mss"),
    [
        (STATIC + "tcpMSSClamp: {enabled: true}", ISP, 1414),
        (STATIC + "tcpMSSClamp: {enabled: true}", ISP6, 1394),
        (STATIC + "tcpMSSClamp: {enabled: true, families: [ipv6]}", ISP, 1460),
        (STATIC + "tcpMSSClamp: {enabled: true, families: [ipv4]}", ISP6, 1440),
        # Never raised: Ethernet's own is smaller than what this would allow.
        ("mtu: {source: static, value: 9000}, tcpMSSClamp: {enabled: true}", ISP, 1460),
    ],
)
def test_both_ends_are_told(home: HomeNetwork, more: str, target: str, mss: int) -> None:
    home.load(NAT, policy(more))
    with (
        home.isp.wire("isp0") as outside,
        home.client.wire("eth0") as inside,
        home.isp.listen(target, 80),
        home.client.connect(target, 80),
    ):
        assert handshake_mss(outside, ack=False) == mss
        assert handshake_mss(inside, ack=True) == mss


def test_connections_from_outside_too(home: HomeNetwork) -> None:
    home.load(policy(STATIC + "tcpMSSClamp: {enabled: true}"))
    with (
        home.client.wire("eth0") as inside,
        home.isp.wire("isp0") as outside,
        home.client.listen("192.168.160.50", 80),
        home.isp.connect("192.168.160.50", 80),
    ):
        assert handshake_mss(inside, ack=False) == 1414
        assert handshake_mss(outside, ack=True) == 1414


def test_other_ways_are_left_alone(home: HomeNetwork) -> None:
    home.router.ip("link add other0 type bridge", "link set other0 up")
    other = {
        "Interface/other": "{ifname: other0, managed: false}",
        "PathMTUPolicy/home": "{fromInterface: other, toInterfaces: [wan],"
        " mtu: {source: static, value: 1300}, tcpMSSClamp: {enabled: true}}",
    }
    home.load(NAT, other)
    with (
        home.isp.wire("isp0") as outside,
        home.isp.listen(ISP, 80),
        home.client.connect(ISP, 80),
    ):
        assert handshake_mss(outside, ack=False) == 1460
