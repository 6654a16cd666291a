"""Two LANs behind one router: who reaches an exposed service by the outside address, and how."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from tests.firewall.home_network import ISP, NAT, POLICY, ROUTER, WAN, ZONES, HomeNetwork
from tests.firewall.hosts import Host, new_host

DMZ = {
    "Interface/dmz": "{ifname: dmz0, managed: false}",
    "IPv4StaticAddress/dmz": "{interface: dmz, address: 192.168.170.1/24}",
    "Zone/Zone.with-15_bytes": "{interfaces: [dmz]}",
}
HOST = "192.168.170.20"
SERVICE = (
    "{{fromZone: uplink, protocol: tcp, externalPort: 443, internalAddress: {}, hairpin: true}}"
)
# Both at once: marks on everything that leaves, and a way of its own for the other LAN.
WAYS = {
    "IPv4DefaultRoutePolicy/out": "{candidates: [{interface: wan, gatewaySource: static,"
    f" gateway: {ISP}, priority: 10, table: 111, mark: 0x111}}]}}",
    "IPv4PolicyRoute/dmz": "{outboundInterface: wan, gatewaySource: static,"
    f" gateway: {ISP}, priority: 20, table: 112, mark: 0x112, sourceCIDRs: [192.168.170.0/24]}}",
}


@pytest.fixture
def dmz(home: HomeNetwork) -> Iterator[Host]:
    with new_host() as host:
        there = f"/proc/{os.getpid()}/fd/{host.namespace}"
        home.router.ip(
            f"link add dmz0 type veth peer name eth0 netns {there}",
            "link set dmz0 up",
            "addr add 192.168.170.1/24 dev dmz0",
        )
        host.ip(
            "link set eth0 up",
            f"addr add {HOST}/24 dev eth0",
            "route add default via 192.168.170.1",
        )
        yield host


def peer_of(one: socket.socket, listening: socket.socket) -> str:
    """Whom the service sees, once both have talked."""
    accepted, (peer, _) = listening.accept()
    with accepted:
        one.sendall(b"question")
        assert accepted.recv(64) == b"question"
        accepted.sendall(b"answer")
        assert one.recv(64) == b"answer"
    return str(peer)


@pytest.mark.parametrize("more", [{}, WAYS], ids=["plain", "with marks"])
def test_a_service_in_the_other_lan(home: HomeNetwork, dmz: Host, more: dict[str, str]) -> None:
    home.load(ZONES, POLICY, NAT, DMZ, more, {"ExposeService/web": SERVICE.format(HOST)})
    with dmz.listen(HOST, 443) as listening:
        with home.isp.connect(WAN, 443) as outside:
            assert peer_of(outside, listening) == ISP
        with home.client.connect(WAN, 443) as client:
            assert peer_of(client, listening) == "192.168.160.50"  # no need to hide it
        with dmz.connect(WAN, 443) as itself:
            assert peer_of(itself, listening) == "192.168.170.1"
        # The zones are as closed to each other as before.
        assert not home.client.reaches(HOST, 443)


def test_the_routers_own_addresses_in_both_lans_stay_its_own(home: HomeNetwork, dmz: Host) -> None:
    more = {
        "FirewallPolicy/policy": "{input: {default: accept}}",
        "IPv4StaticAddress/lan": f"{{interface: lan, address: {ROUTER}/24}}",
        "ExposeService/web": SERVICE.format(HOST),
    }
    home.load(ZONES, NAT, DMZ, more)
    with home.router.listen("0.0.0.0", 443) as own:  # noqa: S104
        for host in (home.client, dmz):
            for address in (ROUTER, "192.168.170.1"):
                host.connect(address, 443).close()
                own.accept()[0].close()
