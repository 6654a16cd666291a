"""What others lose when a link changes: the prediction against what the kernel really took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key, Value
from holdfast.engine.driver import Coming
from holdfast.engine.plan import Change, Verb
from holdfast.host.netlink.addresses.disabled_ipv6 import DisabledIPv6
from holdfast.host.netlink.links import link_losses
from holdfast.host.netlink.links.link_losses import LinkLosses
from holdfast.host.netlink.socket import NetlinkSocket
from tests.host.netlink.drive import TAG
from tests.host.netlink.vanished import foreign, names, world
from tests.lanes import needs_link_type
from tests.namespace import Namespace

Foresee = Callable[[LinkLosses], list[str]]

MAC, ENTRY, LEARNT = "02:00:00:00:00:01", "02:00:00:00:00:aa", "02:00:00:00:00:ab"


@pytest.fixture
def sock(netns: Namespace) -> Iterator[NetlinkSocket]:
    """`lan` and `wan`, each with everything on it that others could lose, and routes over both."""
    for number, name in enumerate(("lan", "wan")):
        netns.veth(name, f"{name}p")
        netns.ip(f"link set {name} address 02:00:00:00:00:1{number}")
        furnish(netns, name, number)
    foreign(
        netns,
        "route add 10.90.0.0/24 proto static nexthop via 10.0.0.9 nexthop via 10.1.0.9",
        "-6 route add fd90::/64 proto static nexthop via fd00::9 nexthop via fd01::9",
        "route add 10.91.0.0/24 via 10.1.0.9 src 10.0.0.1 proto static",
        "-6 route add fd91::/64 via fd01::9 src fd00::1 proto static",
    )
    sock = NetlinkSocket()
    yield sock
    sock.close()


def furnish(netns: Namespace, dev: str, number: int, table: str = "main") -> None:
    """Of each family: an address, routes, a neighbour and a nexthop object. And some of ours."""
    foreign(
        netns,
        f"addr add 10.{number}.0.1/24 dev {dev}",
        f"addr add fd0{number}::1/64 dev {dev} nodad",
        f"route add 10.2{number}.0.0/24 via 10.{number}.0.9 proto static table {table}",
        f"route add 10.2{number}.0.0/24 dev {dev} proto bird table 300",
        f"route add 10.3{number}.0.0/24 via 10.{number}.0.9 proto {TAG} table {table}",
        f"-6 route add fd2{number}::/64 via fd0{number}::9 proto static table {table}",
        f"-6 route add fd2{number}::/64 dev {dev} proto bird table 300",
        f"-6 route add fd3{number}::/64 dev {dev} proto {TAG}",
        f"-6 route add fd4{number}::/64 dev {dev} proto static mtu 1400",
        f"neigh add 10.{number}.0.7 lladdr {MAC} dev {dev} nud permanent",
        f"neigh add fd0{number}::7 lladdr {MAC} dev {dev} nud permanent",
        *(
            f"neigh add {address} dev {dev} {said}"
            for net in (f"10.{number}.0.", f"fd0{number}::")
            for address, said in (
                (f"{net}21", "managed"),
                (f"{net}22", f"lladdr {MAC} nud reachable extern_learn"),
                (f"{net}23", f"lladdr {MAC} nud noarp"),
            )
        ),
        f"nexthop add id {number + 7} via 10.{number}.0.9 dev {dev}",
        f"nexthop add id 1{number + 7} via fd0{number}::9 dev {dev}",
        f"nexthop add id 2{number + 7} group {number + 7}",
        f"route add 10.5{number}.0.0/24 nhid {number + 7} proto static",
        f"route add 10.6{number}.0.0/24 nhid 2{number + 7} proto static",
        f"-6 route add fd5{number}::/64 nhid 1{number + 7} proto static",
    )


def changing(name: str, field: str, value: Value) -> Foresee:
    return lambda losses: losses.of_change(name, field, value)


def compare(
    netns: Namespace, sock: NetlinkSocket, foresee: Foresee, command: str, *ends: str
) -> list[str]:
    """Foresees, does it by hand, and waits until just that is gone. ends: links that end with it,
    whose end needs no telling."""
    predicted = foresee(
        LinkLosses(sock, link_losses.read_links(sock), TAG, lambda key: key.name in ends)
    )
    before = world(netns, dead_legs=False)
    netns.ip(command)
    told = [lost for lost in predicted if not lost.startswith(("link ", "the place "))]
    deadline = time.monotonic() + 5
    while True:
        lost = before - world(netns, dead_legs=False)
        # Carriers go a moment after what they depend on.
        if names(told) == names(lost) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert names(told) == names(lost)
    assert told == list(dict.fromkeys(told))
    return predicted


@pytest.mark.uml
def test_down(netns: Namespace, sock: NetlinkSocket) -> None:
    lost = compare(netns, sock, changing("lan", "up", False), "link set lan down")
    assert "route 10.20.0.0/24 (protocol static)" in lost
    assert "route fd20::/64 table 300 (protocol bird)" in lost
    assert any(one.startswith("address fd00::1 dev lan (protocol 0") for one in lost)
    assert not any("10.90.0.0" in one or "10.30.0.0" in one for one in lost)


@pytest.mark.uml
@pytest.mark.parametrize("where", ["all", "lan"])
def test_addresses_may_be_kept_on_down(netns: Namespace, sock: NetlinkSocket, where: str) -> None:
    netns.run("sysctl", "-qw", f"net.ipv6.conf.{where}.keep_addr_on_down=1")
    lost = compare(netns, sock, changing("lan", "up", False), "link set lan down")
    assert not any("fd00::1" in one for one in lost)


@pytest.mark.uml
def test_what_is_down_already_loses_nothing(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.ip("link set lan down")
    assert compare(netns, sock, changing("lan", "up", False), "link set lan down") == []


@pytest.mark.uml
@pytest.mark.parametrize("mtu", [1279, 1280, 1399, 1400, 1501])
def test_mtu(netns: Namespace, sock: NetlinkSocket, mtu: int) -> None:
    """Too small for IPv6, and else that of routes which is set to it."""
    netns.run("sysctl", "-qw", "net.ipv6.conf.lan.keep_addr_on_down=1")
    lost = compare(netns, sock, changing("lan", "mtu", mtu), f"link set lan mtu {mtu}")
    if mtu < 1280:
        assert "the leg over lan of route fd90::/64 metric 1024 (protocol static)" in lost or (
            "the leg over lan of route fd90::/64 (protocol static)" in lost
        )
    elif mtu < 1400:
        assert lost == ["the MTU 1400 of route fd40::/64 (protocol static)"]
    else:
        assert lost == []


@pytest.mark.uml
@pytest.mark.parametrize(("where", "keep"), [("lan", 0), ("lan", 1), ("all", 0)])
def test_ipv6_switched_off(netns: Namespace, sock: NetlinkSocket, where: str, keep: int) -> None:
    netns.run("sysctl", "-qw", f"net.ipv6.conf.all.keep_addr_on_down={keep}")
    setting = Path("net/ipv6/conf", where, "disable_ipv6")
    told = DisabledIPv6(sock, TAG).lost(setting, "1", {})
    before = world(netns, dead_legs=False)
    netns.run("sysctl", "-qw", f"net.ipv6.conf.{where}.disable_ipv6=1")
    assert names(told) == names(before - world(netns, dead_legs=False))
    assert "route fd20::/64 (protocol static)" in told
    assert DisabledIPv6(sock, TAG).lost(setting, "0", {}) == []
    assert DisabledIPv6(sock, TAG).lost(setting.with_name("forwarding"), "1", {}) == []


@pytest.mark.uml
def test_mac(netns: Namespace, sock: NetlinkSocket) -> None:
    lost = compare(netns, sock, changing("lan", "mac", MAC), f"link set lan address {MAC}")
    assert {one.split(" (")[0] for one in lost} == {
        f"neighbour {net}{host} dev lan"
        for net in ("10.0.0.", "fd00::")
        for host in (7, 21, 22, 23)
    }


@pytest.mark.uml
def test_the_other_end_loses_its_carrier(netns: Namespace, sock: NetlinkSocket) -> None:
    lost = compare(netns, sock, changing("lanp", "up", False), "link set lanp down")
    assert "nexthop 7 (protocol 0 (made by hand or by a program that sets none))" in lost
    assert "route 10.50.0.0/24 (protocol static)" in lost
    assert not any("10.20.0.0" in one for one in lost)


@pytest.mark.uml
def test_the_end_of_a_link(netns: Namespace, sock: NetlinkSocket) -> None:
    """Of an IPv4 route with several legs nothing is left, and none from its addresses."""
    lost = compare(netns, sock, lambda losses: losses.of_end("lan"), "link del lan")
    assert "route 10.90.0.0/24 (protocol static)" in lost
    assert "route 10.91.0.0/24 (protocol static)" in lost
    assert not any("fd91::" in one for one in lost)


@pytest.mark.uml
@pytest.mark.parametrize(
    ("field", "value", "command"),
    [
        ("up", False, "link set lan down"),
        ("mtu", 1200, "link set lan mtu 1200"),
        ("mac", MAC, f"link set lan address {MAC}"),
    ],
)
def test_a_macvlan_above(
    netns: Namespace, sock: NetlinkSocket, field: str, value: Value, command: str
) -> None:
    """It keeps its MAC, stays up without a carrier, and follows to a smaller MTU."""
    netns.ip("link add link lan name upper type macvlan")
    netns.ip("link set upper up")
    furnish(netns, "upper", 2)
    lost = compare(netns, sock, changing("lan", field, value), command)
    assert any((field != "mac" and "dev upper" in one) or "10.52." in one for one in lost) is (
        field != "mac"
    )


@pytest.mark.uml
def test_the_end_of_what_a_macvlan_stands_on(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.ip("link add link lan name upper type macvlan")
    netns.ip("link set upper up")
    furnish(netns, "upper", 2)
    lost = compare(netns, sock, lambda losses: losses.of_end("lan"), "link del lan")
    assert "link upper, which stands on lan" in lost


@pytest.fixture
def bridge(netns: Namespace, sock: NetlinkSocket) -> NetlinkSocket:
    """`wan` in a bridge, and things of others on that."""
    netns.ip("link add br0 type bridge")
    netns.ip("link set br0 up")
    netns.ip("link set wan master br0")
    _wait_for_carrier(netns, "br0")
    furnish(netns, "br0", 2)
    furnish_port(netns, "wan", "br0")
    return sock


def furnish_port(netns: Namespace, port: str, bridge: str, *more: str) -> None:
    """Static entries of the bridge's table, of which others may be in other VLANs."""
    netns.run("bridge", "fdb", "add", ENTRY, "dev", port, "master", "static", *more)
    netns.run("bridge", "fdb", "add", LEARNT, "dev", port, "master", "extern_learn", *more)
    for group in ("239.1.1.1", "ff15::7"):
        said = ("dev", bridge, "port", port, "grp", group, "permanent")
        netns.run("bridge", "mdb", "add", *said, *more)


