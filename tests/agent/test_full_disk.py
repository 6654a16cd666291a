"""No room on the disk is not no network: the daemon goes on, and all is written in the end."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agent.web.address import DEFAULT
from holdfast.paths import Paths
from holdfast.state import working_copy
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.disks import Disk, ext4, fail, small_disk
from tests.namespace import Namespace
from tests.safety.router_scene import document

ROUTER = {
    "Interface/wan": "{ifname: wan0, adminUp: true, mtu: 1400}",
    "Interface/lan": "{ifname: br0, type: bridge, adminUp: true}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 10.1.0.1/24}",
    "IPv4Route/one": "{destination: 10.9.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "RoutingRule/one": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "IPv4SourceNAT/home": "{outboundInterface: wan, sourceCIDRs: [10.1.0.0/24],"
    " translation: {type: interfaceAddress}}",
}
FOREIGN = "route add 10.98.0.0/16 dev wan0 proto 99"
MORE = {"IPv4Route/two": "{destination: 10.8.0.0/16, gateway: 192.0.2.254, interface: wan}"}


@pytest.fixture
def holdfast(netns: Namespace, tmp_path: Path, root: Path) -> Holdfast:
    netns.veth("wan0", "isp0")
    netns.ip(FOREIGN)
    (root / "etc").mkdir(parents=True)
    declare(root, ROUTER)
    return Holdfast(tmp_path, root)


@pytest.fixture
def disk(root: Path, holdfast: Holdfast) -> Iterator[Disk]:  # noqa: ARG001 (the folder is its)
    with small_disk(root / "var") as made:
        yield made


def declare(root: Path, resources: dict[str, str]) -> Path:
    file = root / "etc/router.yaml"
    new = file.with_name("new")
    new.write_text(document(resources))
    return new.rename(file)


def file(root: Path) -> Path:
    return root / "etc/router.yaml"


def routes(netns: Namespace) -> set[str]:
    return {one["dst"] for one in netns.ip_json("route show proto 72")}


def whole(netns: Namespace, *more: str) -> bool:
    """All of ROUTER is there."""
    addresses = {
        address["local"]
        for link in netns.ip_json("-4 addr show")
        for address in link["addr_info"]
        if link["ifname"] in ("wan0", "br0")
    }
    rules = [one for one in netns.ip_json("rule show") if one["priority"] == 1000]
    tables = netns.run("nft", "list", "tables")
    return (
        routes(netns) == {"10.9.0.0/16", *more}
        and addresses == {"192.0.2.1", "10.1.0.1"}
        and len(rules) == 1
        and "holdfast" in tables
    )


def spoil(netns: Namespace) -> None:
    """As somebody does who does not know better."""
    netns.ip("link del br0")
    netns.ip("route del 10.9.0.0/16")
    netns.ip("addr del 192.0.2.1/24 dev wan0")
    netns.ip("rule del priority 1000")
    netns.run("nft", "flush", "ruleset")
    netns.ip(FOREIGN.replace("add", "replace"))


def foreign_is_there(netns: Namespace) -> None:
    assert [one["dst"] for one in netns.ip_json("route show proto 99")] == ["10.98.0.0/16"]


def written(holdfast: Holdfast) -> None:
    """All of it is in the ledger itself, and it is sound."""
    paths = Paths(holdfast.root)
    until(lambda: not working_copy.exists(paths), "it is written")
    assert "sound" in holdfast.ok("ledger", "check").out
    claimed = {claim["name"] for claim in holdfast.ok("ledger", "export").json["claims"]}
    assert {"br0", "wan0", "192.0.2.1/24 dev wan0"} <= claimed, claimed
    said = [one.kind for one in Ledger.read(paths).events()]
    assert said.count("ledger-unwritable") == said.count("ledger-written") > 0


def metric(name: str) -> float:
    with urllib.request.urlopen(f"http://{DEFAULT.shown}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def nothing_to_do(holdfast: Holdfast) -> bool:
    return "nothing to do" in holdfast.run("plan", str(file(holdfast.root))).out


def test_a_disk_that_fills_up(netns: Namespace, holdfast: Holdfast, disk: Disk) -> None:
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns), daemon.said())
        disk.fill()
        spoil(netns)
        until(lambda: whole(netns), daemon.said())
        daemon.wait_for("the ledger is not written")
        assert metric("holdfast_ledger_written") == 0.0
        declare(holdfast.root, ROUTER | MORE)
        until(lambda: whole(netns, "10.8.0.0/16"), daemon.said())
        told = holdfast.run("status", str(file(holdfast.root)), "-o", "json").json
        assert any("the ledger is not written" in one for one in told["troubles"]), told
        daemon.signal(signal.SIGKILL)  # while claims are in the copy alone
        daemon.process.wait()
        spoil(netns)
    assert "warning: the ledger is not written" in holdfast.ok("plan", str(file(holdfast.root))).err
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns, "10.8.0.0/16"), daemon.said())
        until(lambda: nothing_to_do(holdfast), daemon.said())
        disk.free()
        daemon.wait_for("ledger-written")
        written(holdfast)
        until(lambda: metric("holdfast_ledger_written") == 1.0, "the metric")
        assert metric("holdfast_troubles") == 0.0, daemon.said()
        assert nothing_to_do(holdfast)
        assert "was not carried out" not in daemon.said()
    foreign_is_there(netns)


def test_a_start_on_a_read_only_disk(netns: Namespace, holdfast: Holdfast, disk: Disk) -> None:
    """With a file that is broken, too: the last good configuration is in force."""
    holdfast.set_up("apply", str(file(holdfast.root)), "--yes")
    spoil(netns)
    file(holdfast.root).write_text("spec: [")
    disk.read_only()
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns), daemon.said())
        daemon.wait_for("generation 1 of the ledger is in force")
        disk.writable()
        daemon.wait_for("ledger-written")
        written(holdfast)
    foreign_is_there(netns)


@pytest.mark.parametrize("how", ["read-only", "full"])
def test_a_first_start(netns: Namespace, holdfast: Holdfast, disk: Disk, how: str) -> None:
    """What it made meanwhile is its own later: it is changed and deleted by the file."""
    (disk.read_only if how == "read-only" else disk.fill)()
    with serve(holdfast.root, file(holdfast.root)) as daemon:
        until(lambda: whole(netns), daemon.said())
        until(lambda: nothing_to_do(holdfast), daemon.said())
        (disk.writable if how == "read-only" else disk.free)()
        written(holdfast)
        assert nothing_to_do(holdfast)
        declare(holdfast.root, ROUTER | {"IPv4Route/one": MORE["IPv4Route/two"]})
        until(lambda: routes(netns) == {"10.8.0.0/16"}, daemon.said())
        assert "the mark of a Holdfast" not in daemon.said()
        told = holdfast.run("status", str(file(holdfast.root)), "-o", "json").json
        assert told["troubles"] == []
    foreign_is_there(netns)


def test_a_disk_that_fails(
    netns: Namespace, holdfast: Holdfast, root: Path, tmp_path: Path
) -> None:
    """An ext4 that finds an error turns read-only under whoever has files open there."""
    with (
        ext4(root / "var", tmp_path / "image") as disk,
        serve(holdfast.root, file(holdfast.root)) as daemon,
    ):
        until(lambda: whole(netns), daemon.said())
        fail(disk)
        spoil(netns)
        until(lambda: whole(netns), daemon.said())
        daemon.wait_for("the ledger is not written")
        until(lambda: nothing_to_do(holdfast), daemon.said())
    foreign_is_there(netns)


def test_no_room_below_run_either(netns: Namespace, holdfast: Holdfast, disk: Disk) -> None:
    """What carries a tag is repaired. A link carries none: it waits, for after a crash nobody
    could tell whose it is."""
    with small_disk(holdfast.root / "run", "1m") as run:
        with serve(holdfast.root, file(holdfast.root)) as daemon:
            until(lambda: whole(netns), daemon.said())
            daemon.rest()
            disk.fill()
            run.fill()
            netns.ip("route del 10.9.0.0/16")
            netns.ip("addr del 192.0.2.1/24 dev wan0")
            netns.run("nft", "flush", "ruleset")
            netns.ip(FOREIGN.replace("add", "replace"))
            until(lambda: whole(netns), daemon.said())
            netns.ip("link del br0")
            daemon.wait_for("create-failed link br0")
            assert "nobody could tell later that it is Holdfast's" in daemon.said()
            run.free()
            disk.free()
            until(lambda: whole(netns), daemon.said())
            written(holdfast)
        foreign_is_there(netns)


def test_a_start_with_no_room_anywhere(netns: Namespace, holdfast: Holdfast, disk: Disk) -> None:
    netns.ip("link add br0 type bridge")  # the link that others made needs no claim
    netns.ip("link set br0 up")
    disk.read_only()
    with small_disk(holdfast.root / "run", "1m") as run:
        run.fill()
        with serve(holdfast.root, file(holdfast.root)) as daemon:
            until(lambda: whole(netns), daemon.said())
            daemon.wait_for("kept in memory alone")
            run.free()
            disk.writable()
            daemon.wait_for("ledger-written")
    foreign_is_there(netns)
