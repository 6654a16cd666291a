"""MTUs of links of every kind, as declared and as seen."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.resources.facts import Facts
from holdfast.resources.firewall.path_mtu_policy import (
    Ipv6Ra,
    Mtu,
    PathMTUPolicy,
    effective_mtu,
    ra_mtu,
)
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site, site_of

LINKS: dict[str, tuple[str, dict[str, Any]]] = {
    "lan": ("Interface", {"ifname": "lan0", "veth": None, "vrf": None, "master": None}),
    "wan": ("Interface", {"ifname": "wan0", "veth": None, "vrf": None, "master": None}),
    "ppp": ("PPPoEInterface", {"ifname": "ppp0"}),
    "tunnel": ("DSLiteTunnel", {"tunnel_name": "ds0"}),
    "vpn": ("WireGuardInterface", {"ifname": "wg0"}),
}


def site(declared: Mapping[str, int], seen: Mapping[str, int]) -> Site:
    resources = [
        Resource(kind, name, SimpleNamespace(**fields, mtu=declared.get(name)), "", index)
        for index, (name, (kind, fields)) in enumerate(LINKS.items())
    ]
    return site_of(resources, Facts(mtus=seen))


def policy(*to: str, mtu: Mtu | None = None, ra: bool = True) -> Resource:
    spec = PathMTUPolicy(
        from_interface="lan", to_interfaces=to, mtu=mtu or Mtu(), ipv6_ra=Ipv6Ra(enabled=ra)
    )
    return Resource("PathMTUPolicy", "policy", spec, "", 99)


@pytest.mark.parametrize(
    ("to", "declared", "seen", "expected"),
    [
        (["wan"], {}, {}, 1500),
        (["wan"], {}, {"wan0": 1400}, 1400),
        (["wan"], {"wan": 1450}, {"wan0": 1400}, 1450),  # 1450 is what it is about to have
        (["wan"], {"wan": 9000, "lan": 4000}, {}, 4000),
        (["ppp"], {}, {}, 1492),
        (["ppp"], {"ppp": 1480}, {}, 1480),
        (["ppp"], {"ppp": 1480}, {"ppp0": 1470}, 1470),  # the far end wanted less
        (["ppp"], {}, {"ppp0": 1500}, 1492),
        (["tunnel"], {}, {}, 1454),
        (["tunnel"], {"tunnel": 1460}, {}, 1460),
        (["vpn"], {}, {}, 1420),
        (["wan", "ppp", "tunnel"], {}, {}, 1454),
    ],
)
def test_the_smallest_counts(
    to: list[str], declared: dict[str, int], seen: dict[str, int], expected: int
) -> None:
    assert effective_mtu(policy(*to), site(declared, seen)) == expected


def test_what_is_said_counts_whatever_the_links_have() -> None:
    said = policy("wan", mtu=Mtu(source="static", value=1300))
    assert effective_mtu(said, site({"wan": 1400}, {})) == 1300


@pytest.mark.parametrize(
    ("mtu", "lan", "expected"),
    [(1454, None, 1454), (9000, None, 1500), (9000, 4000, 4000), (1300, 1000, 1280)],
)
def test_clients_are_told_what_they_take(mtu: int, lan: int | None, expected: int) -> None:
    known = site({"lan": lan} if lan else {}, {})
    assert ra_mtu(policy("wan", mtu=Mtu(source="static", value=mtu)), known) == expected


def test_clients_are_told_nothing_unasked() -> None:
    assert ra_mtu(policy("wan", ra=False), site({}, {})) == 0