def _wait_for_carrier(netns: Namespace, dev: str) -> None:
    deadline = time.monotonic() + 5
    while "LOWER_UP" not in netns.ip(f"link show {dev}") and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.uml
@pytest.mark.parametrize(
    ("name", "field", "value", "command"),
    [
        ("lan", "master", "br0", "link set lan master br0"),
        ("wan", "master", "", "link set wan nomaster"),
        ("wan", "up", False, "link set wan down"),
        ("wan", "mtu", 1200, "link set wan mtu 1200"),
        ("wan", "mac", MAC, f"link set wan address {MAC}"),
        ("br0", "up", False, "link set br0 down"),
        ("br0", "mtu", 1200, "link set br0 mtu 1200"),
        ("br0", "mac", MAC, f"link set br0 address {MAC}"),
    ],
)
def test_ports(
    netns: Namespace, bridge: NetlinkSocket, name: str, field: str, value: Value, command: str
) -> None:
    compare(netns, bridge, changing(name, field, value), command)


@pytest.mark.uml
@pytest.mark.parametrize("command", ["link set wan nomaster", "link del wan"])
def test_entries_of_a_port(netns: Namespace, bridge: NetlinkSocket, command: str) -> None:
    ends = command == "link del wan"
    foresee: Foresee = (
        (lambda losses: losses.of_end("wan")) if ends else changing("wan", "master", "")
    )
    lost = compare(netns, bridge, foresee, command)
    by_hand = "(protocol 0 (made by hand or by a program that sets none))"
    assert f"forwarding entry {ENTRY} dev wan {by_hand}" in lost
    assert f"forwarding entry {LEARNT} dev wan {by_hand}" in lost
    assert "multicast entry ff15::7 dev br0 port wan (protocol static)" in lost


