"""What was recorded comes back, whoever took it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.link import link
from holdfast.engine.plan import Change, Operation, Plan, Verb
from holdfast.host.foreign_state import comparing, reading, record
from holdfast.host.foreign_state.record import Kind, Record
from holdfast.host.foreign_state.restore import Restored, restore
from holdfast.host.netlink.socket import NetlinkSocket
from tests.cli import others_scene as scene
from tests.cli.confirm_scene import settled
from tests.cli.test_put_back import same
from tests.namespace import Namespace

TAG = 72


@pytest.fixture
def sock(netns: Namespace) -> Iterator[NetlinkSocket]:
    del netns
    scene.unchecked()
    with closing(NetlinkSocket()) as opened:
        yield opened


def ending(name: str, kind: str) -> Plan:
    there = link(name, {"type": kind})
    return Plan((Operation(Verb.DELETE, there, ("x",), "declared absent", observed=there),))


def changing(name: str, field: str, before: object, after: object) -> Plan:
    changes = (Change(field, before, after),)  # type: ignore[arg-type]  # as the test says
    return Plan(
        (Operation(Verb.UPDATE, Artifact(Key("link", name), {}), ("x",), "", changes=changes),)
    )


def taken(sock: NetlinkSocket, plan: Plan) -> Record:
    return record.unpack(record.pack(reading.take(sock, plan, {}, TAG)))


def back(
    sock: NetlinkSocket, netns: Namespace, kept: Record, before: dict[str, object]
) -> Restored:
    found = restore(sock, kept, lambda _key: False)
    same(netns, before)
    return found


def test_a_bridge_with_all_that_others_have_on_it(netns: Namespace, sock: NetlinkSocket) -> None:
    """Its ports, what stands on it, entries of its table; and its MAC, which follows a port."""
    scene.make(
        netns,
        "link add lan0 type bridge",
        "link set lan0 up",
        "link add p0 type veth peer name p1",
        "link set p0 up",
        "link set p1 up",
        "link set p0 master lan0",
        "addr add 10.1.0.1/24 dev lan0",
        "link add m0 link lan0 type macvlan mode vepa",
        "link set m0 address 02:00:00:00:00:07 mtu 1400 up",
        "link set m0 alias theirs",
        "addr add 10.2.0.1/24 dev m0",
        "route add 10.3.0.0/16 via 10.2.0.2 proto static",
        "route add 10.4.0.0/16 via 10.1.0.2 proto bird metric 5",
        "neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev lan0 nud permanent",
    )
    netns.run("bridge", "fdb", "add", "02:00:00:00:00:aa", "dev", "p0", "master", "static")
    before = settled(lambda: scene.everything(netns))
    kept = taken(sock, ending("lan0", "bridge"))
    netns.ip("link del lan0")
    netns.ip("link add lan0 type bridge")  # as the revert makes ours
    netns.ip("link set lan0 up")
    found = back(sock, netns, kept, before)
    assert found.failed == []
    told = {str(key) for key, _ in found.done}
    assert {"link m0", "link p0", "route 10.3.0.0/16", "neighbour 10.1.0.9 dev lan0"} <= told
    assert restore(sock, kept, lambda _key: False) == Restored(), "there is nothing left to do"


def test_a_vxlan_of_others_and_its_entries(netns: Namespace, sock: NetlinkSocket) -> None:
    scene.make(netns, "link add lan0 type bridge", "link set lan0 up")
    scene.make(netns, "link add vx0 type vxlan id 9 dev lan0 dstport 4790 local 192.0.2.1")
    scene.make(netns, "link set vx0 up")
    fdb = ("bridge", "fdb", "append", "02:00:00:00:00:bb", "dev", "vx0", "dst", "192.0.2.9")
    netns.run(*fdb, "self", "permanent")
    for end in ("192.0.2.10", "192.0.2.11"):
        netns.run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx0", "dst", end)
    before = settled(lambda: scene.everything(netns))
    kept = taken(sock, ending("lan0", "bridge"))
    scene.make(netns, "link del vx0", "link del lan0", "link add lan0 type bridge")
    scene.make(netns, "link set lan0 up")
    assert back(sock, netns, kept, before).failed == []


def test_a_leg_of_an_ipv6_route(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.veth("wan0", "isp0", "2001:db8:1::1/64")
    netns.veth("wan1", "isp1", "2001:db8:2::1/64")
    scene.make(
        netns,
        "-6 route add 2001:db8:9::/48 proto static nexthop via 2001:db8:1::2 dev wan0 weight 2"
        " nexthop via 2001:db8:2::2 dev wan1",
    )
    kept = taken(sock, ending("wan0", "veth"))
    netns.ip("link del wan0")
    netns.veth("wan0", "isp0", "2001:db8:1::1/64")
    assert "wan0" not in netns.ip("-6 route show 2001:db8:9::/48")
    assert restore(sock, kept, lambda _key: False).failed == []
    legs = netns.ip_json("-6 route show 2001:db8:9::/48")[0]["nexthops"]
    assert {(one["dev"], one["weight"]) for one in legs} == {("wan0", 2), ("wan1", 1)}


def test_groups_of_nexthops(netns: Namespace, sock: NetlinkSocket) -> None:
    """They get back what they lost, and no member that somebody took meanwhile."""
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    netns.veth("wan1", "isp1", "198.51.100.1/24")
    scene.make(
        netns,
        *(f"nexthop add id {one} via 192.0.2.{one} dev wan0" for one in (11, 12)),
        *(f"nexthop add id {one} via 198.51.100.{one} dev wan1" for one in (21, 22)),
        "nexthop add id 30 group 11,5/21",
        "nexthop add id 31 group 11/21/22",
        "nexthop add id 32 group 12/21 type resilient buckets 8",
        "nexthop add id 33 group 11/21",
        "route add 10.9.0.0/16 nhid 30 proto static",
    )
    kept = taken(sock, changing("wan0", "up", True, False))
    scene.make(netns, "link set wan0 down", "link set wan0 up")
    scene.make(netns, "nexthop del id 22", "nexthop replace id 33 group 21,9")
    assert restore(sock, kept, lambda _key: False).failed == []
    there = {one["id"]: one for one in netns.ip_json("nexthop show")}
    groups = {number: one["group"] for number, one in there.items() if "group" in one}
    assert groups == {
        30: [{"id": 11, "weight": 5}, {"id": 21}],
        31: [{"id": 11}, {"id": 21}],
        32: [{"id": 12}, {"id": 21}],
        33: [{"id": 21, "weight": 9}],
    }
    assert netns.ip("route show 10.9.0.0/16").count("nexthop via") == 2
    assert restore(sock, kept, lambda _key: False) == Restored(), "there is nothing left to do"


def test_what_was_learnt_meanwhile_gives_way(netns: Namespace, sock: NetlinkSocket) -> None:
    """And what somebody made stays, wherever it leads."""
    scene.make(netns, "link add lan0 type bridge", "link set lan0 up")
    for port in ("p0", "p1"):
        netns.veth(port, f"{port}x")
        netns.ip(f"link set {port} master lan0")
    entries = {"aa": "static", "ab": "extern_learn", "ac": "extern_learn", "ad": "static"}
    for mac, kind in entries.items():
        netns.run("bridge", "fdb", "add", f"02:00:00:00:00:{mac}", "dev", "p0", "master", kind)
    scene.make(
        netns,
        "neigh add 10.1.0.7 lladdr 02:00:00:00:00:07 dev p0 nud permanent",
        "neigh add 10.1.0.8 dev p0 managed",
        "neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev p0 nud permanent",
    )
    kept = taken(sock, changing("p0", "master", "lan0", ""))
    scene.make(netns, "link set p0 nomaster down", "link set p0 master lan0 up")
    for mac, kind in {"aa": "dynamic", "ab": "dynamic", "ac": "static", "ad": "static"}.items():
        netns.run("bridge", "fdb", "add", f"02:00:00:00:00:{mac}", "dev", "p1", "master", kind)
    scene.make(
        netns,
        "neigh add 10.1.0.7 lladdr 02:00:00:00:00:a7 dev p0 nud stale",
        "neigh add 10.1.0.8 lladdr 02:00:00:00:00:a8 dev p0 nud stale",
        "neigh add 10.1.0.9 lladdr 02:00:00:00:00:a9 dev p0 nud permanent",
    )
    assert restore(sock, kept, lambda _key: False).failed == []
    there = scene.everything(netns)
    found = [line for line in there["forwarding"] if line.startswith("02:00:00:00:00:a")]
    assert [line.split()[2] for line in found] == ["p0", "p0", "p1", "p1"]
    assert there["neighbours"] == [
        "10.1.0.7 dev p0 lladdr 02:00:00:00:00:07 PERMANENT",
        "10.1.0.8 dev p0 managed",
        "10.1.0.9 dev p0 lladdr 02:00:00:00:00:a9 PERMANENT",
    ]
    assert restore(sock, kept, lambda _key: False) == Restored(), "there is nothing left to do"


def test_what_a_change_cannot_take_is_not_recorded(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    scene.make(netns, "route add 10.9.0.0/16 via 192.0.2.2 proto static")
    for field, before, after in (("mtu", 1500, 1400), ("mac", "", "x"), ("alias", "", "x")):
        kept = taken(sock, changing("wan0", field, before, after))
        assert not kept.others.get(Kind.ROUTE), field
    assert taken(sock, changing("wan0", "up", True, False)).others[Kind.ROUTE]


def test_what_is_as_recorded(netns: Namespace, sock: NetlinkSocket) -> None:
    """Only that may go on the way back: what others changed since is theirs."""
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    scene.make(netns, "route add 10.8.0.0/16 via 192.0.2.2 proto static")
    scene.make(netns, "route add 10.9.0.0/16 via 192.0.2.2 proto static")
    kept = taken(sock, changing("wan0", "up", True, False))
    scene.make(netns, "route replace 10.9.0.0/16 via 192.0.2.3 proto static")
    there = comparing.unchanged(sock, kept)
    assert Key("route", "10.8.0.0/16") in there
    assert Key("route", "10.9.0.0/16") not in there
    assert Key("link", "wan0") in there


def test_a_link_that_is_gone_for_good(netns: Namespace, sock: NetlinkSocket) -> None:
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    scene.make(netns, "route add 10.8.0.0/16 via 192.0.2.2 proto static")
    kept = taken(sock, changing("wan0", "up", True, False))
    netns.ip("link del wan0")
    found = restore(sock, kept, lambda key: key.kind == "link")
    assert found.done == []
    assert "route 10.8.0.0/16: link wan0 is not there" in found.failed


def test_a_record_of_before_equal_routes_were_kept() -> None:
    """A trial may wait while Holdfast itself is upgraded."""
    said = json.loads(zlib.decompress(record.pack(Record(1.0, TAG, order=(b"one",)))))
    del said["aliases"]
    kept = record.unpack(zlib.compress(json.dumps(said).encode()))
    assert kept == Record(1.0, TAG, order=(b"one",))
