"""A router with what others made on its links, and all there is, in the words of `ip`."""

from __future__ import annotations

import itertools
import json
import re
import socket
import subprocess
from collections.abc import Iterable
from contextlib import suppress
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

_PASSING = ("ifindex", "flags", "state")


def make(netns: Namespace, *commands: str) -> None:
    for command in commands:
        netns.ip(command)


def unchecked() -> None:
    """Addresses are tentative for a second otherwise, and then no longer as they were."""
    socket.socket(socket.AF_INET6).close()  # so that a kernel that has IPv6 as a module loads it
    for links in ("all", "default"):
        Path("/proc/sys/net/ipv6/conf", links, "accept_dad").write_text("0")


def everything(netns: Namespace) -> dict[str, Any]:
    """Addresses in their order, everything else in one that does not change."""
    links = {one["ifname"]: one for one in netns.ip_json("-d addr show")}
    own = {one["address"] for name, one in links.items() if name != "lo"}
    return {
        "links": {name: _link(one) for name, one in links.items()},
        "addresses": {name: _addresses(one) for name, one in links.items()},
        "routes4": _lines(netns.ip("-4 route show table all")),
        "routes6": _lines(netns.ip("-6 route show table all")),
        "nexthops": _lines(netns.ip("nexthop show")),
        "neighbours": _neighbours(netns.ip("neigh show nud all")),
        "tokens": _lines(netns.ip("token list")),
        "proxies": _lines(netns.ip("neigh show proxy")),
        # What is learned passes, multicast groups are joined and left by whoever listens, and which
        # of several links with one MAC the kernel has its own entry for is up to it.
        "forwarding": [
            line
            for line in _lines(netns.run("bridge", "fdb", "show"))
            if not line.startswith(("01:", "33:33:", *own))
            and ("extern_learn" in line or line.endswith(("permanent", "static")))
        ],
        "groups": [
            line
            for line in _lines(netns.run("bridge", "-d", "mdb", "show"))
            if " permanent" in line
        ],
        "ports": {
            one["ifname"]: {name: said for name, said in one.items() if name not in _PASSING}
            for one in json.loads(netns.run("bridge", "-d", "-j", "link", "show"))
        },
        "vlans": _vlans(),
        "bridges": {
            name: _bridge(one["linkinfo"]["info_data"])
            for name, one in links.items()
            if one.get("linkinfo", {}).get("info_kind") == "bridge"
        },
        "settings": _settings(links),
    }


def _neighbours(text: str) -> list[str]:
    """Without those that the kernel learns, or makes of its own, and without how fresh they are."""
    found = []
    for line in _lines(text):
        own = re.search(r"lladdr (33:33|01:00:5e|ff:ff|00:00)", line)
        if re.search(r"PERMANENT|NOARP", line) and not own:
            found.append(line)
        elif "managed" in line:
            found.append(line.split(" lladdr")[0].split(" managed")[0] + " managed")
        elif "extern_learn" in line:
            found.append(line.rsplit(" ", 1)[0])
    return found


def _vlans() -> str:
    """Of the ports of bridges, on kernels that have them."""
    done = subprocess.run(["bridge", "vlan", "show"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def _bridge(data: dict[str, Any]) -> dict[str, Any]:
    """Without timers, and without what follows its MAC and ports."""
    following = ("timer", "root", "designated", "topology_change", "bridge_id")
    return {
        name: said for name, said in data.items() if not any(each in name for each in following)
    }


def _settings(links: Iterable[str]) -> dict[str, str]:
    found = {}
    for kind, link in itertools.product(("conf", "neigh"), links):
        for version in ("ipv4", "ipv6"):
            for place in sorted(Path("/proc/sys/net", version, kind, link).glob("*")):
                with suppress(OSError):  # a secret that is not set
                    found[str(place)] = place.read_text()
    return found


def _link(one: dict[str, Any]) -> dict[str, Any]:
    kept = {name: one.get(name) for name in ("address", "mtu", "master", "txqlen", "group", "link")}
    kept["up"] = "UP" in one["flags"]
    kept["flags"] = sorted({"NOARP", "PROMISC", "ALLMULTI", "MULTICAST"} & set(one["flags"]))
    kept["sizes"] = {name: said for name, said in one.items() if name.startswith(("gso_", "gro_"))}
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
    whole = re.sub(r" unbalanced_time \d\S*", "", whole)
    return sorted(" ".join(line.split()) for line in whole.splitlines())
