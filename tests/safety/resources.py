"""What a file may declare of a small router, one choice for each resource. Gateways come without an
interface: the link they are behind follows from the addresses that are declared."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hypothesis import strategies as st

Resources = dict[str, str]  # Kind/name: spec
Change = tuple[str, str]  # Kind/name, and a spec or nothing

IFNAMES = {"wan": "nic0", "two": "nic1", "lan": "hf0"}
_ABSENT = "{ifname: hf0, state: absent}"


def _nic(ifname: str, number: int) -> list[str]:
    more = ("", ", mtu: 1500", ", mtu: 1400", ", mtu: 1200", f", mac: '02:00:00:00:0{number}:55'")
    up = [f"{{ifname: {ifname}, adminUp: true{one}}}" for one in more]
    return [*up, f"{{ifname: {ifname}, adminUp: false}}"]


def _addresses(interface: str, *texts: str) -> list[str]:
    return [*(f"{{interface: {interface}, address: '{text}'}}" for text in texts), ""]


def _routes(destination: str, *gateways: str, more: str = "") -> list[str]:
    words = f"destination: '{destination}'{more}"
    return [*(f"{{{words}, gateway: '{one}'}}" for one in gateways), ""]


CHOICES: Mapping[str, list[str]] = {
    "Interface/wan": _nic("nic0", 1),
    "Interface/two": _nic("nic1", 2),
    "Interface/lan": [
        "{ifname: hf0, type: bridge, adminUp: true}",
        "{ifname: hf0, type: bridge, adminUp: true, mtu: 1400}",
        "{ifname: hf0, type: bridge, adminUp: false}",
        _ABSENT,
    ],
    "IPv4StaticAddress/wan": _addresses("wan", "192.0.2.1/24", "192.0.2.1/25", "198.51.100.1/24"),
    "IPv4StaticAddress/more": _addresses("wan", "192.0.2.2/24", "192.0.2.3/24"),
    "IPv4StaticAddress/two": _addresses("two", "203.0.113.1/24"),
    "IPv4StaticAddress/lan": _addresses("lan", "10.1.0.1/24", "10.1.0.1/16"),
    "IPv6StaticAddress/wan": _addresses("wan", "2001:db8:1::1/64", "2001:db8:1::2/64"),
    "IPv6StaticAddress/lan": _addresses("lan", "2001:db8:2::1/64"),
    "IPv4Route/out": _routes("0.0.0.0/0", "192.0.2.254", "203.0.113.254"),
    "IPv4Route/one": _routes("10.20.0.0/16", "192.0.2.254", "10.1.0.254", "203.0.113.254"),
    "IPv4Route/table": _routes("10.20.0.0/16", "192.0.2.254", more=", table: 1000"),
    "IPv6Route/one": _routes("2001:db8:a::/48", "2001:db8:1::fe", "2001:db8:2::fe"),
    "RoutingRule/one": ["{priority: 100, from: 10.20.0.0/16, table: 1000}", ""],
    "Neighbour/one": [
        "{interface: two, address: 203.0.113.9, mac: '02:00:00:00:00:01'}",
        "{interface: two, address: 203.0.113.9, mac: '02:00:00:00:00:02'}",
        "",
    ],
}
FIRST: Resources = {name: specs[0] for name, specs in CHOICES.items()}
# What is left when everything is withdrawn: a link stays unless the file says that it shall not.
LAST: Resources = {"Interface/lan": _ABSENT}

changes: st.SearchStrategy[Change] = st.sampled_from(
    [(name, spec) for name, specs in CHOICES.items() for spec in specs]
)


def declared(chosen: Mapping[str, str]) -> Resources:
    """Without what is withdrawn, and what stands on a link that shall be absent."""
    gone = chosen.get("Interface/lan") == _ABSENT
    return {
        name: spec for name, spec in chosen.items() if spec and not (gone and "face: lan" in spec)
    }


class Route(NamedTuple):
    """A declared route whose gateway is in the network of a declared address."""

    table: int
    destination: str
    link: str


def routes(resources: Mapping[str, str]) -> Iterator[Route]:
    networks = [
        (ipaddress.ip_interface(_word(spec, "address")).network, IFNAMES[_word(spec, "interface")])
        for name, spec in resources.items()
        if "StaticAddress/" in name
    ]
    for name, spec in resources.items():
        if "Route/" not in name:
            continue
        gateway = ipaddress.ip_address(_word(spec, "gateway"))
        around = [(network.prefixlen, link) for network, link in networks if gateway in network]
        if around:
            table = int(_word(spec, "table") or 254)
            yield Route(table, _word(spec, "destination"), max(around)[1])


def all_behind_addresses(resources: Mapping[str, str]) -> bool:
    """Whether the link of every gateway follows from what is declared."""
    return len(list(routes(resources))) == sum("Route/" in name for name in resources)


def _word(spec: str, field: str) -> str:
    found = re.search(rf"\b{field}: '?([^,'}}]+)", spec)
    return found[1] if found else ""
