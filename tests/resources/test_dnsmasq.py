"""What is written for dnsmasq depending on what is known."""

from __future__ import annotations

from ipaddress import (
    IPv4Interface,
    IPv6Interface,
    IPv6Network,
    ip_address,
)
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.intent import Intent, Waiting
from holdfast.errors import ConfigError
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Facts, Lease
from tests.resources.routers import load

OPTIONS = "/etc/holdfast/dnsmasq"
SERVERS = "/etc/holdfast/dnsmasq/servers"
UPSTREAM = "/etc/holdfast/dnsmasq/upstream"
CONF = "/etc/holdfast/dnsmasq.conf"
Given = tuple[str, str, dict[str, Any]]

LINKS: tuple[Given, ...] = (
    ("Interface", "lan", {"ifname": "lan0"}),
    ("Interface", "wan", {"ifname": "wan0"}),
)
SERVER: Given = ("IPv4DHCPServer", "lan", {"listenInterfaces": ["lan"]})
SERVER6: Given = ("IPv6DHCPServer", "lan", {"listenInterfaces": ["lan"]})
SCOPE = {
    "server": "lan", "interface": "lan", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.20",
}  # fmt: skip
DELEGATED: tuple[Given, ...] = (
    ("IPv6PrefixDelegation", "wan", {"interface": "wan"}),
    (
        "IPv6DelegatedAddress",
        "lan",
        {"prefixDelegation": "wan", "interface": "lan", "subnetID": 2, "addressSuffix": "::3"},
    ),
    SERVER6,
)


class Made:
    def __init__(self, folder: Path, *resources: Given, facts: Facts, root: str = "") -> None:
        desired = compile_router(load(folder, *LINKS, *resources), facts, root)
        intents = [one for one in desired.intents if isinstance(one, Intent)]
        self.files = {
            one.artifact.key.name: one.artifact.payload.decode().partition("\n")[2]
            for one in intents
            if one.artifact.key.kind == "file"
        }
        self.owners = {
            name: {one.owner for one in intents if one.artifact.key.name == name}
            for name in (*self.files, "dnsmasq")
        }
        self.service = next((one for one in intents if one.artifact.key.name == "dnsmasq"), None)
        self.waiting: dict[str, Waiting] = {one.owner: one for one in desired.waiting}


def lease(*servers: str) -> Lease:
    return Lease(dns=tuple(ip_address(server) for server in servers))


def test_an_address_that_is_only_seen_serves_as_well(tmp_path: Path) -> None:
    scope = ("IPv4DHCPScope", "lan", SCOPE)
    seen = Facts(addresses={"lan0": (IPv4Interface("10.9.9.9/24"), IPv4Interface("10.0.0.1/24"))})
    made = Made(tmp_path, SERVER, scope, facts=seen)
    assert made.files[f"{OPTIONS}/ipv4-lan.router"].endswith("option:router,10.0.0.1\n")
    assert made.files[f"{OPTIONS}/ipv4-lan.dns"].endswith("option:dns-server,10.0.0.1\n")
    # Not said: dnsmasq takes it from the link, and an address that comes later is no restart.
    assert "dhcp-range=set:ipv4-lan,10.0.0.10,10.0.0.20,12h\n" in made.files[CONF]
    assert not made.waiting
    unknown = Made(tmp_path, SERVER, scope, facts=Facts())
    assert unknown.files[CONF] == made.files[CONF]
    assert unknown.waiting["IPv4DHCPScope/lan"].keeps
    assert unknown.service is not None


def test_dns_of_the_lease_for_clients(tmp_path: Path) -> None:
    scope = SCOPE | {"routerSource": "none", "dnsSource": "dhcp4", "dnsInterface": "wan"}
    given: tuple[Given, ...] = (SERVER, ("IPv4DHCPScope", "lan", scope))
    known = Facts(leases4={"wan0": lease("192.0.2.1", "192.0.2.2")})
    name = f"{OPTIONS}/ipv4-lan.dns"
    made = Made(tmp_path, *given, facts=known)
    assert made.files[name] == "tag:ipv4-lan,option:dns-server,192.0.2.1,192.0.2.2\n"
    for facts, keeps in ((Facts(), True), (Facts(leases4={"wan0": GONE}), False)):
        waits = Made(tmp_path, *given, facts=facts)
        assert waits.files.get(name) == (None if keeps else "")
        assert waits.waiting["IPv4DHCPScope/lan"].keeps is keeps
        assert waits.files[f"{OPTIONS}/ipv4-lan.router"] == "tag:ipv4-lan,option:router\n"


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize(
    ("family", "one", "other"),
    [("4", "192.0.2.1", "192.0.2.7"), ("6", "2001:db8::1", "2001:db8::7")],
)
def test_upstream_servers(
    answered: bool, family: str, one: str, other: str, tmp_path: Path
) -> None:
    dns = {"upstreamSource": f"dhcp{family}", "upstreamInterface": "wan"}
    server = ("IPv4DHCPServer", "lan", {"listenInterfaces": ["lan"], "dns": dns})

    def known(*servers: str) -> Facts:
        leases = {"wan0": lease(*servers)} if servers else {}
        return Facts(leases4=leases) if family == "4" else Facts(leases6=leases)

    made = Made(tmp_path, server, facts=known(one) if answered else known())
    assert made.files.get(UPSTREAM) == (f"nameserver {one}\n" if answered else None)
    assert ("IPv4DHCPServer/lan" in made.waiting) is not answered
    assert f"resolv-file={UPSTREAM}\n" in made.files[CONF]
    changed = Made(tmp_path, server, facts=known(other))
    assert changed.service is not None
    assert made.service is not None
    assert changed.service.artifact.fields == made.service.artifact.fields


