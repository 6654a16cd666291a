"""A small router with one artifact of each kind, and what other programs do to them."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.namespace import Namespace

RESOURCES = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/lan": "{interface: wan, address: 10.9.0.1/24}",
    "IPv4Route/one": "{destination: 198.51.100.0/24, gateway: 192.0.2.254}",
    "IPv4Route/two": "{destination: 203.0.113.0/24, gateway: 192.0.2.254, metric: 50}",
    "RoutingRule/marked": "{priority: 100, fwmark: 7, table: 100}",
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [10.9.0.0/24],"
    " translation: {type: interfaceAddress}}",
    "Sysctl/forward": '{key: net.ipv4.ip_forward, value: "1", persistent: true}',
}
FOREIGN = (
    "link set lo up",
    "route add 10.98.0.0/16 via 10.99.0.254 dev far0 onlink proto static",
    "route add 10.97.0.0/16 dev far0 proto 99",
    "rule add priority 50 fwmark 9 lookup 50",
    "addr add 10.99.0.1/24 dev far0",
)
_SYSCTL = Path("/proc/sys/net/ipv4/ip_forward")
_FILE = "etc/sysctl.d/90-holdfast-forward.conf"
# Groups of rtnetlink: IPv4 addresses, routes and rules; of nftables, all of it.
_ROUTE_GROUPS = 0x10 | 0x40 | 0x80
_NETFILTER, _NFT_GROUP = 12, 7


@dataclass(frozen=True, slots=True)
class Tampering:
    """Something somebody does to an artifact, and how to see that it is as declared again."""

    kind: str
    what: str
    commands: Sequence[str]  # of `ip` and `nft`; where there are none, `write` does it
    right: Callable[[Namespace], bool]
    write: Callable[[], None] = lambda: None

    def do(self, netns: Namespace) -> None:
        for command in self.commands:
            netns.run(*command.split())
        self.write()


def ground(netns: Namespace) -> None:
    """Links, and what others have, of which nothing may change."""
    netns.veth("wan0", "far0")
    for command in FOREIGN[1:]:
        if command.startswith("addr"):
            netns.ip(command)
    for command in FOREIGN[1:]:
        if not command.startswith("addr"):
            netns.ip(command)
    netns.run("nft", "add", "table", "inet", "theirs")


def foreign(netns: Namespace) -> tuple[object, ...]:
    routes = netns.ip_json("route show table all")
    rules = netns.ip_json("rule show")
    return (
        [one for one in routes if one.get("protocol") in ("static", "99")],
        [one for one in rules if one.get("protocol") != "72"],
        netns.ip_json("-4 addr show dev far0"),
        netns.run("nft", "list", "table", "inet", "theirs"),
    )


def tamperings(root: Path) -> list[Tampering]:
    table = _listed("ip holdfast_nat")
    return [
        Tampering("route", "deleted", ["ip route del 198.51.100.0/24"], _route),
        Tampering(
            "route",
            "changed",
            ["ip route change 203.0.113.0/24 via 192.0.2.253 metric 50 proto 72"],
            _metric_route,
        ),
        Tampering("rule", "deleted", ["ip rule del priority 100"], _rule),
        Tampering("address", "deleted", ["ip addr del 10.9.0.1/24 dev wan0"], _address),
        Tampering("nft", "deleted", ["nft delete table ip holdfast_nat"], table),
        Tampering("nft", "changed", ["nft flush table ip holdfast_nat"], table),
        Tampering("file", "deleted", [], _file(root), (root / _FILE).unlink),
        Tampering("file", "changed", [], _file(root), lambda: _write(root / _FILE, "x")),
        Tampering("sysctl", "changed", [], _sysctl, lambda: _write(_SYSCTL, "0")),
    ]


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _route(netns: Namespace) -> bool:
    found = netns.ip_json("route show 198.51.100.0/24")
    return [one.get("protocol") for one in found] == ["72"]


def _metric_route(netns: Namespace) -> bool:
    found = netns.ip_json("route show 203.0.113.0/24")
    return [(one["gateway"], one["protocol"]) for one in found] == [("192.0.2.254", "72")]


def _rule(netns: Namespace) -> bool:
    found = [one for one in netns.ip_json("rule show") if one["priority"] == 100]
    return [one.get("protocol") for one in found] == ["72"]


def _address(netns: Namespace) -> bool:
    return "10.9.0.1/24" in netns.ip("addr show dev wan0")


def _listed(table: str) -> Callable[[Namespace], bool]:
    def right(netns: Namespace) -> bool:
        listed = json.loads(netns.run("nft", "-j", "list", "ruleset"))["nftables"]
        family, name = table.split()
        return any(
            rule.get("rule", {}).get("table") == name and rule["rule"]["family"] == family
            for rule in listed
        )

    return right


def _file(root: Path) -> Callable[[Namespace], bool]:
    def right(_netns: Namespace) -> bool:
        path = root / _FILE
        return path.exists() and path.read_text().endswith("net.ipv4.ip_forward = 1\n")

    return right


def _sysctl(_netns: Namespace) -> bool:
    return _SYSCTL.read_text() == "1\n"


def monitor(kind: str) -> socket.socket:
    """Hears what the kernel tells of routes, rules and addresses, or of nftables."""
    if kind == "nft":
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        sock.bind((0, 1 << (_NFT_GROUP - 1)))
    else:
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        sock.bind((0, _ROUTE_GROUPS))
    return sock
