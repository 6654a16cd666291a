"""Others undo the same thing again and again, on a real kernel: who it is, and what is put back all
the same. And a link that comes and goes, which is nobody."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

RESOURCES = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "Interface/lan": "{ifname: lan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 10.9.0.1/24}",
    "IPv6StaticAddress/lan": "{interface: lan, address: '2001:db8:1::1/64'}",
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 192.0.2.254, interface: wan}",
    "IPv4Route/office": "{destination: 10.20.0.0/16, gateway: 10.9.0.254, interface: lan}",
    "IPv6Route/office": "{destination: '2001:db8:9::/48', gateway: '2001:db8:1::fe',"
    " interface: lan}",
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [10.9.0.0/24],"
    " translation: {type: interfaceAddress}}",
}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    netns.veth("wan0", "far0")
    netns.veth("lan0", "far1")
    Path("/proc/sys/net/ipv6/conf/lan0/accept_dad").write_text("0")
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    return file


def events(root: Path, kind: str) -> list[StoredEvent]:
    with Ledger.read(Paths(root)) as ledger:
        return [event for event in ledger.events() if event.kind == kind]


def ready(netns: Namespace) -> bool:
    return all(
        (
            "default via" in netns.ip("route show"),
            "10.20.0.0/16" in netns.ip("route show"),
            "2001:db8:9::/48" in netns.ip("-6 route show"),
            "holdfast_nat" in netns.run("nft", "list", "tables"),
        )
    )


def test_what_protects_comes_back_at_once_whoever_flushes_it(
    file: Path, root: Path, netns: Namespace
) -> None:
    """The fight is told, and the firewall is not kept away for it."""
    with serve(root, file) as daemon:
        until(lambda: ready(netns), "the first pass")
        for _ in range(100):
            netns.run("nft", "flush", "ruleset")
            netns.ip("route del default")
            until(lambda: ready(netns), daemon.said())
            if len(events(root, "fight")) == 2:
                break
            time.sleep(0.5)
        assert len(events(root, "fight")) == 2, daemon.said()
        assert all("it is put back each time" in one.message for one in events(root, "fight"))
        for _ in range(5):
            netns.run("nft", "flush", "ruleset")
            netns.ip("route del default")
            started = time.monotonic()
            until(lambda: ready(netns), daemon.said())
            # Backed off from, it would be seconds, and ever more of them.
            assert time.monotonic() - started < 15
        assert daemon.end() == 0


WAYS = {
    "Interface/bridge": "{ifname: br0, type: bridge, adminUp: true}",
    "IPv4StaticAddress/bridge": "{interface: bridge, address: 10.8.0.1/24}",
    "RoutingRule/table": "{priority: 100, from: 10.9.0.0/24, table: 100}",
    "IPv4Route/table": "{destination: default, gateway: 192.0.2.254, interface: wan, table: 100}",
    "Sysctl/forward": "{key: net.ipv4.ip_forward, value: '1'}",
    "Neighbour/gateway": "{interface: wan, address: 192.0.2.254, mac: '02:00:00:00:00:fe'}",
}
# What is undone, how it is seen to be back, and what the fight is about.
UNDONE = {
    "link": (("ip", "link", "set", "wan0", "down"), "ip route show default", "link wan0"),
    "bridge": (("ip", "link", "del", "br0"), "ip -4 addr show dev br0 scope global", "link br0"),
    "setting": (
        ("sysctl", "-qw", "net.ipv4.ip_forward=0"),
        "grep 1 /proc/sys/net/ipv4/ip_forward",
        "sysctl net.ipv4.ip_forward",
    ),
    "rule": (
        ("ip", "rule", "del", "priority", "100"),
        "ip rule show priority 100",
        "rule 100: from 10.9.0.0/24 lookup 100",
    ),
    "neighbour": (
        ("ip", "neigh", "del", "192.0.2.254", "dev", "wan0"),
        "ip neigh show nud permanent 192.0.2.254 dev wan0",
        "neighbour 192.0.2.254 dev wan0",
    ),
}
ROUNDS = 25


@pytest.mark.parametrize(("command", "sign", "subject"), UNDONE.values(), ids=UNDONE)
def test_what_the_way_out_stands_on_comes_back_at_once(
    file: Path, root: Path, netns: Namespace, command: tuple[str, ...], sign: str, subject: str
) -> None:
    """However long the fight lasts; and it is told."""
    file.write_text(document(RESOURCES | WAYS))

    def is_back() -> bool:
        found = subprocess.run(sign.split(), capture_output=True, check=False)
        return bool(found.stdout.strip())

    with serve(root, file) as daemon:
        until(lambda: ready(netns) and is_back(), "the first pass")
        daemon.rest()
        waits = []
        for _ in range(ROUNDS):
            netns.run(*command)
            started = time.monotonic()
            until(is_back, daemon.said())
            waits.append(time.monotonic() - started)
            time.sleep(0.5)
        told = {one.subject: one.message for one in events(root, "fight")}
        assert "it is put back each time" in told.pop(subject), daemon.said()
        assert not any("less and less often" in message for message in told.values()), told
        # Backed off from, it is 2 s, 4 s, 8 s and 16 s.
        assert max(waits) < 6, (waits, daemon.said())
        assert daemon.end() == 0


def test_what_nothing_else_stands_on_is_put_back_less_and_less_often(
    file: Path, root: Path, netns: Namespace
) -> None:
    with serve(root, file) as daemon:
        until(lambda: ready(netns), "the first pass")
        started = time.monotonic()
        while not events(root, "fight"):
            netns.ip("route del 10.20.0.0/16")
            until(lambda: ready(netns), daemon.said())
            time.sleep(0.5)
            assert time.monotonic() < started + 60, daemon.said()
        (fight,) = events(root, "fight")
        assert fight.subject == "route 10.20.0.0/16"
        assert "less and less often" in fight.message
        waits = []
        for _ in range(3):
            started = time.monotonic()
            netns.ip("route del 10.20.0.0/16")
            until(lambda: ready(netns), daemon.said())
            waits.append(time.monotonic() - started)
        assert max(waits) > 3, waits
        assert daemon.end() == 0


def test_a_fight_that_the_kernel_names_nobody_for(file: Path, root: Path, netns: Namespace) -> None:
    """It does not say who deletes an IPv6 address; that the link changed once is no reason."""
    with serve(root, file) as daemon:
        until(lambda: ready(netns), "the first pass")
        netns.ip("link set lan0 down")
        netns.ip("link set lan0 up")
        until(lambda: ready(netns), daemon.said())
        for _ in range(100):
            netns.ip("-6 addr del 2001:db8:1::1/64 dev lan0")
            until(lambda: "2001:db8:1::1" in netns.ip("-6 addr show dev lan0"), daemon.said())
            if events(root, "fight"):
                break
            time.sleep(0.5)
        (fight,) = events(root, "fight")
        assert fight.subject == "address 2001:db8:1::1 dev lan0"
        assert "another program deletes it again and again" in fight.message
        assert daemon.end() == 0


def test_a_fighter_with_two_sockets_that_takes_his_time(
    file: Path, root: Path, netns: Namespace
) -> None:
    """The second socket of a process has a number that is nobody's."""
    destination = struct.pack("=HH", 8, 1) + socket.inet_aton("10.20.0.0")
    body = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 0, 255, 0, 0) + destination
    with (
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as first,
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as second,
        serve(root, file) as daemon,
    ):
        first.bind((0, 0))
        second.bind((0, 0))
        until(lambda: ready(netns), "the first pass")
        for _ in range(4):
            second.send(struct.pack("=IHHII", 16 + len(body), 25, 5, 1, 0) + body)
            second.recv(4096)
            if events(root, "fight"):
                break
            until(lambda: ready(netns), daemon.said())
            time.sleep(4.5)
        until(lambda: bool(events(root, "fight")), daemon.said())
        (fight,) = events(root, "fight")
        assert fight.data["writer"]["pid"] > 0  # type: ignore[index,call-overload,operator]
        assert f"(process {_self()})" in fight.message
        assert daemon.end() == 0


def _self() -> int:
    return int(Path("/proc/self").resolve().name)


def test_a_flapping_link_is_no_other_program(file: Path, root: Path, netns: Namespace) -> None:
    """What went with it comes back with it, however often."""
    with serve(root, file) as daemon:
        until(lambda: ready(netns), "the first pass")
        for _ in range(12):
            netns.ip("link set lan0 down")
            until(lambda: "10.20.0.0/16" not in netns.ip("route show"), "it went with its link")
            time.sleep(0.4)
            netns.ip("link set lan0 up")
            until(lambda: ready(netns), daemon.said())
            time.sleep(0.4)
        assert not events(root, "fight"), daemon.said()
        assert daemon.end() == 0