def test_entries_of_a_vxlan(netns: Namespace, sock: NetlinkSocket) -> None:
    """Not the one that the kernel made for its other end."""
    netns.ip("link add vx0 type vxlan id 9 dstport 4790 remote 192.0.2.9")
    for more in (("dst", "192.0.2.10"), ("dst", "192.0.2.11")):
        netns.run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx0", *more, "self")
    losses = LinkLosses(sock, link_losses.read_links(sock), TAG, lambda _key: False)
    assert [one.partition(" (")[0] for one in losses.of_end("vx0")] == [
        "forwarding entry 00:00:00:00:00:00 dev vx0 dst 192.0.2.10",
        "forwarding entry 00:00:00:00:00:00 dev vx0 dst 192.0.2.11",
    ]


@pytest.mark.uml
def test_entries_once_for_each_vlan(netns: Namespace, bridge: NetlinkSocket) -> None:
    needs_link_type(netns, "vlan")  # and bridges with them
    netns.ip("link set br0 type bridge vlan_filtering 1")
    netns.run("bridge", "vlan", "add", "dev", "wan", "vid", "5")
    furnish_port(netns, "wan", "br0", "vlan", "5")
    lost = compare(netns, bridge, changing("wan", "master", ""), "link set wan nomaster")
    entries = sorted(one.partition(" (")[0] for one in lost if one.startswith("forwarding"))
    # One that was made without a VLAN stands for those that the port was in.
    assert entries == [
        f"forwarding entry {mac} dev wan{vlan}"
        for mac in (ENTRY, LEARNT)
        for vlan in ("", " vlan 1", " vlan 5")
    ]