def test_servers_of_a_ppp_session(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "secret").chmod(0o600)
    session = ("PPPoEInterface", "isp", {
        "interface": "wan", "ifname": "ppp0", "username": "u", "passwordFile": "secret",
    })  # fmt: skip
    dns = {"upstreamSource": "dhcp4", "upstreamInterface": "isp"}
    server = ("IPv4DHCPServer", "lan", {"listenInterfaces": ["lan"], "dns": dns})
    made = Made(tmp_path, session, server, facts=Facts(sessions={"ppp0": lease("192.0.2.9")}))
    assert made.files[UPSTREAM] == "nameserver 192.0.2.9\n"


def test_a_forwarder_waits_alone(tmp_path: Path) -> None:
    waits = ("DNSConditionalForwarder", "a", {
        "domain": "a.example", "upstreamSource": "dhcp6", "upstreamInterface": "wan",
    })  # fmt: skip
    known = ("DNSConditionalForwarder", "b", {
        "domain": "b.example", "upstreamServers": ["192.0.2.1"],
    })  # fmt: skip
    made = Made(tmp_path, waits, known, facts=Facts())
    assert made.files[SERVERS] == "server=/b.example/192.0.2.1\n"
    assert set(made.waiting) == {"DNSConditionalForwarder/a"}
    made = Made(tmp_path, waits, known, facts=Facts(leases6={"wan0": lease("fe80::1")}))
    assert made.files[SERVERS].startswith("server=/a.example/fe80::1%wan0\n")


def test_delegated_prefix(tmp_path: Path) -> None:
    scope = ("IPv6DHCPScope", "lan", {"server": "lan", "delegatedAddress": "lan"})
    name = f"{OPTIONS}/ipv6-lan.dns"
    known = Facts(delegations={"wan0": (IPv6Network("2001:db8:a::/56"),)})
    made = Made(tmp_path, *DELEGATED, scope, facts=known)
    assert made.files[name] == "tag:ipv6-lan,option6:dns-server,[2001:db8:a:2::3]\n"
    assert not made.waiting.keys() & {"IPv6DHCPScope/lan"}
    gone = Facts(delegations={"wan0": GONE}, addresses={"lan0": ()})
    for facts, keeps in ((Facts(addresses={"lan0": ()}), True), (gone, False)):
        waits = Made(tmp_path, *DELEGATED, scope, facts=facts)
        assert waits.files[CONF] == made.files[CONF]
        assert waits.files.get(name) == (None if keeps else "")
        assert waits.waiting["IPv6DHCPScope/lan"].keeps is keeps


@pytest.mark.parametrize(
    ("facts", "address"),
    [
        (Facts(), "fd00::53"),
        (Facts(addresses={"lan0": (IPv6Interface("2001:db8:9::3/64"),)}), "2001:db8:9::3"),
        (Facts(delegations={"wan0": (IPv6Network("2001:db8:a::/60"),)}), "2001:db8:a:2::7"),
        (Facts(delegations={"wan0": (IPv6Network("2001:db8:a::/64"),)}), "fd00::53"),
    ],
    ids=["nothing known", "seen on the link", "delegated", "too small a prefix"],
)
def test_the_first_candidate_that_leads_to_an_address(
    facts: Facts, address: str, tmp_path: Path
) -> None:
    policy = ("SelfAddressPolicy", "p", {
        "addressFamily": "ipv6",
        "candidates": [
            {"source": "delegatedAddress", "delegatedAddress": "lan", "addressSuffix": "::7"},
            {"source": "interfaceAddress", "interface": "lan", "matchSuffix": "::3"},
            {"source": "static", "address": "fd00::53"},
        ],
    })  # fmt: skip
    scope = ("IPv6DHCPScope", "lan", {
        "server": "lan", "delegatedAddress": "lan", "selfAddressPolicy": "p",
    })  # fmt: skip
    made = Made(tmp_path, *DELEGATED, policy, scope, facts=facts)
    name = f"{OPTIONS}/ipv6-lan.dns"
    assert made.files[name] == f"tag:ipv6-lan,option6:dns-server,[{address}]\n"
    assert made.owners[name] == {"IPv6DHCPScope/lan", "SelfAddressPolicy/p"}
    # What may be asked for has to be listened to, whichever it is today.
    assert "listen-address=fd00::53\n" in made.files[CONF]


