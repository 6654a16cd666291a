"""The model of the kernel's look-up against the kernel, over rules and routes that others make."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import product

import pytest

from holdfast.engine.path.lookup import Packet, Path, look_up
from holdfast.host.netlink.path_read import read_network
from holdfast.host.netlink.routes.route_lookup import path
from holdfast.host.netlink.socket import NetlinkSocket
from tests.namespace import Namespace

OWN = {4: ("192.0.2.1", "198.51.100.1"), 6: ("2001:db8:1::1", "2001:db8:2::1")}
FAR = {
    4: ("203.0.113.9", "203.0.113.200", "192.0.2.9", "10.1.2.3", "198.51.100.1"),
    6: ("2001:db8:aa::9", "2001:db8:aa::1:9", "2001:db8:1::9", "fd00::3", "2001:db8:2::1"),
}
PREFIXES = {
    4: ("default", "203.0.113.0/24", "203.0.113.9", "203.0.113.128/25", "10.0.0.0/8", "192.0.2.9"),
    6: ("default", "2001:db8:aa::/48", "2001:db8:aa::9", "2001:db8:aa::/64", "fd00::/8",
        "2001:db8:1::9"),
}  # fmt: skip
GATEWAYS = {4: ("192.0.2.254", "198.51.100.254"), 6: ("2001:db8:1::fe", "2001:db8:2::fe")}
MARKS = (0, 7)
PORTS = ((22, 40000), (443, 40000))


@pytest.fixture
def sock(netns: Namespace) -> Iterator[NetlinkSocket]:
    netns.veth("wan0", "far0", "192.0.2.1/24", "2001:db8:1::1/64")
    netns.veth("lan0", "far1", "198.51.100.1/24", "2001:db8:2::1/64")
    netns.veth("down0", "far2", "172.16.0.1/16")
    netns.ip("link set down0 down")
    made = NetlinkSocket()
    yield made
    made.close()


def rules(dice: random.Random, version: int) -> Iterator[str]:
    own, far = OWN[version], (one for one in PREFIXES[version] if one != "default")
    selectors = [f"from {one}" for one in own] + [f"to {one}" for one in far]
    selectors += [
        "",
        "iif lo",
        "iif wan0",
        "oif lan0",
        "fwmark 7",
        "fwmark 0x10/0xf0",
        "uidrange 0-9",
    ]
    selectors += ["uidrange 1000-2000", "ipproto tcp", "ipproto udp", "ipproto tcp sport 22"]
    selectors += ["ipproto tcp dport 1-30000", f"not from {own[0]}", "not fwmark 7"]
    ends = ["prohibit", "blackhole", "unreachable", "goto 300", "goto 777", "nop"]
    ends += ["lookup 100", "lookup 101", "lookup main suppress_prefixlength 0"] * 3
    for _ in range(dice.randint(1, 6)):
        priority = dice.choice((50, 100, 200, 300, 400))
        yield f"rule add priority {priority} {dice.choice(selectors)} {dice.choice(ends)}"


def routes(dice: random.Random, version: int) -> Iterator[str]:
    for _ in range(dice.randint(2, 8)):
        table = dice.choice(("main", "100", "101"))
        metric = dice.choice(("", "metric 5", "metric 9000"))
        prefix = dice.choice(PREFIXES[version])
        near, other = GATEWAYS[version]
        way = dice.choice((f"via {near}", f"via {other}", "dev lan0", "dev wan0"))
        kind = dice.choice(("", "", "", "prohibit", "blackhole", "unreachable", "throw"))
        where = f"{kind} {prefix}" if kind else f"{prefix} {way}"
        yield f"route add {where} table {table} {metric}"


def same(model: Path, kernel: Path) -> bool:
    # IPv6 answers for a rule that ends a packet as for a route that does, and IPv4 by errors, of
    # which more than one thing can be the reason.
    if "unicast" in (model.type, kernel.type) or "local" in (model.type, kernel.type):
        return model.type == kernel.type and kernel.nexthops <= model.nexthops
    return True


@pytest.mark.parametrize("version", [4, 6])
def test_look_ups_are_the_kernels(sock: NetlinkSocket, version: int) -> None:
    ends = {ip_address(one) for one in (*OWN[version], *FAR[version])}
    ways = set()
    for number in range(40):
        dice = random.Random(number)  # noqa: S311 (a test)
        commands = [*rules(dice, version), *routes(dice, version)]
        batch(version, *commands)
        network = read_network(sock, version, ends)
        for own, far, mark, (port, far_port) in product(OWN[version], FAR[version], MARKS, PORTS):
            packet = Packet(ip_address(own), ip_address(far), port, far_port, mark=mark)
            model, kernel = look_up(network, packet), path(sock, packet)
            told = f"case {number}: {packet}: {model}, not {kernel}\n" + "\n".join(commands)
            assert same(model, kernel), told
            ways.add(kernel)
        batch(version, "rule flush", *(f"route flush table {one}" for one in (100, 101)))
        batch(version, "rule add priority 0 lookup local", "rule add priority 32766 lookup main")
        batch(version, "route flush table main proto boot")
    assert len(ways) > 8


def batch(version: int, *commands: str) -> None:
    """What does not go is left out: two routes of one kind."""
    subprocess.run(
        ["ip", f"-{version}", "-force", "-batch", "-"],
        input="\n".join(commands),
        text=True,
        capture_output=True,
        check=False,
    )
