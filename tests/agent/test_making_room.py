"""Something of others' is in the place of ours: it stays, and once it is gone ours is there at
once, not when the timer has everything looked at."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.daemon import Daemon, serve
from tests.agent.storm import Storm
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

RESOURCES = {
    "Interface/wan": "{ifname: wan0}",
    "Interface/lan": "{ifname: br0, type: bridge, adminUp: true}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/wan": "{interface: wan, address: '2001:db8::1/64'}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 10.9.0.1/24}",
    "IPv4Route/one": "{destination: 198.51.100.0/24, gateway: 192.0.2.254}",
    "IPv4Route/two": "{destination: 203.0.113.0/24, gateway: 192.0.2.254, metric: 50}",
    "IPv6Route/six": "{destination: '2001:db8:a::/48', gateway: '2001:db8::fe'}",
    "RoutingRule/marked": "{priority: 100, fwmark: 7, table: 100}",
    "Neighbour/printer": "{interface: wan, address: 192.0.2.77, mac: '02:00:00:00:00:77'}",
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [10.9.0.0/24],"
    " translation: {type: interfaceAddress}}",
    "Sysctl/forward": '{key: net.ipv4.ip_forward, value: "1", persistent: true}',
}
FILE = "etc/sysctl.d/90-holdfast-forward.conf"
ONE, SIX = "198.51.100.0/24", "2001:db8:a::/48"


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    return file


def taken_up(netns: Namespace, daemon: Daemon, going: str, there: Callable[[], bool]) -> None:
    """The foreigner goes, and nobody waits for the timer."""
    assert not there()
    netns.run(*going.split())
    until(there, daemon.said())
    assert "because of the timer" not in daemon.said()


def shows(netns: Namespace, command: str, text: str) -> Callable[[], bool]:
    def there() -> bool:
        with suppress(AssertionError):  # there is no such link
            return text in netns.run(*command.split())
        return False

    return there


@pytest.mark.parametrize(
    ("coming", "said", "going", "look", "text"),
    [
        (
            f"ip route replace {ONE} via 192.0.2.253 proto static",
            f"conflict: route {ONE} for IPv4Route/one is held by protocol static",
            f"ip route del {ONE}",
            f"ip route show {ONE}",
            "proto 72",
        ),
        (
            # As declared, but theirs: nothing to object to, until it goes.
            f"ip route replace {ONE} via 192.0.2.254 proto static",
            "",
            f"ip route del {ONE}",
            f"ip route show {ONE}",
            "proto 72",
        ),
        (
            "ip route replace 203.0.113.0/24 via 192.0.2.253 metric 50 proto bird",
            "conflict: route 203.0.113.0/24 metric 50",
            "ip route flush proto bird",
            "ip route show 203.0.113.0/24",
            "proto 72",
        ),
        (
            f"ip -6 route replace {SIX} via 2001:db8::fd proto static",
            f"conflict: route {SIX} for IPv6Route/six is held by protocol static",
            f"ip -6 route del {SIX}",
            f"ip -6 route show {SIX}",
            "proto 72",
        ),
        (
            "ip neigh replace 192.0.2.77 dev wan0 lladdr 02:00:00:00:00:99 nud permanent proto 99",
            "conflict: neighbour 192.0.2.77 dev wan0",
            "ip neigh del 192.0.2.77 dev wan0",
            "ip neigh show 192.0.2.77",
            "02:00:00:00:00:77 PERMANENT proto 72",
        ),
    ],
)  # fmt: skip
def test_beside_a_running_daemon(
    file: Path,
    root: Path,
    netns: Namespace,
    coming: str,
    said: str,
    going: str,
    look: str,
    text: str,
) -> None:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        until(shows(netns, look, text), daemon.said())
        for _ in range(2):  # a third time within ten seconds would be a fight
            netns.run(*coming.split())
            until(lambda: not shows(netns, look, text)(), "it is theirs")
            daemon.rest()
            before = netns.run(*look.split())
            assert said in daemon.said()
            taken_up(netns, daemon, going, shows(netns, look, text))
            assert before != netns.run(*look.split())
        daemon.wait_for(": its place was left", times=2)
        assert "was deleted" not in daemon.said()
        assert daemon.end() == 0


@pytest.mark.parametrize(
    ("coming", "going", "look", "text"),
    [
        (f"ip route add {ONE} dev far0", f"ip route del {ONE}", f"ip route show {ONE}", "proto 72"),
        (
            "ip link add br0 type veth peer name other",
            "ip link del br0",
            "ip -d addr show dev br0",
            "10.9.0.1/24",
        ),
        (
            "ip addr add 192.0.2.9/24 dev far0",
            "ip addr del 192.0.2.9/24 dev far0",
            "ip addr show dev wan0",
            "192.0.2.1/24",
        ),
        (
            "nft add table ip holdfast_nat",
            "nft delete table ip holdfast_nat",
            "nft list ruleset",
            "masquerade",
        ),
        (
            "ip rule add priority 100 fwmark 7 lookup 100 protocol static",
            "ip rule del priority 100 protocol static",
            "ip rule show",
            "proto 72",
        ),
    ],
)  # fmt: skip
def test_there_before_the_daemon(
    file: Path, root: Path, netns: Namespace, coming: str, going: str, look: str, text: str
) -> None:
    netns.run(*coming.split())
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        daemon.rest()
        if "rule" in coming:  # both have room there
            assert shows(netns, look, text)()
            netns.run(*going.split())
            daemon.rest()
            assert shows(netns, look, text)()
        else:
            taken_up(netns, daemon, going, shows(netns, look, text))
        assert daemon.end() == 0


def test_a_file_of_others(file: Path, root: Path, netns: Namespace) -> None:
    place = root / FILE
    place.parent.mkdir(parents=True)
    place.write_text("theirs\n")
    with serve(root, file) as daemon:
        daemon.wait_for(f"conflict: file /{FILE}")
        assert place.read_text() == "theirs\n"
        taken_up(netns, daemon, f"rm {place}", shows(netns, f"cat {place}", "ip_forward = 1"))
        assert daemon.end() == 0


def test_more_places_than_the_kernel_tells_apart(file: Path, root: Path, netns: Namespace) -> None:
    """Beside a storm of routes that have nothing to do with it."""
    many = {
        f"IPv4Route/r{number}": f"{{destination: 10.77.{number}.0/24, gateway: 192.0.2.254}}"
        for number in range(40)
    }
    file.write_text(document({**RESOURCES, **many}))
    for number in range(40):
        netns.ip(f"route add 10.77.{number}.0/24 dev far0 proto static")
    with serve(root, file) as daemon:
        daemon.wait_for("conflict: route 10.77.39.0/24")
        storm = Storm(netns, dev="far0", own="10.99.{}.0/24", each=100)
        storm.blow(1.0)
        netns.ip("route del 10.77.7.0/24")
        until(shows(netns, "ip route show 10.77.7.0/24", "proto 72"), daemon.said())
        netns.ip("route flush proto static")
        until(lambda: storm.count(72) == 42, daemon.said())
        assert storm.left() == storm.expected
        storm.close()
        assert "because of the timer" not in daemon.said()
        assert daemon.end() == 0
