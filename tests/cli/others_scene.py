"""A router with what others made on its links, and all there is, in the words of `ip`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.namespace import Namespace

# What a person, FRR, a DHCP client and the like have on a link that Holdfast manages.
FOREIGN = (
    "addr add 192.0.2.77/24 dev wan0 label wan0:x",
    "addr add 10.5.5.1 peer 10.5.5.2/32 dev wan0",
    "addr add 2001:db8::5/64 dev wan0 nodad",
    "addr add 2001:db8:5::5/64 dev wan0 valid_lft 10000 preferred_lft 5000 nodad",
    "route add 10.99.0.0/16 via 192.0.2.254 proto static metric 7",
    "route append 10.99.0.0/16 via 192.0.2.253 proto static metric 7",
    "route add 10.98.0.0/16 dev wan0 proto bird mtu lock 1300 advmss 1200 table 99",
    "route add 10.97.0.0/16 proto static src 192.0.2.1 nexthop via 192.0.2.9 weight 3"
    " nexthop via 192.0.2.10",
    "nexthop add id 5 via 192.0.2.11 dev wan0",
    "nexthop add id 6 via 192.0.2.12 dev wan0",
    "nexthop add id 7 group 5/6,2",
    "route add 10.96.0.0/16 nhid 7 proto zebra",
    "-6 route add 2001:db8:99::/48 via 2001:db8::fe src 2001:db8::1 proto static",
    "-6 route add 2001:db8:98::/48 proto static nexthop via 2001:db8::fe dev wan0"
    " nexthop via 2001:db8::fd dev wan0",
    "-6 route add default via 2001:db8::fe expires 6000 proto dhcp",
    "neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev wan0 nud permanent",
    "neigh add 2001:db8::9 lladdr 02:00:00:00:00:09 dev wan0 nud permanent router",
    "neigh add proxy 192.0.2.50 dev wan0",
    "link add m0 link wan0 type macvlan mode bridge",
    "link set m0 up",
    "addr add 10.77.0.1/24 dev m0",
    "route add 10.78.0.0/16 via 10.77.0.2",
)


def make(netns: Namespace, *commands: str) -> None:
    for command in commands:
        netns.ip(command)


def unchecked() -> None:
    """Addresses are tentative for a second otherwise, and then no longer as they were."""
    for links in ("all", "default"):
        Path("/proc/sys/net/ipv6/conf", links, "accept_dad").write_text("0")


def everything(netns: Namespace) -> dict[str, Any]:
    """Addresses in their order, everything else in one that does not change."""
    links = {one["ifname"]: one for one in netns.ip_json("-d addr show")}
    return {
        "links": {name: _link(one) for name, one in links.items()},
        "addresses": {name: _addresses(one) for name, one in links.items()},
        "routes4": _lines(netns.ip("-4 route show table all")),
        "routes6": _lines(netns.ip("-6 route show table all")),
        "nexthops": _lines(netns.ip("nexthop show")),
        "neighbours": _lines(netns.ip("neigh show nud permanent")),
        "proxies": _lines(netns.ip("neigh show proxy")),
        # What is learned passes, and multicast groups are joined and left by whoever listens.
        "forwarding": [
            line
            for line in _lines(netns.run("bridge", "fdb", "show"))
            if not line.startswith(("01:", "33:33:")) and line.endswith(("permanent", "static"))
        ],
    }


def _link(one: dict[str, Any]) -> dict[str, Any]:
    kept = {name: one.get(name) for name in ("address", "mtu", "master", "txqlen", "group", "link")}
    kept["up"] = "UP" in one["flags"]
    kept["kind"] = one.get("linkinfo", {}).get("info_kind")
    kept["alias"] = one.get("ifalias")
    return kept


def _addresses(one: dict[str, Any]) -> list[str]:
    told = [
        {k: v for k, v in address.items() if "life_time" not in k}
        | {"forever": address["valid_life_time"] > 2**31}
        for address in one["addr_info"]
    ]
    return [json.dumps(address, sort_keys=True) for address in told]


def _lines(text: str) -> list[str]:
    """A route over several legs is one; what is left of lifetimes goes on. Whether an empty bridge
    has a carrier depends on whether it ever had a port."""
    whole = re.sub(r"\n\s+", " ", text).replace(" linkdown", "")
    whole = re.sub(r"expires -?\d+sec", "expires", whole)
    return sorted(" ".join(line.split()) for line in whole.splitlines())
