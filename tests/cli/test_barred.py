"""A chain of others that drops what we open is named, wherever one looks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.host.nft.foreign_chains import read_foreign_chains
from holdfast.resources.firewall.barred import barred
from holdfast.resources.firewall.foreign_chains import ForeignChain
from holdfast.resources.router import load_router
from holdfast.resources.site import site_of
from tests.cli.conftest import HEAD, Holdfast
from tests.cli.served import daemon
from tests.namespace import Namespace

RESOURCES = (
    ("net", "Interface", "wan", "{ifname: wan0, adminUp: true}"),
    ("net", "Interface", "lan", "{ifname: lan0, adminUp: true}"),
    ("net", "IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.1/24}"),
    ("net", "IPv4StaticAddress", "lan", "{interface: lan, address: 10.0.0.1/24}"),
    ("firewall", "Zone", "wan", "{interfaces: [wan]}"),
    ("firewall", "Zone", "lan", "{interfaces: [lan]}"),
    ("firewall", "FirewallPolicy", "all", "{input: {default: accept}}"),
    (
        "firewall",
        "ExposeService",
        "nas",
        "{fromZone: wan, protocol: tcp, externalPort: 443, internalAddress: 10.0.0.20}",
    ),
)
FOREIGN = "add table ip filter; add chain ip filter FORWARD"
DROPPING = f"{FOREIGN} {{ type filter hook forward priority 0; policy drop; }}"
ACCEPTING = f"{FOREIGN} {{ type filter hook forward priority 0; }}"
BY_POLICY = "chain FORWARD of table ip filter, which is not ours, drops it by its policy"


def write(path: Path, *resources: tuple[str, str, str, str]) -> Path:
    text = HEAD
    for group, kind, name, spec in resources:
        text += f"    - apiVersion: {group}.holdfast.dev/v1alpha1\n      kind: {kind}\n"
        text += f"      metadata: {{name: {name}}}\n      spec: {spec}\n"
    path.write_text(text)
    return path


@pytest.fixture
def file(holdfast: Holdfast, netns: Namespace) -> Path:
    netns.veth("wan0", "isp0")
    netns.veth("lan0", "host0")
    return write(holdfast.folder / "router.yaml", *RESOURCES)


def found_by(file: Path) -> dict[str, str]:
    return barred(site_of(load_router(file).resources), read_foreign_chains())


def test_it_is_named_in_plan_status_and_explain(
    holdfast: Holdfast, file: Path, netns: Namespace
) -> None:
    holdfast.ok("apply", str(file), "--yes")
    assert "ExposeService" not in holdfast.ok("plan", str(file)).err
    netns.run("nft", DROPPING)
    assert f"warning: ExposeService/nas: {BY_POLICY}" in holdfast.ok("plan", str(file)).err
    told = holdfast.run("status", "-o", "json", str(file))
    phases = {
        one["resource"]: (one["phase"], one["reason"]) for one in json.loads(told.out)["resources"]
    }
    assert (told.code, phases["ExposeService/nas"]) == (1, ("Degraded", BY_POLICY))
    assert f"Degraded ({BY_POLICY})" in holdfast.ok("explain", "ExposeService/nas", str(file)).out
    netns.run("nft", "add rule ip filter FORWARD ct status dnat accept")
    assert holdfast.ok("plan", str(file)).err == ""
    assert holdfast.ok("status", str(file)).err == ""


def test_the_daemon_says_so_too(holdfast: Holdfast, file: Path, netns: Namespace) -> None:
    with daemon(holdfast, file) as running:
        netns.run("nft", DROPPING)
        assert f"warning: ExposeService/nas: {BY_POLICY}" in holdfast.ok("plan").err
        holdfast.run("reconcile", "--once")
        running.wait_for(f"degraded: ExposeService/nas: {BY_POLICY}")
        assert f"Degraded ({BY_POLICY})" in holdfast.ok("explain", "ExposeService/nas").out
        assert holdfast.run("status").code == 1


@pytest.mark.parametrize(
    ("base", "rules", "drops"),
    [
        (ACCEPTING, (), ""),
        (ACCEPTING, ("tcp dport 443 drop",), "by rule 1 of chain FORWARD"),
        (ACCEPTING, ("tcp dport 80 drop", "tcp dport { 80, 400-500 } reject"), "by rule 2"),
        (ACCEPTING, ("udp dport 443 drop", "tcp dport != 443 drop"), ""),
        (ACCEPTING, ('iifname "wan0" ip daddr 10.0.0.0/8 drop',), "by rule 1"),
        (ACCEPTING, ('iifname "lan0" drop', "ip daddr 10.1.0.0/16 drop"), ""),
        (ACCEPTING, ("ct state new counter drop",), "by rule 1"),
        (ACCEPTING, ("ct state established,related accept", "drop"), "by rule 2"),
        (ACCEPTING, ("meta mark 7 drop", "ip saddr 203.0.113.0/24 drop"), ""),
        (DROPPING, ("ct state established,related accept",), "by its policy"),
        (DROPPING, ('iifname "lan0" accept',), "by its policy"),
        (DROPPING, ('oifname "lan0" accept',), ""),
        (DROPPING, ("ip daddr 10.0.0.20 tcp dport 443 accept",), ""),
        (DROPPING, ("tcp dport 443 jump more",), "by rule 1 of chain more"),
        (DROPPING, ("udp dport 443 jump more", "limit rate 1/second accept"), ""),
        (f"{DROPPING}; add table ip6 other", (), "by its policy"),
        (ACCEPTING, ("udp dport != 443 drop", "icmp type echo-request drop"), ""),
        (ACCEPTING, ("ct state vmap { established : accept, new : drop }",), "by rule 1"),
        (ACCEPTING, ('iifname vmap { "lan0" : drop, "wan0" : jump more }',), "of chain more"),
        (ACCEPTING, ("ct state vmap { established : accept, invalid : drop }",), ""),
        (DROPPING, ("ct state vmap { established : accept, invalid : drop }",), "by its policy"),
        (ACCEPTING, ('ct state vmap { new : drop } comment "x"', "accept"), "by rule 1"),
        (ACCEPTING, ("tcp dport vmap @ports", "drop"), ""),
        (ACCEPTING, ("meta mark set 7", "tcp dport 443 drop"), "by rule 2"),
        (ACCEPTING, ("ct state != { established, related } drop",), "by rule 1"),
        (f"{DROPPING}; add table ip filter {{ flags dormant; }}", (), ""),
    ],
)
def test_what_rules_of_others_do(
    file: Path, netns: Namespace, base: str, rules: tuple[str, ...], drops: str
) -> None:
    """By the rules as nft lists them. What may let it pass is taken to do so."""
    more = "; add chain ip filter more; add rule ip filter more drop"
    more += "; add map ip filter ports { type inet_service : verdict; }"
    added = "".join(f"; add rule ip filter FORWARD {rule}" for rule in rules)
    netns.run("nft", f"{base}{more}{added}")
    found = found_by(file)
    assert bool(found) == bool(drops)
    assert drops in found.get("ExposeService/nas", "")


# A service with another port inside: on its way the packet is to port 443 of the router first, and
# to port 8443 of the host then.
OTHER_PORT = (
    *RESOURCES[:-1],
    (
        "firewall",
        "ExposeService",
        "nas",
        "{fromZone: wan, protocol: tcp, externalPort: 443, internalAddress: 10.0.0.20,"
        " internalPort: 8443}",
    ),
)


@pytest.mark.parametrize(
    ("chain", "rule", "said"),
    [
        ("filter hook prerouting priority raw", "tcp dport 443 drop", "drops it by rule 1"),
        ("filter hook prerouting priority raw", "tcp dport 8443 drop", ""),
        ("filter hook prerouting priority raw", "ct state new drop", ""),
        ("filter hook prerouting priority raw", "ct state != established accept", ""),
        ("filter hook prerouting priority mangle", "ct state new drop", "drops it by rule 1"),
        ("filter hook prerouting priority mangle", "ct status dnat drop", ""),
        ("filter hook prerouting priority mangle", "ip daddr 10.0.0.20 drop", ""),
        ("filter hook prerouting priority mangle", "ip daddr 192.0.2.1 drop", "drops it by"),
        ("filter hook prerouting priority mangle", "fib daddr type local drop", "drops it by"),
        ("filter hook prerouting priority dstnat", "tcp dport 443 drop", ""),
        ("filter hook prerouting priority dstnat", "tcp dport 8443 drop", ""),
        ("filter hook prerouting priority dstnat", "tcp dport { 443, 8443 } drop", "drops it by"),
        ("filter hook prerouting priority filter", "tcp dport 443 drop", ""),
        ("filter hook prerouting priority filter", "tcp dport 8443 drop", "drops it by rule 1"),
        ("filter hook prerouting priority filter", "ip daddr 10.0.0.20 drop", "drops it by"),
        ("filter hook prerouting priority filter", "ct status dnat drop", "drops it by rule 1"),
        ("filter hook input priority filter", "drop", ""),
        ("filter hook output priority filter", "drop", ""),
        ("filter hook postrouting priority filter", "tcp dport 8443 drop", "drops it by rule 1"),
        ("filter hook postrouting priority filter", 'oifname "lan0" drop', ""),
        ("filter hook postrouting priority filter; policy drop", "counter", "by its policy"),
        (
            "nat hook prerouting priority -110",
            "tcp dport 443 dnat to 10.0.0.9:4443",
            "sends it to 10.0.0.9 port 4443 by rule 1 of chain there",
        ),
        ("nat hook prerouting priority -110", "dnat to 10.0.0.20", "sends it to 10.0.0.20 by rule"),
        ("nat hook prerouting priority -110", "tcp dport 443 dnat to 10.0.0.20:8443", ""),
        ("nat hook prerouting priority -110", "tcp dport 8443 dnat to 10.0.0.9", ""),
        ("nat hook prerouting priority -110", "ip saddr 10.9.0.0/16 dnat to 10.0.0.9", ""),
        (
            "nat hook prerouting priority -110",
            "tcp dport 443 dnat to numgen inc mod 2 map { 0 : 10.0.0.9, 1 : 10.0.0.20 }",
            "",
        ),
        (
            "nat hook prerouting priority -110",
            "tcp dport 443 redirect to :8080",
            "sends it to port 8080 of the router by rule 1",
        ),
        ("nat hook prerouting priority -110", "tcp dport 443 redirect", "sends it to the router"),
        # Which of two at the same priority comes first, nobody can tell; after ours, none is asked.
        ("nat hook prerouting priority dstnat", "tcp dport 443 dnat to 10.0.0.9", ""),
        ("nat hook prerouting priority -90", "tcp dport 8443 dnat to 10.0.0.9", ""),
    ],
)
def test_chains_along_its_way(
    file: Path, netns: Namespace, chain: str, rule: str, said: str
) -> None:
    """Before the destination is translated, and after that."""
    write(file, *OTHER_PORT)
    netns.run("nft", f"add table ip other; add chain ip other there {{ type {chain}; }}")
    netns.run("nft", f"add rule ip other there {rule}")
    found = found_by(file)
    assert found.keys() - {"FirewallPolicy/all"} == ({"ExposeService/nas"} if said else set())
    assert said in found.get("ExposeService/nas", "")


def test_a_rule_of_iptables_that_nft_cannot_read(file: Path) -> None:
    """As nft tells it: what it matches, and what it does, is not known."""
    site = site_of(load_router(file).resources)

    def found(*rules: list[dict[str, object]], policy: str = "drop") -> str:
        chain = ForeignChain("ip", "filter", "FORWARD", "forward", policy, {"FORWARD": rules})
        return barred(site, [chain]).get("ExposeService/nas", "")

    assert found() == BY_POLICY
    assert found([{"xt": None}]) == ""
    assert found([{"xt": {"type": "target", "name": "LOG"}}]) == ""
    assert found([{"xt": {"type": "match", "name": "set"}}, {"accept": None}]) == ""
    assert found([{"xt": None}, {"drop": None}], policy="accept") == ""
    assert found([{"xt": None}, {"drop": None}]) == BY_POLICY


def test_one_of_several_links_and_the_router_itself(file: Path, netns: Namespace) -> None:
    netns.veth("wan1", "isp1")
    service = "{fromZone: wan, protocol: tcp, externalPort: 2222, internalAddress: 10.0.0.1}"
    write(
        file,
        *RESOURCES[:4],
        ("net", "Interface", "wan1", "{ifname: wan1, adminUp: true}"),
        ("firewall", "Zone", "wan", "{interfaces: [wan, wan1]}"),
        *RESOURCES[5:7],
        ("firewall", "ExposeService", "nas", service),
    )
    netns.run("nft", DROPPING)  # what comes to the router itself is not forwarded
    assert found_by(file) == {}
    netns.run("nft", "add chain ip filter INPUT { type filter hook input priority 0; }")
    netns.run("nft", 'add rule ip filter INPUT iifname "wan1" tcp dport 2222 drop')
    name = "chain INPUT of table ip filter, which is not ours,"
    assert found_by(file) == {
        "ExposeService/nas": f"{name} drops it from wan1 by rule 1 of chain INPUT"
    }


def test_what_a_policy_opens_to_the_router(
    holdfast: Holdfast, file: Path, netns: Namespace
) -> None:
    access = "{dns: {fromZones: []}, ssh: {fromZones: [lan]}, dhcp: {fromZones: [lan]}}"
    policy = ("firewall", "FirewallPolicy", "all", f"{{routerAccess: {access}}}")
    write(file, *RESOURCES[:6], policy)
    holdfast.ok("apply", str(file), "--yes")
    netns.run("nft", "add table ip filter")
    netns.run("nft", "add chain ip filter IN { type filter hook input priority 0; policy drop; }")
    netns.run("nft", 'add rule ip filter IN iifname "lan0" udp dport 67-68 accept')
    name = "chain IN of table ip filter, which is not ours,"
    said = f"{name} drops ssh (tcp port 22) from lan0 by its policy"
    assert f"warning: FirewallPolicy/all: {said}" in holdfast.ok("plan", str(file)).err
    told = holdfast.run("status", "-o", "json", str(file))
    phases = {one["resource"]: one["reason"] for one in json.loads(told.out)["resources"]}
    assert (told.code, phases["FirewallPolicy/all"]) == (1, said)
    assert f"Degraded ({said})" in holdfast.ok("explain", "FirewallPolicy/all", str(file)).out
    netns.run("nft", "insert rule ip filter IN ip daddr 10.0.0.1 tcp dport 22 accept")
    assert holdfast.ok("plan", str(file)).err == ""
    assert holdfast.ok("status", str(file)).err == ""
    # A packet to everybody has no address of the router's.
    netns.run("nft", "flush chain ip filter IN")
    netns.run("nft", "add rule ip filter IN fib daddr type broadcast accept")
    assert "dhcp" not in found_by(file)["FirewallPolicy/all"]
    # What is sent elsewhere is not dropped, and IPv6 is not asked for without an address of it.
    netns.run("nft", "delete table ip filter")
    netns.run("nft", "add table ip6 filter")
    netns.run("nft", "add chain ip6 filter IN { type filter hook input priority 0; policy drop; }")
    netns.run("nft", "add table ip n; add chain ip n c { type nat hook prerouting priority -110; }")
    netns.run("nft", "add rule ip n c tcp dport 22 redirect to :2222")
    assert found_by(file) == {}
