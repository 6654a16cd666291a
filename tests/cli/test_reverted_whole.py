"""Whatever is changed on trial and reverted, all that others have is as it was before, or is named
as what could not be brought back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from tests.cli import confirm_scene as trials
from tests.cli import others_scene as scene
from tests.cli.conftest import Holdfast
from tests.cli.test_put_back import ALLOW, same
from tests.lanes import needs_link_type
from tests.namespace import Namespace

Resource = tuple[str, str, str]

# wan0 and port0 are there before; port0 is the only port of lan0.
BEFORE: dict[str, Resource] = {
    "wan": ("Interface", "wan", "{ifname: wan0, adminUp: true}"),
    "lan": ("Interface", "lan", "{ifname: lan0, type: bridge, adminUp: true}"),
    "other": ("Interface", "other", "{ifname: other0, type: bridge, adminUp: true}"),
    "port": ("Interface", "port", "{ifname: port0, master: lan, adminUp: true}"),
    "pair": (
        "Interface",
        "pair",
        "{ifname: pair0, type: veth, veth: {peer: pair1}, master: lan, adminUp: true}",
    ),
    "wan4": ("IPv4StaticAddress", "wan4", "{interface: wan, address: 192.0.2.1/24}"),
    "lan4": ("IPv4StaticAddress", "lan4", "{interface: lan, address: 10.1.0.1/24}"),
    "lan6": ("IPv6StaticAddress", "lan6", "{interface: lan, address: '2001:db8:1::1/64'}"),
}
LINKS = ("wan0", "lan0", "port0", "pair0", "pair1", "upper0")
_PAIR = "ifname: pair0, type: veth, veth: {peer: pair1}"
_PORT = "ifname: port0"


def _changed(name: str, said: str) -> dict[str, dict[str, str]]:
    return {
        what: {name: f"{{{said}, {spec}}}"}
        for what, spec in (
            ("down", "adminUp: false"),
            ("mtu", "adminUp: true, mtu: 1400"),
            ("narrow", "adminUp: true, mtu: 1200"),
            ("mac", "adminUp: true, mac: '02:00:00:00:00:01'"),
        )
    }


# By what they change, and their own names: what is declared instead of what.
GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "a NIC": _changed("wan", "ifname: wan0"),
    "a bridge": _changed("lan", "ifname: lan0, type: bridge"),
    "a port": _changed("port", f"{_PORT}, master: lan"),
    "a pair": _changed("pair", f"{_PAIR}, master: lan"),
    "places": {
        "leaves": {"port": f"{{{_PORT}, master: '', adminUp: true}}"},
        "moves": {"port": f"{{{_PORT}, master: other, adminUp: true}}"},
        "both leave": {
            "port": f"{{{_PORT}, master: '', adminUp: true}}",
            "pair": f"{{{_PAIR}, master: '', adminUp: true}}",
        },
    },
    "links": {
        "bridge absent": {
            "lan": "{ifname: lan0, state: absent}",
            "port": f"{{{_PORT}, adminUp: true}}",
            "pair": f"{{{_PAIR}, adminUp: true}}",
            "lan4": "",
            "lan6": "",
        },
        "pair absent": {"pair": "{ifname: pair0, state: absent}"},
        "pair replaced": {
            "pair": "{ifname: pair0, type: veth, veth: {peer: pair2}, master: lan, adminUp: true}"
        },
    },
    "addresses": {
        "absent": {"wan4": "", "lan4": "", "lan6": ""},
        "renumbered": {
            "wan4": "{interface: wan, address: 198.51.100.1/24}",
            "lan4": "{interface: lan, address: 10.1.0.1/16}",
        },
    },
}


# With VLANs above a NIC (ours) and a bridge (others'), and on the bridge itself.
VLANS: dict[str, Resource] = {
    "wan": BEFORE["wan"],
    "vlan": (
        "Interface",
        "vlan",
        "{ifname: wan0.5, type: vlan, vlan: {parent: wan, id: 5}, adminUp: true}",
    ),
    "lan": (
        "Interface",
        "lan",
        "{ifname: lan0, type: bridge, bridge: {vlanFiltering: true}, adminUp: true}",
    ),
    "port": BEFORE["port"],
    "wan4": BEFORE["wan4"],
}
VLAN_CHANGES: dict[str, dict[str, str]] = {
    "small": {
        "wan": "{ifname: wan0, adminUp: true, mtu: 1200}",
        "port": f"{{{_PORT}, master: '', adminUp: true}}",
    },
    "absent": {
        "vlan": "{ifname: wan0.5, state: absent}",
        "lan": "{ifname: lan0, state: absent}",
        "port": f"{{{_PORT}, adminUp: true}}",
    },
}


def foreign(netns: Namespace) -> None:
    """Something of every sort, on every link."""
    scene.make(netns, "link add upper0 link lan0 type macvlan mode bridge", "link set upper0 up")
    furnish(netns, LINKS)
    scene.make(netns, "-6 route add fd91::/64 dev lan0 proto static mtu 1450")
    Path("/proc/sys/net/ipv6/conf/wan0/addr_gen_mode").write_text("1")
    scene.make(netns, "-6 addr flush dev wan0 scope link")
    over_several_links(netns)
    for dev in ("wan0", "lan0", "pair0", "pair1"):
        Path("/proc/sys/net/ipv6/conf", dev, "accept_ra").write_text("2")
        scene.make(netns, f"token set ::1234 dev {dev}", f"link set {dev} gso_max_size 30000")
    flags = {"pair0": "allmulticast on", "pair1": "promisc on", "lan0": "allmulticast on"}
    for dev, said in flags.items():
        scene.make(netns, f"link set {dev} {said}")
    for number, port in enumerate(("port0", "pair0")):
        furnish_port(netns, port, number)
    scene.make(netns, "link set lan0 type bridge ageing_time 4200 mcast_snooping 1 priority 4096")
    scene.make(netns, "link set lan0 type bridge mcast_querier 1 group_fwd_mask 8")


def furnish(netns: Namespace, links: tuple[str, ...]) -> None:
    commands: list[str] = []
    for number, dev in enumerate(links):
        commands += (
            f"addr add 10.3{number}.0.1/24 dev {dev}",
            f"addr add 10.3{number}.0.2/24 dev {dev}",
            f"addr add fd3{number}::1/64 dev {dev} nodad",
            f"route add 10.4{number}.0.0/16 via 10.3{number}.0.9 proto static",
            f"route add 10.5{number}.0.0/16 dev {dev} proto bird table 300",
            f"route add fd4{number}::/64 via fd3{number}::9 proto static",
            f"neigh add 10.3{number}.0.7 lladdr 02:00:00:00:00:07 dev {dev} nud permanent",
            f"neigh add fd3{number}::7 lladdr 02:00:00:00:00:07 dev {dev} nud permanent",
            f"neigh add 10.3{number}.0.8 dev {dev} managed",
            f"neigh add fd3{number}::8 dev {dev} managed",
            f"neigh add 10.3{number}.0.9 lladdr 02:00:00:00:00:09 dev {dev} nud noarp",
            f"neigh add fd3{number}::9 lladdr 02:00:00:00:00:09 dev {dev} nud stale extern_learn",
            f"nexthop add id 1{number} via 10.3{number}.0.9 dev {dev}",
            f"nexthop add id 2{number} via fd3{number}::9 dev {dev}",
            f"route add 10.6{number}.0.0/16 nhid 1{number} proto static",
            f"route add fd6{number}::/64 nhid 2{number} proto static",
        )
        _settings(dev)
    with NamedTemporaryFile("w") as batch:
        batch.write("\n".join(commands))
        batch.flush()
        netns.run("ip", "-batch", batch.name)


def over_several_links(netns: Namespace) -> None:
    """Groups of nexthops, which lose members, and where all of them go, go as well."""
    scene.make(
        netns,
        "nexthop add id 30 group 10,3/12/15",
        "nexthop add id 31 group 11/12/13/14,7 type resilient buckets 8 idle_timer 90",
        "nexthop add id 32 group 20/21/24",
        "nexthop add id 33 group 10/14 type resilient buckets 16",
        "nexthop add id 34 encap ip id 5 dst 10.0.0.1 via 10.30.0.9 dev wan0",
        "route add 10.70.0.0/16 nhid 30 proto static",
        "route add 10.71.0.0/16 nhid 31 proto static",
        "route add fd70::/64 nhid 32 proto static",
        "route add 10.73.0.0/16 nhid 33 proto static",
        "route add 10.74.0.0/16 nhid 34 proto static",
    )


def furnish_port(netns: Namespace, port: str, number: int, *more: str) -> None:
    netns.run(
        *("bridge", "link", "set", "dev", port, "learning", "off", "isolated", "on"),
        *("hairpin", "on", "cost", "7", "priority", "9", "guard", "on", "mcast_flood", "off"),
    )
    mac = f"02:00:00:00:00:a{number}"
    netns.run("bridge", "fdb", "add", mac, "dev", port, "master", "static", *more)
    learnt = f"02:00:00:00:00:b{number}"
    netns.run("bridge", "fdb", "add", learnt, "dev", port, "master", "extern_learn", *more)
    group = ("bridge", "mdb", "add", "dev", "lan0", "port", port, "grp")
    netns.run(*group, "239.1.1.1", "permanent", *more)
    netns.run(*group, "ff15::7", "permanent", *more)
    netns.run(*group, "239.1.1.2", "src", "10.1.0.9", "permanent", *more)


def _settings(dev: str) -> None:
    """Other values than a new link has."""
    for name, value in (
        ("ipv4/conf/{}/rp_filter", "2"),
        ("ipv4/conf/{}/proxy_arp", "1"),
        ("ipv4/conf/{}/promote_secondaries", "1"),
        ("ipv4/neigh/{}/gc_stale_time", "77"),
        ("ipv6/conf/{}/accept_ra", "0"),
        ("ipv6/conf/{}/keep_addr_on_down", "1"),
        ("ipv6/conf/{}/mtu", "1300"),
        ("ipv6/neigh/{}/retrans_time_ms", "1700"),
    ):
        Path("/proc/sys/net", name.format(dev)).write_text(value)


@pytest.fixture
def nics(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    scene.unchecked()
    netns.veth("wan0", "isp0")
    netns.veth("port0", "port0x")
    yield netns
    for pid in trials.keepers(holdfast.root):
        trials.kill([pid])


def is_made(holdfast: Holdfast, netns: Namespace, declared: dict[str, Resource]) -> None:
    holdfast.declare(*declared.values())
    holdfast.set_up("apply", "router.yaml", "--yes")
    trials.until(lambda: "LOWER_UP" in netns.ip("link show lan0"), "it has a carrier")


@pytest.mark.parametrize("group", GROUPS)
def test_all_is_as_before(holdfast: Holdfast, nics: Namespace, group: str) -> None:
    is_made(holdfast, nics, BEFORE)
    scene.make(nics, "link set pair1 up")
    foreign(nics)
    go_there_and_back(holdfast, nics, BEFORE, GROUPS[group])


@pytest.mark.uml
def test_vlans_are_as_before(holdfast: Holdfast, nics: Namespace) -> None:
    needs_link_type(nics, "vlan")  # and bridges with them
    is_made(holdfast, nics, VLANS)
    scene.make(nics, "link add lan0.7 link lan0 type vlan id 7", "link set lan0.7 up")
    scene.make(nics, "link set wan0.5 type vlan egress-qos-map 2:3")
    furnish(nics, ("wan0", "wan0.5", "lan0", "lan0.7", "port0"))
    for words in (
        ("add", "dev", "port0", "vid", "9", "pvid", "untagged"),
        ("del", "dev", "port0", "vid", "1"),
        ("add", "dev", "port0", "vid", "7"),
        ("add", "dev", "lan0", "vid", "7", "self"),
    ):
        nics.run("bridge", "vlan", *words)
    furnish_port(nics, "port0", 0, *("vlan", "7"))
    # One for each VLAN of the port.
    nics.run(*("bridge", "fdb", "add", "02:00:00:00:00:a1", "dev", "port0", "master", "static"))
    go_there_and_back(holdfast, nics, VLANS, VLAN_CHANGES)


def go_there_and_back(
    holdfast: Holdfast,
    netns: Namespace,
    declared: dict[str, Resource],
    changes: dict[str, dict[str, str]],
) -> None:
    before = trials.settled(lambda: scene.everything(netns))
    for change, changed in changes.items():
        print(change)  # for whoever reads of a failure
        candidate = declared | {name: (*declared[name][:2], spec) for name, spec in changed.items()}
        holdfast.declare(*(one for one in candidate.values() if one[2]), file="candidate.yaml")
        # Whether all of it can be done does not matter here: no IPv6 fits into a small MTU.
        words = ("apply", "candidate.yaml", "--yes", "--confirm-within", "1h", *ALLOW)
        code, said = holdfast.forked(*words)
        assert trials.waiting(holdfast.root), f"{code}: {said}"
        assert scene.everything(netns) != before
        code, said = holdfast.forked("rollback")
        assert code == 0, said
        assert "not brought back" not in said
        same(netns, before)


def _on_trial_and_back(
    holdfast: Holdfast, changes: dict[str, str], meanwhile: Callable[[], object] = lambda: None
) -> str:
    """What is said of the way back."""
    candidate = BEFORE | {name: (*BEFORE[name][:2], spec) for name, spec in changes.items()}
    holdfast.declare(*(one for one in candidate.values() if one[2]), file="candidate.yaml")
    words = ("apply", "candidate.yaml", "--yes", "--confirm-within", "1h", *ALLOW)
    code, said = holdfast.forked(*words)
    assert trials.waiting(holdfast.root), f"{code}: {said}"
    meanwhile()
    code, said = holdfast.forked("rollback")
    assert code == 0, said
    return said


@pytest.mark.parametrize("mode", ["none", "eui64"])
def test_link_local_addresses_keep_their_order(
    holdfast: Holdfast, nics: Namespace, mode: str
) -> None:
    """The first of them is what packets are sent from. Where a link is told to make none, the one
    that it had made before comes back last, and that is first."""
    is_made(holdfast, nics, BEFORE)
    scene.make(nics, "-6 addr add fe80::77/64 dev wan0 nodad", "-6 addr add fe80::5/64 dev wan0")
    scene.make(nics, "-6 addr add fd00::1/64 dev wan0", f"link set wan0 addrgenmode {mode}")
    before = trials.settled(lambda: scene.everything(nics))
    said = _on_trial_and_back(holdfast, GROUPS["a NIC"]["down"])
    assert "not brought back" not in said
    same(nics, before)


def test_alternative_names_come_back(holdfast: Holdfast, nics: Namespace) -> None:
    """But for one that another link has by now, which is named."""
    is_made(holdfast, nics, BEFORE)
    for name in ("lanbridge", "a-longer-name-than-links-may-have", "taken"):
        nics.ip(f"link property add dev lan0 altname {name}")
    take = lambda: nics.ip("link property add dev wan0 altname taken")  # noqa: E731 (short)
    _on_trial_and_back(holdfast, GROUPS["links"]["bridge absent"], take)
    (lan,) = nics.ip_json("link show lan0")
    assert lan["altnames"] == ["lanbridge", "a-longer-name-than-links-may-have"]
    reverted = [
        one["message"]
        for one in holdfast.ok("events", "-o", "json").json["events"]
        if one["kind"] == "reverted"
    ]
    assert any("cannot set altname taken" in one for one in reverted), reverted
