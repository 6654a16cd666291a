"""What gets through the firewall and what does not, by trying."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.firewall.home_network import (
    CLIENT,
    ISP,
    ISP6,
    NAT,
    POLICY,
    ROUTER,
    WAN,
    WAN6,
    ZONES,
    HomeNetwork,
    bridge_filter,
)
from tests.firewall.hosts import SHORT

WEB = {
    "ExposeService/web": "{fromZone: uplink, protocol: tcp, externalPort: 443,"
    " internalAddress: 192.168.160.20, internalPort: 8443}"
}
HAIRPIN = {"ExposeService/web": WEB["ExposeService/web"].replace("}", ", hairpin: true}")}


def talk(one: socket.socket, other: socket.socket) -> None:
    """Both ways."""
    one.sendall(b"question")
    assert other.recv(64) == b"question"
    other.sendall(b"answer")
    assert one.recv(64) == b"answer"


def test_clients_get_out_under_the_routers_address(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY, NAT)
    with home.isp.listen(ISP, 80) as listening, home.client.connect(ISP, 80) as client:
        accepted, (peer, _) = listening.accept()
        with accepted:
            assert peer == WAN
            talk(client, accepted)


def test_nobody_gets_in_uninvited(home: HomeNetwork) -> None:
    with home.client.listen(CLIENT, 80), home.router.listen("0.0.0.0", 22):  # noqa: S104
        assert home.isp.reaches(CLIENT, 80)  # without a firewall
        assert home.isp.reaches(WAN, 22)
        home.load(ZONES, POLICY, NAT)
        assert not home.isp.reaches(CLIENT, 80)
        assert not home.isp.reaches(WAN, 22)
        assert home.client.reaches(ROUTER, 22)


def test_services_of_the_router_are_for_the_zones_named(home: HomeNetwork) -> None:
    policy = {
        "FirewallPolicy/policy": """
        routerAccess:
          ssh: {fromZones: [home]}
          dns: {fromZones: []}
          dhcp: {fromZones: [home]}
          other: [{protocol: tcp, ports: [8080], fromZones: [uplink]}]"""
    }
    home.load(ZONES, policy)
    everywhere = "0.0.0.0"  # noqa: S104
    with (
        home.router.listen(everywhere, 53),
        home.router.listen(everywhere, 8080),
        home.router.datagrams(everywhere, 67) as dhcp,
    ):
        assert not home.client.reaches(ROUTER, 53)
        assert not home.client.reaches(ROUTER, 8080)
        assert home.isp.reaches(WAN, 8080)
        with home.isp.datagrams(ISP, 68) as outside, home.client.datagrams(CLIENT, 68) as inside:
            outside.sendto(b"outside", (WAN, 67))
            inside.sendto(b"inside", (ROUTER, 67))
            assert dhcp.recv(64) == b"inside"


def test_an_interface_in_no_zone_gets_the_default(home: HomeNetwork) -> None:
    home.load(
        {"Zone/uplink": "{interfaces: [wan]}"},
        {
            "FirewallPolicy/policy": """
        routerAccess: {ssh: {fromZones: [uplink]}, dns: {fromZones: []}, dhcp: {fromZones: []}}"""
        },
    )
    with home.router.listen("0.0.0.0", 22), home.isp.listen(ISP, 80):  # noqa: S104
        assert not home.client.reaches(ROUTER, 22)
        assert not home.client.reaches(ISP, 80)
        assert home.isp.reaches(WAN, 22)


def test_an_exposed_service_is_reached_from_outside(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY, NAT, WEB)
    with home.server.listen("192.168.160.20", 8443) as listening:
        with home.isp.connect(WAN, 443) as client:
            accepted, (peer, _) = listening.accept()
            with accepted:
                assert peer == ISP  # the server sees who it is
                talk(client, accepted)
        # Not around the translation, which is what looks at the sources.
        assert not home.isp.reaches("192.168.160.20", 8443)
        # Nor from inside, as long as nobody asked for that.
        assert not home.client.reaches(WAN, 443)


def test_only_the_sources_get_to_an_exposed_service(home: HomeNetwork) -> None:
    home.isp.ip("addr add 198.51.100.7/24 dev isp0")
    spec = WEB["ExposeService/web"].replace("}", ", sources: [198.51.100.7, 198.51.100.128/25]}")
    home.load(ZONES, POLICY, {"ExposeService/web": spec})
    with home.server.listen("192.168.160.20", 8443):
        assert not home.isp.reaches(WAN, 443) or pytest.fail("an address that is not a source")
        home.isp.connect(WAN, 443, source=("198.51.100.7", 0)).close()


def test_hairpin(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY, NAT, HAIRPIN)
    with home.server.listen("192.168.160.20", 8443) as listening:
        with home.client.connect(WAN, 443) as client:
            accepted, (peer, _) = listening.accept()
            with accepted:
                assert peer == ROUTER
                talk(client, accepted)
        # Whatever address the router has outside, at the time.
        home.router.ip("addr del 198.51.100.2/24 dev wan0", "addr add 198.51.100.99/24 dev wan0")
        home.router.ip(f"route replace default via {ISP}")
        with home.client.connect("198.51.100.99", 443) as client:
            accepted, _ = listening.accept()
            with accepted:
                talk(client, accepted)


def test_hairpin_leaves_the_routers_own_services_alone(home: HomeNetwork) -> None:
    accept = {"FirewallPolicy/policy": "{input: {default: accept}}"}
    home.router.ip("link add dmz0 type bridge", "addr add 192.168.170.1/24 dev dmz0")
    home.router.ip("link set dmz0 up")
    dmz = {
        "Interface/dmz": "{ifname: dmz0, managed: false}",
        "Zone/dmz": "{interfaces: [dmz]}",
        "IPv4StaticAddress/dmz": "{interface: dmz, address: 192.168.170.1/24}",
    }
    home.load(ZONES, accept, HAIRPIN, dmz)
    with home.router.listen("0.0.0.0", 443) as own:  # noqa: S104
        for address in (ROUTER, "192.168.170.1"):
            home.client.connect(address, 443).close()
            own.accept()[0].close()


def test_hairpin_over_a_filtered_bridge(home: HomeNetwork) -> None:
    bridge_filter(home.router, on=True)
    home.load(ZONES, POLICY, NAT, HAIRPIN)
    with (
        home.server.listen("192.168.160.20", 8443) as listening,
        home.client.connect(WAN, 443) as client,
        listening.accept()[0] as accepted,
    ):
        talk(client, accepted)


def test_neighbours_are_found_and_pings_answered(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY)
    for host, address in ((home.isp, WAN6), (home.client, "2001:db8:1::1")):
        host.run("ip", "-6", "neigh", "flush", "all")
        home.router.run("ip", "-6", "neigh", "flush", "all")
        host.ping(address)
    home.client.ping(ISP6)
    home.client.ping(ROUTER)


def test_ipv6_pinhole(home: HomeNetwork) -> None:
    hole = (
        "{family: ipv6, fromZone: uplink, protocol: tcp, externalPort: 443,"
        ' internalAddress: "2001:db8:1::20"'
    )
    with (
        home.server.listen("2001:db8:1::20", 443),
        home.server.listen("2001:db8:1::20", 8443),
        home.client.listen("2001:db8:1::50", 443),
    ):
        home.load(ZONES, POLICY)
        assert not home.isp.reaches("2001:db8:1::20", 443)
        home.load(ZONES, POLICY, {"ExposeService/web": hole + "}"})
        assert home.isp.reaches("2001:db8:1::20", 443)
        assert not home.isp.reaches("2001:db8:1::20", 8443)
        assert not home.isp.reaches("2001:db8:1::50", 443)
        home.load(ZONES, POLICY, {"ExposeService/web": hole + ', sources: ["2001:db8:ee::/48"]}'})
        assert not home.isp.reaches("2001:db8:1::20", 443)
        home.load(ZONES, POLICY, {"ExposeService/web": hole + ', sources: ["2001:db8:ff::/48"]}'})
        assert home.isp.reaches("2001:db8:1::20", 443)


@pytest.mark.parametrize("sources", ["", ', sources: ["2001:db8:ff::/64"]'])
def test_ipv6_pinhole_whatever_the_prefix(home: HomeNetwork, sources: str) -> None:
    home.server.ip("addr add 2001:db8:2::20/64 dev eth0 nodad")
    home.router.ip("addr add 2001:db8:2::1/64 dev lan0 nodad")
    home.isp.ip(f"route add 2001:db8:2::/64 via {WAN6}")
    hole = (
        "{family: ipv6, fromZone: uplink, protocol: tcp, externalPort: 443,"
        f' internalAddress: "::20"{sources}}}'
    )
    home.load(ZONES, POLICY, {"ExposeService/web": hole})
    with home.server.listen("::", 443), home.client.listen("::", 443):
        assert home.isp.reaches("2001:db8:1::20", 443)
        assert home.isp.reaches("2001:db8:2::20", 443)
        assert not home.isp.reaches("2001:db8:1::50", 443)
        outside = sources.replace("ff::", "ee::")
        home.load(ZONES, POLICY, {"ExposeService/web": hole.replace(sources, outside)})
        assert home.isp.reaches("2001:db8:2::20", 443) == (not sources)


@pytest.mark.parametrize("sources", ["", ', sources: ["2001:db8:ff::/64"]'])
def test_ipv6_pinhole_with_another_port(home: HomeNetwork, sources: str) -> None:
    hole = (
        "{family: ipv6, fromZone: uplink, protocol: tcp, externalPort: 443,"
        f' internalAddress: "2001:db8:1::20", internalPort: 8443{sources}}}'
    )
    home.load(ZONES, POLICY, {"ExposeService/web": hole})
    with home.server.listen("2001:db8:1::20", 8443) as listening:
        with home.isp.connect("2001:db8:1::20", 443) as client:
            accepted, _ = listening.accept()
            with accepted:
                talk(client, accepted)
        assert not home.isp.reaches("2001:db8:1::20", 8443)


def test_replies_of_dhcp_servers_get_in(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY)
    with (
        home.router.datagrams("::", 546) as client6,
        home.router.datagrams("0.0.0.0", 68) as client4,  # noqa: S104
        home.isp.datagrams("::", 547) as server6,
        home.isp.datagrams(ISP, 67) as server4,
    ):
        server6.sendto(b"from a global address", (WAN6, 546))
        with home.isp.inside():
            far = socket.if_nametoindex("isp0")
        server6.sendto(b"from a link-local address", (_link_local(home), 546, 0, far))
        assert client6.recv(64) == b"from a link-local address"
        server4.sendto(b"offer", (WAN, 68))
        assert client4.recv(64) == b"offer"


def _link_local(home: HomeNetwork) -> str:
    with home.router.inside() as namespace:
        (found,) = namespace.ip_json("-6 addr show dev wan0")
    (local,) = (each["local"] for each in found["addr_info"] if each["scope"] == "link")
    return str(local)


def test_established_flows_survive_a_change(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY, NAT, WEB)
    with (
        home.isp.listen(ISP, 80) as outside,
        home.server.listen("192.168.160.20", 8443) as inside,
        home.client.connect(ISP, 80) as going_out,
        home.isp.connect(WAN, 443) as coming_in,
    ):
        accepted_out, accepted_in = outside.accept()[0], inside.accept()[0]
        with accepted_out, accepted_in:
            talk(going_out, accepted_out)
            closed = {
                "FirewallPolicy/policy": POLICY["FirewallPolicy/policy"].replace(
                    "{from: home, to: uplink}", ""
                )
            }
            moved = {"ExposeService/web": WEB["ExposeService/web"].replace("443,", "444,", 1)}
            home.load(ZONES, closed, NAT, moved)
            talk(going_out, accepted_out)
            talk(coming_in, accepted_in)
            assert not home.client.reaches(ISP, 80)
            assert not home.isp.reaches(WAN, 443)
            assert home.isp.reaches(WAN, 444)


def test_nothing_arrives_that_is_not_wanted(home: HomeNetwork) -> None:
    """Datagrams too, which no handshake holds back."""
    home.load(ZONES, POLICY)
    with home.router.datagrams(WAN, 5000) as here, home.isp.datagrams(ISP, 5000) as there:
        there.sendto(b"hello", (WAN, 5000))
        here.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            here.recv(64)


def test_no_packet_of_a_running_flow_is_lost_while_tables_change(home: HomeNetwork) -> None:
    home.load(ZONES, POLICY, NAT, WEB)
    many = {
        f"ExposeService/s{port}": "{fromZone: uplink, protocol: tcp,"
        f" externalPort: {port}, internalAddress: 192.168.160.20}}"
        for port in range(1000, 2000)
    }
    with home.isp.datagrams(ISP, 5000) as far, home.client.datagrams(CLIENT, 5000) as near:
        sent = 0

        def exchange() -> None:
            nonlocal sent
            sent += 1
            near.sendto(sent.to_bytes(4, "big"), (ISP, 5000))
            data, peer = far.recvfrom(64)
            far.sendto(data, peer)
            assert int.from_bytes(near.recv(64), "big") == sent

        exchange()
        for more in (many, {}, many):
            loading = threading.Thread(target=home.load, args=(ZONES, POLICY, NAT, WEB, more))
            loading.start()
            while loading.is_alive():
                exchange()
            loading.join()
        assert sent > 100