@pytest.mark.uml
def test_ports_that_leave_together(netns: Namespace, bridge: NetlinkSocket) -> None:
    """Only the last one takes the carrier, whichever that is."""
    netns.ip("link set lan master br0")
    leaving = Coming(Verb.UPDATE, (Change("master", "br0", ""),))
    losses = LinkLosses(bridge, link_losses.read_links(bridge), TAG, lambda _key: False)
    found = losses.of({Key("link", name): leaving for name in ("wan", "lan")}, [])
    told = [[one.what for one in each] for each in found.values()]
    assert ["route 10.52.0.0/24 (protocol static)" in each for each in told] == [False, True]
    assert "route 10.52.0.0/24 (protocol static)" not in losses.of_change("lan", "master", "")


@pytest.mark.uml
def test_a_port_with_a_small_mtu(netns: Namespace, bridge: NetlinkSocket) -> None:
    netns.ip("link set lan mtu 1200")
    lost = compare(netns, bridge, changing("lan", "master", "br0"), "link set lan master br0")
    assert any("fd02::1 dev br0" in one for one in lost)


@pytest.mark.uml
def test_a_bridge_that_was_given_an_mtu_keeps_it(netns: Namespace, bridge: NetlinkSocket) -> None:
    netns.ip("link set br0 mtu 1450")
    lost = compare(netns, bridge, changing("wan", "mtu", 1200), "link set wan mtu 1200")
    assert not any("br0" in one for one in lost)


