"""A route that another program puts in front of an equal IPv4 route of ours: the kernel uses that
one, and ours is there as declared. That is told, with what to do; nothing is taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.safety.router_scene import document

OTHERS = "via 192.0.2.7 dev lan0 proto static"
# Many are looked at otherwise than a few.
MANY = "\n".join(f"10.30.{number // 256}.{number % 256}/32" for number in range(300))
WAYS = {
    "few": "10.20.0.0/16",
    "table": "10.20.0.0/16 table 100",
    "metric": "10.20.0.0/16 metric 7",
    "many": "10.30.0.9/32",
}


def resources(way: str, folder: Path) -> str:
    found = {
        "Interface/lan": "{ifname: lan0, adminUp: true}",
        "IPv4StaticAddress/lan": "{interface: lan, address: 192.0.2.1/24}",
    }
    gateway = "gateway: 192.0.2.254, interface: lan"
    if way == "many":
        (folder / "routes.txt").write_text(f"{MANY}\n")
        found["RouteList/office"] = f"{{file: routes.txt, {gateway}}}"
    else:
        words = WAYS[way].split()
        more = f", {words[1]}: {words[2]}" if len(words) > 1 else ""
        found["IPv4Route/office"] = f"{{destination: {words[0]}, {gateway}{more}}}"
    return document(found)


class Office:
    def __init__(self, netns: Namespace, root: Path, tmp_path: Path, way: str) -> None:
        root.mkdir()
        netns.veth("lan0", "far0")
        self.file, self.way, self.netns = root / "router.yaml", way, netns
        self.file.write_text(resources(way, root))
        self.holdfast = Holdfast(tmp_path, root)

    def phase(self) -> str:
        done = self.holdfast.run("status", str(self.file), "-o", "json")
        found = {one["resource"].split("/")[1]: one for one in json.loads(done.out)["resources"]}
        return str(found["office"]["phase"])

    def plan(self) -> str:
        done = self.holdfast.run("plan", str(self.file))
        return done.out + done.err

    def routes(self) -> int:
        destination = WAYS[self.way].split()[0]
        return len(self.netns.ip(f"route show {destination} table all").splitlines())


@pytest.fixture(params=list(WAYS))
def office(request: pytest.FixtureRequest, netns: Namespace, root: Path, tmp_path: Path) -> Office:
    return Office(netns, root, tmp_path, request.param)


def told(way: str) -> str:
    delete = f"ip route del {WAYS[way]} via 192.0.2.7 dev lan0 proto 4"
    return (
        f"route {WAYS[way]}: another's stands before it (protocol static) and is used; delete that"
        f" one (`{delete}`), or do not declare yours"
    )


def test_a_daemon_tells_of_it_and_of_its_end(office: Office, root: Path) -> None:
    route, netns = WAYS[office.way], office.netns
    with serve(root, office.file) as daemon:
        until(lambda: office.routes() == 1, "the first pass")
        netns.ip(f"route append {route} {OTHERS}")
        assert office.routes() == 2
        netns.ip(f"route del {route} {OTHERS}")
        netns.ip(f"route prepend {route} {OTHERS}")
        daemon.wait_for(told(office.way))
        assert office.phase() == "Blocked"
        assert office.routes() == 2, "neither ours nor theirs was touched"
        assert "repaired" not in daemon.said()
        daemon.end()
    with serve(root, office.file) as daemon:
        daemon.wait_for(told(office.way))
        netns.ip(f"route del {route} {OTHERS}")
        until(lambda: office.phase() == "Healthy", "the other route is gone")
        netns.ip(f"route append {route} {OTHERS}")
        netns.ip(f"route append 10.99.0.0/16 {OTHERS}")
        assert office.phase() == "Healthy"
        assert daemon.end() == 0


def test_commands_tell_of_it(office: Office) -> None:
    route, netns = WAYS[office.way], office.netns
    office.holdfast.run("apply", str(office.file), "--yes")
    netns.ip(f"route append {route} {OTHERS}")
    assert "another's" not in office.plan(), "behind ours it is in nobody's way"
    netns.ip(f"route del {route} {OTHERS}")
    netns.ip(f"route prepend {route} {OTHERS}")
    assert told(office.way) in " ".join(office.plan().split())
    same = OTHERS.replace("192.0.2.7", "192.0.2.254")
    netns.ip(f"route prepend {route} {same}")
    assert "another's" not in office.plan(), "it leads where ours does"
    netns.ip(f"route del {route} {same}")
    assert office.phase() == "Blocked"
    done = office.holdfast.run("apply", str(office.file), "--yes")
    assert done.code != 0 and office.routes() == 2
    netns.ip(f"route del {route} {OTHERS}")
    assert office.phase() == "Healthy"


def test_the_kernel_puts_a_rule_of_equal_priority_behind(netns: Namespace) -> None:
    """Which is why nobody comes in front of a rule of ours by adding one."""
    for table, writer in ((100, "72"), (200, "static")):
        netns.ip(f"rule add priority 1000 from 192.0.2.0/24 lookup {table} protocol {writer}")
    rules = netns.ip("rule show priority 1000").splitlines()
    assert ["lookup 100" in rules[0], "lookup 200" in rules[1]] == [True, True]
