"""Another `ownership.tag`: what was tagged before is carried over, without a gap and whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import run
from holdfast.host import namespace_holder
from holdfast.host.netlink.addresses.address_read import AddressReader
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.runtime import drivers
from holdfast.state import installation
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.child import in_child
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace, private_namespaces
from tests.safety.killing import Points, _Transport
from tests.safety.router_scene import document

_MANY = ", ".join(f"10.64.{n >> 6}.{(n & 63) * 4}/30" for n in range(1100))
RESOURCES = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/one": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/two": "{interface: wan, address: 192.0.2.2/24}",
    "IPv6StaticAddress/six": "{interface: wan, address: 2001:db8:1::1/64}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv4Route/gone": "{destination: 10.3.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv4Route/ecmp": "{destination: 10.2.0.0/16, nexthops: [{gateway: 192.0.2.254},"
    " {gateway: 192.0.2.253}]}",
    "IPv6Route/one": "{destination: 2001:db8:a::/48, gateway: 2001:db8:1::fe, interface: wan}",
    "IPv6Route/ecmp": "{destination: 2001:db8:b::/48, nexthops: [{gateway: 2001:db8:1::fe,"
    " interface: wan}, {gateway: 2001:db8:1::fd, interface: wan, weight: 2}]}",
    "RouteList/many": f"{{gateway: 192.0.2.254, interface: wan, routes: [{_MANY}]}}",
    "RouteList/few": "{gateway: 192.0.2.254, interface: wan,"
    " routes: [10.4.0.0/16 metric 5, blackhole 10.5.0.0/16 table 100]}",
    "RoutingRule/four": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "RoutingRule/six": "{priority: 1000, from: 2001:db8:1::/64, table: 100}",
    "Neighbour/one": "{interface: wan, address: 192.0.2.9, mac: 02:00:00:00:00:09}",
}
AFTER = {name: spec for name, spec in RESOURCES.items() if name != "IPv4Route/gone"} | {
    "IPv4Route/new": "{destination: 10.6.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.253, interface: wan}",
}


def write(holdfast: Holdfast, resources: dict[str, str], tag: int) -> Path:
    path = holdfast.folder / "router.yaml"
    path.write_text(
        document(resources).replace("spec:\n", f"spec:\n  ownership: {{tag: {tag}}}\n", 1)
    )
    return path


@pytest.fixture
def wire() -> Iterator[Namespace]:
    with private_namespaces() as namespace:
        Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
        namespace.veth("wan0", "isp0")
        yield namespace


@pytest.fixture
def one(wire: Namespace, tmp_path: Path) -> Holdfast:  # noqa: ARG001 (where it is applied)
    made = Holdfast(tmp_path / "one", tmp_path / "one" / "root")
    made.root.mkdir(parents=True)
    write(made, RESOURCES, 72)
    made.set_up("apply", "router.yaml", "--yes")
    return made


def tagged(namespace: Namespace, tag: int) -> list[str]:
    """All that carries a tag, by what `ip` shows; its own identities without the tag."""
    found = []
    for family in ("-4", "-6"):
        for one in namespace.ip_json(f"{family} -N route show table all proto {tag}"):
            way = one.get("nexthops", one.get("gateway"))
            found.append(f"{one['dst']} {one.get('table')} {one.get('metric')} {way}")
        rules = namespace.ip_json(f"{family} -N rule show")
        found += [f"{family} {_plain(one)}" for one in rules if _is(one, tag)]
    with closing(NetlinkSocket()) as sock:  # `ip` does not show the tag of an address
        addresses, _ = AddressReader(sock).read()
    found += [str(one.key) for one in addresses if one.protocol == tag]
    neighbours = namespace.ip_json(f"-N neigh show nud permanent proto {tag}")
    found += [f"{one['dst']} {one['lladdr']}" for one in neighbours]
    return sorted(found)


def _is(rule: dict[str, Any], tag: int) -> bool:
    return str(rule.get("protocol")) in (str(tag), hex(tag))


def _plain(rule: dict[str, Any]) -> str:
    return json.dumps({name: rule[name] for name in ("priority", "src", "table")})


def known_tags(holdfast: Holdfast) -> tuple[int, ...]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        own = installation.own_namespace(ledger)
    return own.tags if own is not None else ()


def test_everything_is_carried_over(wire: Namespace, one: Holdfast) -> None:
    before = tagged(wire, 72)
    assert len(before) == 1113
    # One in front of ours and one behind it, which nobody may touch.
    wire.ip("route prepend 10.1.0.0/16 via 192.0.2.200 proto static")
    wire.ip("route append 10.2.0.0/16 via 192.0.2.201 proto static")
    write(one, RESOURCES, 98)
    summary = one.ok("plan", "router.yaml", "-o", "json").json["summary"]
    assert (summary["create"], summary["delete"], summary["replace"]) == (0, 0, 0)
    done = one.run("apply", "router.yaml", "--yes")
    assert "updated" in done.out, done
    assert (tagged(wire, 98), tagged(wire, 72)) == (before, [])
    statics = [route["dst"] for route in wire.ip_json("-4 route show proto static")]
    assert statics == ["10.1.0.0/16", "10.2.0.0/16"]
    wire.ip("route del 10.1.0.0/16 proto static")
    assert "nothing to do" in one.ok("plan", "router.yaml").out
    assert one.run("apply", "router.yaml", "--yes").code == 0
    assert known_tags(one) == (98,), "72 may be another's from now on"
    wire.ip("route add 10.77.0.0/16 via 192.0.2.254 proto 72")
    one.ok("apply", "router.yaml", "--yes")
    assert wire.ip_json("route show 10.77.0.0/16")


def test_with_other_changes_at_once(wire: Namespace, one: Holdfast) -> None:
    write(one, AFTER, 98)
    one.ok("apply", "router.yaml", "--yes")
    assert tagged(wire, 72) == []
    assert not wire.ip_json("route show 10.3.0.0/16")
    assert wire.ip_json("route show 10.1.0.0/16")[0]["gateway"] == "192.0.2.253"
    assert "nothing to do" in one.ok("plan", "router.yaml").out
    write(one, {}, 98)
    one.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert (tagged(wire, 72), tagged(wire, 98)) == ([], [])


def test_to_and_fro(wire: Namespace, one: Holdfast) -> None:
    before = tagged(wire, 72)
    for tag in (98, 97, 72):
        write(one, RESOURCES, tag)
        one.ok("apply", "router.yaml", "--yes")
    assert (tagged(wire, 72), tagged(wire, 97), tagged(wire, 98)) == (before, [], [])


def _killed(holdfast: Holdfast, point: int) -> str:
    told, tell = os.pipe()

    def work() -> None:
        points = Points(point, tell)
        vars(drivers)["NetlinkSocket"] = lambda: NetlinkSocket(lambda: _Transport(points))
        for module, name in ((namespace_holder, "_put"), (installation, "write_own_namespace")):
            setattr(module, name, points.after(name, getattr(module, name)))
        os.chdir(holdfast.folder)
        os._exit(run(holdfast.arguments("apply", "router.yaml", "--yes")[1:]))

    pid = in_child(work)
    os.close(tell)
    with os.fdopen(told) as stream:
        where = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (-signal.SIGKILL if where else 0), f"{where}: ended with {status}"
    return where


def test_killed_at_every_point(wire: Namespace, one: Holdfast) -> None:
    """There and back again, each time killed a step later: the pass after it finishes it."""
    before = tagged(wire, 72)
    tag, point = 72, 0
    while True:
        tag, point, old = (98 if tag == 72 else 72), point + 1, tag
        write(one, RESOURCES, tag)
        where = _killed(one, point)
        if where:
            there = {line.rpartition(" ")[0] for line in before}
            left = {line.rpartition(" ")[0] for line in (*tagged(wire, 72), *tagged(wire, 98))}
            assert not there - left, f"{where}: nothing is missing meanwhile"
            one.set_up("apply", "router.yaml", "--yes")
        assert (tagged(wire, tag), tagged(wire, old)) == (before, []), where
        assert known_tags(one) == (tag,), where
        if not where:
            break
    assert point > 10


def test_by_a_daemon(wire: Namespace, one: Holdfast) -> None:
    before = tagged(wire, 72)
    with serve(one.root, one.folder / "router.yaml") as daemon:
        daemon.wait_for("resources")
        write(one, RESOURCES, 98)
        until(lambda: tagged(wire, 98) == before and not tagged(wire, 72), "carried over")
        wire.ip("route del 10.1.0.0/16")
        until(lambda: tagged(wire, 98) == before, "repaired under the new tag")
        until(lambda: known_tags(one) == (98,), "the old one is forgotten")
        assert daemon.end() == 0


def test_a_number_that_others_use_already(one: Holdfast, wire: Namespace) -> None:
    """What carries it would be taken for ours, and deleted as nothing declares it."""
    path = write(one, RESOURCES, 72)
    one.ok("apply", str(path), "--yes")
    wire.ip("route add 10.186.0.0/16 via 192.0.2.18 proto 133")
    wire.ip("-6 route add 2001:db8:77::/48 dev wan0 proto 133")
    wire.ip("rule add priority 300 from 198.51.100.4 lookup 5 protocol 133")

    def theirs() -> list[str]:
        return [wire.ip(f"{family} route show proto 133") for family in ("-4", "-6")]

    before = theirs()
    write(one, RESOURCES, 133)
    for words in (("--yes",), ("--yes", "--allow-mass-delete")):
        refused = one.run("apply", str(path), *words)
        assert refused.code == 4
        assert "ownership.tag changes to 133, which " in refused.err
        assert "and 2 more of others' carry already" in refused.err
    assert theirs() == before
    assert "from 198.51.100.4 lookup 5 proto 133" in wire.ip("rule show")
    wire.ip("rule del priority 300")
    wire.ip("route del 10.186.0.0/16")
    wire.ip("-6 route del 2001:db8:77::/48")
    one.ok("apply", str(path), "--yes")
    assert "10.1.0.0/16" in wire.ip("route show proto 133")