@pytest.mark.uml
def test_the_end_of_a_bridge(netns: Namespace, bridge: NetlinkSocket) -> None:
    lost = compare(netns, bridge, lambda losses: losses.of_end("br0"), "link del br0")
    assert "the place of link wan in br0" in lost


@pytest.mark.uml
@pytest.mark.parametrize("command", ["link set lan down", "link set lan mtu 1200"])
@pytest.mark.parametrize("loose", ["on", "off"])
def test_vlans(netns: Namespace, sock: NetlinkSocket, command: str, loose: str) -> None:
    needs_link_type(netns, "vlan")
    netns.ip(f"link add link lan name v10 type vlan id 10 loose_binding {loose}")
    netns.ip("link set v10 up")
    netns.ip("link add link v10 name v20 type vlan id 20")
    netns.ip("link set v20 up")
    furnish(netns, "v20", 2)
    down = command.endswith("down")
    foresee = changing("lan", "up", False) if down else changing("lan", "mtu", 1200)
    compare(netns, sock, foresee, command)


@pytest.fixture
def vrf(netns: Namespace, sock: NetlinkSocket) -> NetlinkSocket:
    """`lan` in a VRF."""
    needs_link_type(netns, "vrf")
    foreign(
        netns,
        "link add blue type vrf table 500",
        "link set blue up",
        "link set lan master blue",
        "addr flush dev lan",
    )
    furnish(netns, "lan", 2, "500")
    netns.ip("route add blackhole 10.77.0.0/16 table 500 proto static")
    return sock


@pytest.mark.uml
def test_joining_a_vrf(netns: Namespace, vrf: NetlinkSocket) -> None:
    compare(netns, vrf, changing("wan", "master", "blue"), "link set wan master blue")


@pytest.mark.uml
def test_leaving_a_vrf(netns: Namespace, vrf: NetlinkSocket) -> None:
    compare(netns, vrf, changing("lan", "master", ""), "link set lan nomaster")


@pytest.mark.uml
def test_the_end_of_a_vrf(netns: Namespace, vrf: NetlinkSocket) -> None:
    compare(netns, vrf, lambda losses: losses.of_end("blue"), "link del blue")


@pytest.mark.uml
def test_a_vrf_that_goes_down(netns: Namespace, vrf: NetlinkSocket) -> None:
    assert compare(netns, vrf, changing("blue", "up", False), "link set blue down") == []


@pytest.mark.uml
@pytest.mark.parametrize(
    "command", ["link set lan nomaster", "link del bond0", "link set bond0 mtu 1200"]
)
def test_bonds(netns: Namespace, sock: NetlinkSocket, command: str) -> None:
    needs_link_type(netns, "bond")
    foreign(
        netns,
        "link add bond0 type bond mode active-backup miimon 100",
        "link set bond0 up",
        "link set lan down",
        "link set lan master bond0",
        "link set lan up",
        "addr flush dev lan",
    )
    _wait_for_carrier(netns, "bond0")
    furnish(netns, "lan", 2)
    furnish(netns, "bond0", 3)
    # Whether its leg over the member is dead by now depends on the moment, and so does whether it
    # goes: that is not foreseen.
    if netns.ip("-6 route show fd90::/64"):
        netns.ip("-6 route del fd90::/64")
    foresee: dict[str, Foresee] = {
        "link set lan nomaster": changing("lan", "master", ""),
        "link del bond0": lambda losses: losses.of_end("bond0"),
        "link set bond0 mtu 1200": changing("bond0", "mtu", 1200),
    }
    compare(netns, sock, foresee[command], command)
