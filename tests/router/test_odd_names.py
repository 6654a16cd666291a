"""Names of links that the kernel takes and people stumble over, to the kernel and back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.firewall.command import COMMAND
from tests.namespace import Namespace
from tests.resources.routers import document

DOTTED, LONGEST, STRANGE = "lan0.10", "fifteen-bytes-x", "é$#\\{;}'"
ODD = (DOTTED, LONGEST, STRANGE)


def resources() -> list[tuple[str, str, dict[str, Any]]]:
    """All kinds that write the name of a link somewhere."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    for number, ifname in enumerate(ODD):
        name = f"link.{number}"
        address = f"10.{number}.0.1/24"
        found += (
            ("Interface", name, {"ifname": ifname, "adminUp": True}),
            ("IPv4StaticAddress", name, {"interface": name, "address": address}),
            ("IPv4ReversePathFilter", name, _filter(name)),
            ("Zone", f"{number}_odd.Zone", {"interfaces": [name]}),
        )
    candidates = [
        {
            "name": f'a "b" {number}',
            "interface": f"link.{number}",
            "gatewaySource": "static",
            "gateway": f"10.{number}.0.254",
            "priority": number + 1,
            "table": 100 + number,
            "mark": 100 + number,
        }
        for number in range(len(ODD))
    ]
    closed = {"fromZones": ["2_odd.Zone"]}
    nat = {"type": "pool", "addresses": ["198.18.0.1", "198.18.0.2", "198.18.0.9"]}
    return [
        *found,
        (
            "Sysctl",
            "dotted",
            {
                "key": f"net.ipv4.conf.{DOTTED}.forwarding",
                "value": 1,
                "persistent": True,
                "revertOnRelease": True,
            },
        ),
        ("IPv4DefaultRoutePolicy", "out", {"candidates": candidates}),
        (
            "FirewallPolicy",
            "policy",
            {
                "forward": {"allow": [{"from": "0_odd.Zone", "to": "2_odd.Zone"}]},
                "routerAccess": {"ssh": closed, "dns": closed, "dhcp": closed},
            },
        ),
        (
            "ExposeService",
            "web",
            {
                "fromZone": "1_odd.Zone",
                "protocol": "tcp",
                "externalPort": 443,
                "internalAddress": "10.2.0.7",
                "hairpin": True,
            },
        ),
        ("IPv4SourceNAT", "out", _nat("link.1", nat)),
        ("IPv4SourceNAT", "odd", _nat("link.2", {"type": "interfaceAddress"})),
        (
            "PathMTUPolicy",
            "mtu",
            {
                "fromInterface": "link.2",
                "toInterfaces": ["link.0", "link.1"],
                "tcpMSSClamp": {"enabled": True},
            },
        ),
    ]


def _filter(name: str) -> dict[str, Any]:
    return {"target": "interface", "interface": name, "mode": "loose"}


def _nat(interface: str, translation: dict[str, Any]) -> dict[str, Any]:
    return {
        "outboundInterface": interface,
        "sourceCIDRs": ["10.0.0.0/8"],
        "translation": translation,
    }


class Odd:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def apply(self, *declared: tuple[str, str, dict[str, Any]]) -> str:
        (self.folder / "router.yaml").write_text(json.dumps(document(*declared)) + "\n")
        command = [COMMAND, "--root", "root", "apply", "--yes", "--allow-mass-delete"]
        done = subprocess.run(
            [*command, "router.yaml"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def odd(netns: Namespace, tmp_path: Path) -> Odd:
    for number, ifname in enumerate(ODD):
        netns.run("ip", "link", "add", ifname, "type", "veth", "peer", "name", f"far{number}")
        netns.ip(f"link set far{number} up")
    return Odd(tmp_path)


def test_made_and_removed(odd: Odd, netns: Namespace) -> None:
    forwarding = Path("/proc/sys/net/ipv4/conf", DOTTED, "forwarding")
    before = forwarding.read_text()
    netns.run("nft", "add table inet others")
    rules = netns.ip("rule show")
    odd.apply(*resources())
    assert forwarding.read_text() == "1\n"
    for ifname in ODD:
        assert Path("/proc/sys/net/ipv4/conf", ifname, "rp_filter").read_text() == "2\n"
    file = odd.folder / "root/etc/sysctl.d/90-holdfast-dotted.conf"
    assert f"net/ipv4/conf/{DOTTED}/forwarding = 1\n" in file.read_text()
    tables = netns.run("nft", "list", "ruleset")
    assert all(f'"{ifname}"' in tables for ifname in ODD)
    assert "Applied" not in odd.apply(*resources())
    odd.apply()
    assert forwarding.read_text() == before
    assert netns.run("nft", "list", "ruleset").split() == ["table", "inet", "others", "{", "}"]
    assert netns.ip("rule show") == rules
    assert netns.ip("-4 addr show up scope global") == ""
    assert not file.exists()
