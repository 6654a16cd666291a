"""What a client behind the router gets, by dnsmasq and dhcpcd as Debian has them."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

from holdfast.resources.facts import GONE, Facts, Lease
from tests.lan.network import Resources, Scene, name_server, until

MAC = "02:00:5e:10:00:20"
DUID = f"00:03:00:01:{MAC}"

LAN: dict[str, dict[str, Any]] = {
    "Interface/lan": {"ifname": "lan0"},
    "IPv4StaticAddress/lan": {"interface": "lan", "address": "192.168.1.1/24"},
    "IPv6StaticAddress/lan": {"interface": "lan", "address": "2001:db8:1::1/64"},
    "IPv4DHCPServer/lan": {"listenInterfaces": ["lan"], "dns": {"upstreamSource": "none"}},
    "IPv4DHCPScope/lan": {
        "server": "lan", "interface": "lan",
        "rangeStart": "192.168.1.100", "rangeEnd": "192.168.1.109", "authoritative": True,
    },
}  # fmt: skip
SIX: dict[str, dict[str, Any]] = {
    "IPv6DHCPServer/lan": {"listenInterfaces": ["lan"]},
    "IPv6DHCPScope/lan": {"server": "lan", "interface": "lan"},
}


def test_a_client_gets_address_router_and_dns(router: Scene) -> None:
    client = router.host("c0", "lan0")
    router.converge(LAN)
    told = client.dhcp(4, "option routers, domain_name_servers")
    first, last = IPv4Address("192.168.1.100"), IPv4Address("192.168.1.109")
    assert first <= IPv4Address(told["new_ip_address"]) <= last
    assert told["new_subnet_mask"] == "255.255.255.0"
    assert told["new_routers"] == told["new_domain_name_servers"] == "192.168.1.1"
    assert told["new_dhcp_lease_time"] == str(12 * 3600)


def test_what_a_scope_says_otherwise(router: Scene) -> None:
    client = router.host("c0", "lan0")
    scope = LAN["IPv4DHCPScope/lan"] | {
        "routerSource": "none", "dnsSource": "static", "leaseTime": "30m",
        "dnsServers": ["192.0.2.1", "192.0.2.2"],
    }  # fmt: skip
    router.converge(LAN | {"IPv4DHCPScope/lan": scope})
    told = client.dhcp(4, "option routers, domain_name_servers")
    assert "new_routers" not in told
    assert told["new_domain_name_servers"] == "192.0.2.1 192.0.2.2"
    assert told["new_dhcp_lease_time"] == "1800"


def test_no_dns_server_is_named_where_none_shall_be(router: Scene) -> None:
    client = router.host("c0", "lan0")
    scope = LAN["IPv4DHCPScope/lan"] | {
        "routerSource": "static", "router": "192.168.1.9", "dnsSource": "none",
    }  # fmt: skip
    router.converge(LAN | {"IPv4DHCPScope/lan": scope})
    told = client.dhcp(4, "option routers, domain_name_servers")
    assert told["new_routers"] == "192.168.1.9"
    assert "new_domain_name_servers" not in told


def test_a_reservation_is_kept_and_has_a_name(router: Scene) -> None:
    client = router.host("c0", "lan0", MAC)
    reserved = {
        "scope": "lan", "mac": MAC, "address": "192.168.1.20", "hostname": "nas",
        "leaseTime": "1h",
    }  # fmt: skip
    router.converge(LAN | {"IPv4DHCPReservation/nas": reserved})
    told = client.dhcp(4)
    assert told["new_ip_address"] == "192.168.1.20"
    assert told["new_dhcp_lease_time"] == "3600"
    assert client.dig("192.168.1.1", "nas") == "192.168.1.20"


def test_a_reservation_by_client_id(router: Scene) -> None:
    client = router.host("c0", "lan0")
    reserved = {"scope": "lan", "clientId": "ff:00:01:02", "address": "192.168.1.30"}
    router.converge(LAN | {"IPv4DHCPReservation/nas": reserved})
    assert client.dhcp(4, "clientid ff:00:01:02")["new_ip_address"] == "192.168.1.30"


def test_addresses_by_router_advertisement_with_the_right_mtu(router: Scene) -> None:
    client = router.host("c0", "lan0")
    mtu = {
        "fromInterface": "lan", "toInterfaces": ["wan"], "mtu": {"source": "static", "value": 1454},
        "ipv6RA": {"enabled": True, "scope": "lan"},
    }  # fmt: skip
    router.netns.veth("wan0", "isp0")
    router.converge(LAN | SIX | {"Interface/wan": {"ifname": "wan0"}, "PathMTUPolicy/lan": mtu})

    def has_address() -> bool:
        return "2001:db8:1:" in client.ip("-6 -br addr show dev c0 scope global")

    until(has_address, "an address out of the announced prefix")
    assert client.run("sysctl", "-n", "net.ipv6.conf.c0.mtu") == "1454"
    assert "via fe80::" in client.ip("-6 route show default")
    said = client.advertisement()
    assert said["dns"] == ["2001:db8:1::1"]
    assert (said["managed"], said["other"], said["mtu"]) == (False, True, 1454)


def test_no_default_route_is_announced_where_none_shall_be(router: Scene) -> None:
    client = router.host("c0", "lan0")
    scope = SIX["IPv6DHCPScope/lan"] | {
        "mode": "ra-only", "defaultRoute": False, "dnsSource": "none",
    }  # fmt: skip
    router.converge(LAN | SIX | {"IPv6DHCPScope/lan": scope})
    said = client.advertisement()
    assert (said["lifetime"], said["dns"], said["mtu"]) == (0, [], 1500)
    assert (said["managed"], said["other"]) == (False, False)
    assert client.ip("-6 route show default") == ""


def test_addresses_by_dhcp6_and_a_reservation(router: Scene) -> None:
    client = router.host("c0", "lan0", MAC)
    other = router.host("c1", "lan1")
    router.netns.ip("link add br0 type bridge")
    for link in ("lan0", "lan1"):
        router.netns.ip(f"link set {link} master br0")
    router.netns.ip("link set br0 up")
    scope = SIX["IPv6DHCPScope/lan"] | {
        "mode": "stateful", "rangeStart": "::1000", "rangeEnd": "::10ff",
    }  # fmt: skip
    reserved = {"scope": "lan", "duid": DUID, "address": "::20", "hostname": "nas6"}
    router.converge(
        LAN
        | SIX
        | {
            "Interface/lan": {"ifname": "br0"},
            "IPv6DHCPScope/lan": scope,
            "IPv6DHCPReservation/nas": reserved,
        }
    )
    asked = ("noipv6rs", "ia_na 1", "option dhcp6_name_servers")
    told = client.dhcp(6, *asked)
    assert told["new_dhcp6_ia_na1_ia_addr1"] == "2001:db8:1::20"
    assert told["new_dhcp6_name_servers"] == "2001:db8:1::1"
    address = IPv6Address(other.dhcp(6, *asked)["new_dhcp6_ia_na1_ia_addr1"])
    assert IPv6Address("2001:db8:1::1000") <= address <= IPv6Address("2001:db8:1::10ff")
    named = router.netns.run("dig", "+short", "@127.0.0.1", "nas6", "AAAA")
    assert named.strip() == "2001:db8:1::20"


def test_one_client_has_one_name_in_both_families(router: Scene) -> None:
    client = router.host("c0", "lan0", MAC)
    scope = SIX["IPv6DHCPScope/lan"] | {
        "mode": "stateful", "rangeStart": "::1000", "rangeEnd": "::10ff",
    }  # fmt: skip
    who = {"scope": "lan", "mac": MAC, "hostname": "nas"}
    router.converge(
        LAN
        | SIX
        | {
            "IPv6DHCPScope/lan": scope,
            "IPv4DHCPReservation/nas": who | {"address": "192.168.1.20"},
            "IPv6DHCPReservation/nas": who | {"address": "::20"},
        }
    )
    assert client.dhcp(4)["new_ip_address"] == "192.168.1.20"
    told = client.dhcp(6, "noipv6rs", "ia_na 1")
    assert told["new_dhcp6_ia_na1_ia_addr1"] == "2001:db8:1::20"
    for kind, address in (("A", "192.168.1.20"), ("AAAA", "2001:db8:1::20")):
        assert router.netns.run("dig", "+short", "@127.0.0.1", "nas", kind).strip() == address


def test_a_link_that_comes_later_is_served(router: Scene) -> None:
    first = router.apply(LAN)
    assert "IPv4StaticAddress/lan" in {held.owner for held in first.after.pending}
    pid = router.pid
    client = router.host("c0", "lan0")
    router.converge(LAN)
    assert client.dhcp(4)["new_routers"] == "192.168.1.1"
    assert router.pid == pid


def test_a_thousand_clients_are_not_all(router: Scene) -> None:
    client = router.host("c0", "lan0")
    large = LAN | {
        "IPv4StaticAddress/lan": {"interface": "lan", "address": "10.0.0.1/8"},
        "IPv4DHCPScope/lan": LAN["IPv4DHCPScope/lan"]
        | {"rangeStart": "10.1.0.0", "rangeEnd": "10.1.255.255"},
    }
    taken = "".join(
        f"0 02:00:00:00:{high:02x}:{low:02x} 10.1.{high}.{low} * *\n"
        for high in range(10)
        for low in range(100)
    )
    leases = router.paths.under("/var/lib/holdfast/dnsmasq.leases")
    leases.parent.mkdir(parents=True)
    leases.write_text(taken)
    router.converge(large)
    assert client.dhcp(4)["new_ip_address"].startswith("10.1.")


UPSTREAM: dict[str, dict[str, Any]] = {
    "Interface/wan": {"ifname": "wan0"},
    "IPv4StaticAddress/wan": {"interface": "wan", "address": "203.0.113.2/24"},
    "IPv4DHCPServer/lan": {
        "listenInterfaces": ["lan"],
        "dns": {"upstreamSource": "dhcp4", "upstreamInterface": "wan"},
    },
}


def test_names_are_resolved_upstream_and_through_the_forwarder(router: Scene) -> None:
    client = router.host("c0", "lan0")
    client.ip("addr add 192.168.1.50/24 dev c0")
    isp = router.host("isp0", "wan0")
    isp.ip("addr add 203.0.113.1/24 dev isp0")
    isp.ip("addr add 203.0.113.53/24 dev isp0")
    forwarder = {"domain": "corp.example", "upstreamServers": ["203.0.113.1"]}
    everything = LAN | UPSTREAM | {"DNSConditionalForwarder/corp": forwarder}
    lease = Lease((), IPv4Address("203.0.113.1"), (IPv4Address("203.0.113.53"),))
    router.converge(everything, Facts(leases4={"wan0": lease}))
    with name_server(isp, "host.corp.example", "198.51.100.7"):
        assert client.dig("192.168.1.1", "host.corp.example") == "198.51.100.7"
    with name_server(isp, "www.example", "198.51.100.8"):
        assert client.dig("192.168.1.1", "www.example") == "198.51.100.8"
    # Only the links it serves: nothing listens towards the provider.
    assert isp.dig("203.0.113.2", "www.example") == ""
    assert "203.0.113.2" not in router.netns.run("ss", "-lnuH")


def test_dhcp_goes_on_while_nothing_is_known_of_the_wan(router: Scene) -> None:
    client = router.host("c0", "lan0")
    router.netns.veth("wan0", "isp0")
    report = router.converge(LAN | UPSTREAM)
    waiting = {held.owner: held.reason for held in report.after.pending}
    assert "DNS servers" in waiting["IPv4DHCPServer/lan"]
    assert client.dhcp(4)["new_ip_address"].startswith("192.168.1.10")


def test_a_new_prefix_reaches_clients_without_a_restart(router: Scene) -> None:
    client = router.host("c0", "lan0")
    router.netns.veth("wan0", "isp0")
    delegated: Resources = {
        "Interface/wan": {"ifname": "wan0"},
        "IPv6PrefixDelegation/wan": {"interface": "wan"},
        "IPv6DelegatedAddress/lan": {
            "prefixDelegation": "wan", "interface": "lan", "addressSuffix": "::3",
        },
        "IPv6DHCPScope/lan": {"server": "lan", "delegatedAddress": "lan"},
    }  # fmt: skip
    everything = {**LAN, **SIX, **delegated}
    del everything["IPv6StaticAddress/lan"]

    def announced(wanted: dict[str, bool], dns: str) -> bool:
        """Which prefixes clients shall use, and which not any more."""
        said = client.advertisement()
        uses = {prefix: preferred > 0 for prefix, preferred in said["prefixes"].items()}
        return uses == wanted and all(one.startswith(dns) for one in said["dns"])

    first = router.apply(everything)
    assert "IPv6DHCPScope/lan" in {held.owner for held in first.after.pending}
    pid = router.pid
    a, b = "2001:db8:a::/64", "2001:db8:b::/64"
    for prefix, dns, wanted in (
        ("2001:db8:a::/56", "2001:db8:a::3", {a: True}),
        ("2001:db8:b::/56", "2001:db8:b::3", {a: False, b: True}),
    ):
        router.apply(everything, Facts(delegations={"wan0": (IPv6Network(prefix),)}))
        until(partial(announced, wanted, dns), f"{prefix} is announced")
    router.apply(everything, Facts(delegations={"wan0": GONE}, addresses={"lan0": ()}))
    # The name server can still be reached by its address on the link.
    until(partial(announced, {a: False, b: False}, "fe80::"), "both are withdrawn")
    accepts = router.netns.run("sysctl", "-n", "net.ipv6.conf.lan0.accept_ra")
    assert accepts.strip() == "0"  # or the router would keep an address, and with it the prefix
    assert router.pid == pid
