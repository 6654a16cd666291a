"""What is said of chains of others is what the kernel does with them, by trying."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.host.nft.foreign_chains import read_foreign_chains
from holdfast.resources.firewall.barred import barred
from holdfast.resources.router import load_router
from holdfast.resources.site import site_of
from tests.firewall.home_network import GROUND, POLICY, SERVER, WAN, ZONES, HomeNetwork, document

WEB = {
    "ExposeService/web": "{fromZone: uplink, protocol: tcp, externalPort: 443,"
    f" internalAddress: {SERVER}, internalPort: 8443}}"
}
ADDRESS = {"IPv4StaticAddress/wan": f"{{interface: wan, address: {WAN}/24}}"}


@pytest.mark.parametrize(
    ("chain", "rules"),
    [
        ("filter hook prerouting priority raw", ("tcp dport 443 drop", "tcp dport 8443 drop")),
        ("filter hook prerouting priority mangle", ("ct state new drop", "ct status != dnat drop")),
        (
            "filter hook prerouting priority mangle",
            (f"ip daddr {WAN} drop", f"ip daddr {SERVER} drop"),
        ),
        (
            "filter hook prerouting priority filter",
            ("tcp dport 8443 drop", "tcp dport 443 drop", "udp dport != 53 drop"),
        ),
        ("filter hook prerouting priority filter", ("ct status dnat drop",)),
        (
            "filter hook postrouting priority filter",
            ('iifname "wan0" tcp dport 8443 drop', "tcp dport 443 drop"),
        ),
        (
            "nat hook prerouting priority -110",
            ("tcp dport 443 redirect to :8080", f"tcp dport 443 dnat to {SERVER}:8443"),
        ),
        ("nat hook prerouting priority -90", ("tcp dport { 443, 8443 } redirect to :8080",)),
        ("filter hook input priority filter", ("drop",)),
    ],
)
def test_as_it_is_said(
    home: HomeNetwork, tmp_path: Path, chain: str, rules: tuple[str, ...]
) -> None:
    file = tmp_path / "router.yaml"
    file.write_text(document({**GROUND, **ADDRESS, **ZONES, **POLICY, **WEB}))
    site = site_of(load_router(file).resources)
    home.load(ZONES, POLICY, WEB)
    with home.server.listen(SERVER, 8443):
        assert home.isp.reaches(WAN, 443)
        for rule in rules:
            chain_ = f"add table ip other; add chain ip other there {{ type {chain}; }}"
            home.router.run("nft", f"{chain_}; add rule ip other there {rule}")
            with home.router.inside():
                chains = [one for one in read_foreign_chains() if one.table == "other"]
            said = barred(site, chains).get("ExposeService/web", "")
            reached = False
            with suppress(OSError):
                reached = home.isp.reaches(WAN, 443)
            assert reached == (said == ""), (rule, said)
            home.router.run("nft", "delete table ip other")