def test_the_nth_address_of_a_link(tmp_path: Path) -> None:
    policy = ("SelfAddressPolicy", "p", {
        "addressFamily": "ipv4",
        "candidates": [{"source": "interfaceAddress", "interface": "wan", "ordinal": 2}],
    })  # fmt: skip
    scope = ("IPv4DHCPScope", "lan", SCOPE | {"routerSource": "none", "selfAddressPolicy": "p"})
    seen = (IPv4Interface("169.254.1.1/16"), IPv4Interface("192.0.2.1/24"))
    few = Made(tmp_path, SERVER, policy, scope, facts=Facts(addresses={"wan0": seen}))
    assert "IPv4DHCPScope/lan" in few.waiting
    enough = Facts(addresses={"wan0": (*seen, IPv4Interface("192.0.2.2/24"))})
    made = Made(tmp_path, SERVER, policy, scope, facts=enough)
    assert made.files[f"{OPTIONS}/ipv4-lan.dns"].endswith("option:dns-server,192.0.2.2\n")
    assert "listen-address=192.0.2.2\n" in made.files[CONF]


def test_under_a_root_every_path_is_under_it(tmp_path: Path) -> None:
    scope = ("IPv4DHCPScope", "lan", SCOPE)
    made = Made(tmp_path, SERVER, scope, facts=Facts(), root="/srv/try")
    paths = [line.partition("=")[2] for line in made.files[CONF].splitlines() if "/" in line]
    assert paths
    assert all(path.startswith("/srv/try/") for path in paths)
    # A folder under a root may be closed to the user that dnsmasq becomes otherwise.
    assert "user=root\n" in made.files[CONF]


def test_the_smallest_mtu_of_a_link_is_announced(tmp_path: Path) -> None:
    scope = ("IPv6DHCPScope", "lan", {"server": "lan", "interface": "lan"})
    policies: list[Given] = [
        ("PathMTUPolicy", name, {
            "fromInterface": "lan", "toInterfaces": ["wan"],
            "mtu": {"source": "static", "value": value},
            "ipv6RA": {"enabled": True, "scope": "lan"},
        })
        for name, value in (("a", 1454), ("b", 1400))
    ]  # fmt: skip
    made = Made(tmp_path, SERVER6, scope, *policies, facts=Facts())
    assert "ra-param=lan0,mtu:1400,0\n" in made.files[CONF]
    assert {"PathMTUPolicy/a", "PathMTUPolicy/b"} <= made.owners[CONF]


SCOPE6: Given = ("IPv6DHCPScope", "lan", {"server": "lan", "interface": "lan"})
BEHIND: Given = ("IPv6DHCPScope", "lan", {"server": "lan", "delegatedAddress": "lan"})


@pytest.mark.parametrize(
    ("server", "others"),
    [
        (SERVER, (("IPv4DHCPScope", "lan", SCOPE),)),
        (SERVER6, (SCOPE6,)),
        (SERVER6, (*DELEGATED[:2], BEHIND)),
        (SERVER, (SERVER6, SCOPE6, ("IPv4DHCPScope", "lan", SCOPE))),
    ],
    ids=["IPv4", "IPv6", "delegated", "both"],
)
def test_without_links_a_server_serves_those_of_its_scopes(
    tmp_path: Path, server: Given, others: tuple[Given, ...]
) -> None:
    kind, name, _ = server
    said = Made(tmp_path, server, *others, facts=Facts())
    unsaid = Made(tmp_path, (kind, name, {}), *others, facts=Facts())
    assert said.files[CONF] == unsaid.files[CONF]
    assert "interface=lan0\n" in unsaid.files[CONF]


def test_a_server_of_no_links_serves_none(tmp_path: Path) -> None:
    """Neither where that is said, nor where it has no scope."""
    specs: tuple[dict[str, Any], ...] = ({}, {"listenInterfaces": []})
    for spec in specs:
        made = Made(tmp_path, ("IPv4DHCPServer", "lan", spec), facts=Facts())
        assert "interface=lo\n" in made.files[CONF]


def test_a_scope_on_a_link_that_dnsmasq_cannot_be_told_of(tmp_path: Path) -> None:
    star: Given = ("Interface", "star", {"ifname": "lan*"})
    scope: Given = ("IPv4DHCPScope", "star", {**SCOPE, "interface": "star"})
    with pytest.raises(ConfigError, match=r"spec.interface: dnsmasq cannot be told of a link"):
        load(tmp_path, star, ("IPv4DHCPServer", "lan", {}), scope)
