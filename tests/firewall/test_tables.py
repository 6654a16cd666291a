"""What is rendered, loaded by nft itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from holdfast.engine.intent import Intent
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from tests.firewall.home_network import GROUND, POLICY, ZONES, tables
from tests.namespace import Namespace

CASES = Path(__file__).parents[1] / "resources" / "cases"
WITH_TABLES = sorted(
    path.parent.name for path in CASES.glob("*/intents.txt") if " nft " in path.read_text()
)
SERVICES = 10_000


def load(netns: Namespace, folder: Path, found: dict[str, str]) -> None:
    file = folder / "tables.nft"
    file.write_text("".join(f"table {name} {{\n{body}}}\n" for name, body in found.items()))
    netns.run("nft", "-f", str(file))


@pytest.mark.parametrize("case", WITH_TABLES)
def test_every_case_loads(case: str, netns: Namespace, tmp_path: Path) -> None:
    desired = compile_router(load_router(CASES / case / "router.yaml"))
    found = {
        intent.artifact.key.name: intent.artifact.payload.decode()
        for intent in desired.intents
        if isinstance(intent, Intent) and intent.artifact.key.kind == "nft"
    }
    load(netns, tmp_path, found)
    listed = netns.run("nft", "list", "tables").splitlines()
    assert {line.removeprefix("table ") for line in listed} == set(found)


def test_cases_have_tables() -> None:
    assert {"firewall", "exposed-services", "source-nat", "path-mtu"} <= set(WITH_TABLES)


@pytest.mark.parametrize(
    "ifname", ["$x", "a;b", "a#b", "{}", "a\\", "@set", "ü", "0", "accept", "a,b", "'", "-", "!="]
)
def test_any_name_of_an_interface_is_told_as_it_is(
    ifname: str, netns: Namespace, tmp_path: Path
) -> None:
    found = tables(
        GROUND
        | {"Interface/lan": f"{{ifname: {json.dumps(ifname)}}}"}
        | ZONES
        | POLICY
        | {
            "IPv4SourceNAT/one": "{outboundInterface: lan, sourceCIDRs: [192.0.2.0/24],"
            " translation: {type: interfaceAddress}}",
            "PathMTUPolicy/one": "{fromInterface: lan, toInterfaces: [wan],"
            " tcpMSSClamp: {enabled: true}}",
            "ExposeService/one": "{fromZone: uplink, protocol: tcp, externalPort: 443,"
            " internalAddress: 192.0.2.1, hairpin: true}",
        }
    )
    load(netns, tmp_path, found)
    listed = netns.run("nft", "-j", "list", "ruleset")
    for name in found:
        family, table = name.split()
        content = [
            value
            for entry in json.loads(listed)["nftables"]
            for value in entry.values()
            if (value.get("family"), value.get("table")) == (family, table)
        ]
        assert ifname in strings(content)


def strings(value: object) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return set()


def services(count: int) -> dict[str, str]:
    return {
        f"ExposeService/s{number}": "{fromZone: uplink, protocol: tcp, hairpin: true,"
        f" externalPort: {number + 1}, internalAddress: 10.{number >> 8}.{number & 255}.1,"
        f" sources: [{'203.0.113.0/24' if number % 2 else ''}]}}"
        for number in range(count)
    }


def test_ten_thousand_services_are_elements_not_rules(netns: Namespace, tmp_path: Path) -> None:
    few, many = (tables(GROUND | ZONES | POLICY | services(count)) for count in (4, SERVICES))
    for name, body in many.items():
        assert body.count(" accept") + body.count(" dnat ") == (
            few[name].count(" accept") + few[name].count(" dnat ")
        )
    load(netns, tmp_path, many)
    listed = netns.run("nft", "list", "map", "inet", "holdfast_dnat", "services4")
    assert listed.count(" . tcp . ") == SERVICES // 2


def test_the_order_of_resources_does_not_matter() -> None:
    given = GROUND | ZONES | POLICY | services(50)
    shuffled = list(given.items())
    random.Random(7).shuffle(shuffled)  # noqa: S311
    assert tables(dict(shuffled)) == tables(given)
