"""The kinds of the firewall, applied: made, kept, repaired, changed and removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.firewall.command import Router
from tests.firewall.home_network import (
    GROUND,
    ISP,
    NAT,
    POLICY,
    ROUTER,
    SERVER,
    WAN,
    ZONES,
    HomeNetwork,
)
from tests.namespace import Namespace

SERVICE = {
    "ExposeService/web": "{fromZone: uplink, protocol: tcp, externalPort: 443,"
    " internalAddress: 192.168.160.20, internalPort: 8443, hairpin: true}"
}
MSS = {
    "PathMTUPolicy/home": "{fromInterface: lan, toInterfaces: [wan],"
    " mtu: {source: static, value: 1454}, tcpMSSClamp: {enabled: true}}"
}
EVERYTHING = GROUND | ZONES | POLICY | NAT | SERVICE | MSS
TABLES = {
    "inet holdfast_filter": ("flush chain inet holdfast_filter input", POLICY),
    "inet holdfast_dnat": ("delete element inet holdfast_dnat services4 %s", SERVICE),
    "ip holdfast_nat": ("flush table ip holdfast_nat", NAT),
    "inet holdfast_mss": ("delete chain inet holdfast_mss forward", MSS),
}
ELEMENT = '{ "wan0" . tcp . 443 }'


@pytest.fixture
def router(netns: Namespace, tmp_path: Path) -> Router:
    netns.veth("wan0", "far0")
    netns.veth("lan0", "far1")
    return Router(tmp_path)


def ruleset(netns: Namespace) -> dict[str, str]:
    return {name: netns.run("nft", "list", "table", *name.split()) for name in tables(netns)}


def tables(netns: Namespace) -> set[str]:
    lines = netns.run("nft", "list", "tables").splitlines()
    return {line.removeprefix("table ") for line in lines}


def test_a_second_pass_finds_nothing_to_do(router: Router, netns: Namespace) -> None:
    code, said = router.run("apply", EVERYTHING)
    assert code == 0, said
    assert tables(netns) == set(TABLES)
    before = ruleset(netns)
    code, said = router.run("plan", EVERYTHING, None, "--detailed-exitcode")
    assert code == 0, said
    assert ruleset(netns) == before


@pytest.mark.parametrize("table", TABLES)
def test_drift_is_seen_and_repaired(router: Router, netns: Namespace, table: str) -> None:
    assert router.run("apply", EVERYTHING)[0] == 0
    before = ruleset(netns)
    drift = TABLES[table][0]
    netns.run("nft", drift % ELEMENT if "%" in drift else drift)
    assert ruleset(netns) != before
    assert router.run("plan", EVERYTHING, None, "--detailed-exitcode")[0] == 2
    assert router.run("apply", EVERYTHING)[0] == 0
    assert ruleset(netns) == before


@pytest.mark.parametrize("table", TABLES)
def test_a_table_goes_with_its_resources(router: Router, netns: Namespace, table: str) -> None:
    assert router.run("apply", EVERYTHING)[0] == 0
    netns.run("nft", "add table inet foreign")
    without = {name: spec for name, spec in EVERYTHING.items() if name not in TABLES[table][1]}
    code, said = router.run("apply", without)
    assert code == 0, said
    assert tables(netns) == {*TABLES, "inet foreign"} - {table}


def test_every_contributor_owns_the_table(router: Router) -> None:
    code, said = router.run("plan", EVERYTHING, None, "-o", "json")
    assert code == 0
    owners = {each["artifact"]["name"]: each["owners"] for each in json.loads(said)["operations"]}
    zones = ["Zone/home", "Zone/uplink"]
    assert {name: sorted(owners[name]) for name in TABLES} == {
        "inet holdfast_filter": ["ExposeService/web", "FirewallPolicy/policy", *zones],
        "inet holdfast_dnat": ["ExposeService/web", *zones],
        "ip holdfast_nat": ["IPv4SourceNAT/home"],
        "inet holdfast_mss": ["PathMTUPolicy/home"],
    }


def test_a_foreign_table_of_the_name_is_a_conflict(router: Router, netns: Namespace) -> None:
    netns.run("nft", "add table ip holdfast_nat")
    code, said = router.run("apply", EVERYTHING)
    assert code == 1
    assert "nft ip holdfast_nat" in said
    assert "chain" not in netns.run("nft", "list table ip holdfast_nat")
    assert tables(netns) == set(TABLES)


def test_a_client_behind_an_applied_router(home: HomeNetwork, tmp_path: Path) -> None:
    declared = GROUND | {
        "IPv4StaticAddress/lan": f"{{interface: lan, address: {ROUTER}/24}}",
        **ZONES, **POLICY, **NAT, **SERVICE, **MSS,
    }  # fmt: skip
    home.router.ip(f"addr del {ROUTER}/24 dev lan0")
    with home.router.inside():
        code, said = Router(tmp_path).run("apply", declared)
    assert code == 0, said
    with home.isp.listen(ISP, 80) as outside, home.server.listen(SERVER, 8443) as inside:
        with home.client.connect(ISP, 80):
            accepted, (peer, _) = outside.accept()
            accepted.close()
            assert peer == WAN
        for host in (home.isp, home.client):
            host.connect(WAN, 443).close()
            inside.accept()[0].close()
        assert not home.isp.reaches(WAN, 80)
        with home.router.inside():
            code, said = Router(tmp_path).run("plan", declared, None, "--detailed-exitcode")
        assert code == 0, said
