"""What makes the daemon look again, and what it does with files that are not valid."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import pytest

from holdfast.host.facts import clock
from holdfast.host.facts.leases import FOLDER
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.firewall.hosts import LONG
from tests.namespace import Namespace
from tests.safety.router_scene import document
from tests.uplinks.uplink_network import WAN, policy

LINK = {"Interface/wan": "{ifname: wan0}"}
ADDRESS = {**LINK, "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}"}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    return root / "router.yaml"


def put(file: Path, text: str) -> None:
    """As an editor does it."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def has(netns: Namespace, address: str) -> bool:
    return address in netns.ip("addr show dev wan0")


def lease(root: Path, gateway: str) -> None:
    """As the hook of the DHCP client leaves it."""
    said = {
        "interface": "wan0",
        "reason": "BOUND",
        "holdfast_boot": clock.boot_id(),
        "holdfast_uptime": str(clock.uptime()),
        "new_ip_address": "192.0.2.1",
        "new_subnet_cidr": "24",
        "new_dhcp_lease_time": "3600",
        "new_routers": gateway,
    }
    place = Paths(root).under(FOLDER) / "wan0.4.lease"
    fresh = place.with_suffix(".new")
    fresh.write_bytes(b"".join(f"{name}={value}\0".encode() for name, value in said.items()))
    fresh.replace(place)


def test_lease(file: Path, root: Path, netns: Namespace) -> None:
    netns.ip("addr add 192.0.2.1/24 dev wan0")
    candidate = WAN.replace("static, gateway: 192.0.2.254", "dhcp4").replace(
        ", healthCheck: wan", ""
    )
    file.write_text(document({**LINK, "IPv4DefaultRoutePolicy/default": policy(candidate)}))
    with serve(root, file) as daemon:
        daemon.wait_for("waits for a DHCP lease on wan0")
        for gateway in ("192.0.2.254", "192.0.2.253"):
            lease(root, gateway)
            route = f"default via {gateway} dev wan0 table 111 "
            until(lambda: route in netns.ip("route show table all"), route)  # noqa: B023
        daemon.wait_for("a lease: ")
        assert netns.ip("route show table 111").count("default") == 1


def test_file_that_changes_and_one_that_is_broken(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        until(lambda: has(netns, "192.0.2.1/24"), "the first file")
        put(file, document(ADDRESS).replace("192.0.2.1/24", "192.0.2.7/24"))
        until(lambda: has(netns, "192.0.2.7/24") and not has(netns, "192.0.2.1/24"), "the second")
        broken = document(ADDRESS).replace("address: 192.0.2.1/24", "address: 192.0.2.1/99")
        put(file, broken)
        daemon.wait_for(f"{file} is invalid: the last good one stays in force")
        assert f"{file}:13:" in daemon.said()
        # Whoever asks is told again; the pass after it does not say once more what was just said.
        netns.ip("addr del 192.0.2.7/24 dev wan0")
        daemon.wait_for("repaired address 192.0.2.7/24")
        assert daemon.said().count("is invalid") == 1
        daemon.signal(signal.SIGHUP)
        daemon.wait_for("is invalid", 2)
        file.unlink()
        daemon.wait_for("is invalid", 3)
        assert has(netns, "192.0.2.7/24")
        # The last good one is not only left in peace: it is still held to.
        netns.ip("addr del 192.0.2.7/24 dev wan0")
        until(lambda: has(netns, "192.0.2.7/24"), "repaired by the last good file")
        file.write_text(document(ADDRESS))
        until(lambda: has(netns, "192.0.2.1/24"), "the file as it was first")
        assert daemon.end() == 0
    assert has(netns, "192.0.2.1/24")


def test_route_list_that_changes(file: Path, root: Path, netns: Namespace) -> None:
    netns.ip("addr add 192.0.2.1/24 dev wan0")
    routes = root / "lists" / "routes.txt"
    routes.parent.mkdir()
    routes.write_text("198.51.100.0/24 via 192.0.2.2\n")
    file.write_text(document({"RouteList/all": "{file: lists/routes.txt}"}))
    with serve(root, file):
        until(lambda: "198.51.100.0/24" in netns.ip("route show"), "the first list")
        put(routes, "198.51.100.0/24 via 192.0.2.2\n203.0.113.0/24 via 192.0.2.2\n")
        until(lambda: "203.0.113.0/24" in netns.ip("route show"), "the second list")


def test_address_that_somebody_takes_away(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: has(netns, "192.0.2.1/24"), "the address again")
        told = "repaired address 192.0.2.1/24 dev wan0 for IPv4StaticAddress/wan: was deleted by "
        daemon.wait_for(told)


def test_stopped_in_the_middle_of_a_pass(file: Path, root: Path, netns: Namespace) -> None:
    """It waits for the ledger, and then finishes what it began."""
    file.write_text(document(ADDRESS))
    with Ledger.open(Paths(root), command="test") as held, serve(root, file) as daemon:
        daemon.wait_for("read: 2 resources")
        daemon.signal(signal.SIGTERM)
        time.sleep(0.3)
        assert daemon.process.poll() is None
        assert not has(netns, "192.0.2.1/24")
        held.close()
        assert daemon.process.wait(LONG) == 0
    assert has(netns, "192.0.2.1/24")
    with Ledger.read(Paths(root)) as ledger:
        assert [one.state for one in ledger.generations()] == ["converged"]


def test_service_manager_is_told(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document(ADDRESS))
    place = str(root / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(place)
        manager.settimeout(LONG)
        with serve(root, file, {"NOTIFY_SOCKET": place}) as daemon:
            assert manager.recv(64) == b"READY=1"
            assert has(netns, "192.0.2.1/24")
            assert daemon.end() == 0
            assert manager.recv(64) == b"STOPPING=1"


def test_second_daemon_is_refused(file: Path, root: Path) -> None:
    file.write_text(document(LINK))
    with serve(root, file) as first:
        first.wait_for("read: 1 resources")
        with serve(root, file) as second:
            assert second.process.wait(LONG) == 4
            assert f"at work on {root} (process {first.process.pid})" in second.said()
        # Whatever the first one dies of, another can take its place.
        first.signal(signal.SIGKILL)
        first.process.wait()
        with serve(root, file) as third:
            third.wait_for("read: 1 resources")


def test_slow_sink_holds_nothing_up(open_folder: Path, netns: Namespace) -> None:
    """It runs as nobody, who has to get to it and to have a place to write to."""
    root, spool = open_folder / "root", open_folder / "spool"
    root.mkdir(mode=0o755)
    spool.mkdir()
    spool.chmod(0o777)
    netns.veth("wan0", "far0")
    file, program = root / "router.yaml", root / "sink"
    program.write_text(
        f"#!/bin/sh\ncat > {spool}/begun\nwhile [ ! -e {spool}/go ]; do sleep 0.1; done\n"
    )
    program.chmod(0o755)
    sink = (
        "    - {apiVersion: system.holdfast.dev/v1alpha1, kind: LogSink, metadata: {name: slow},\n"
    )
    sink += "       spec: {type: plugin, plugin: {path: /sink, timeout: 60s}}}\n"
    file.write_text(document(ADDRESS) + sink)
    with serve(root, file) as daemon:
        until((spool / "begun").exists, "the sink is told")
        put(file, document(ADDRESS).replace("192.0.2.1/24", "192.0.2.7/24") + sink)
        until(lambda: has(netns, "192.0.2.7/24"), "a pass while the sink is busy")
        daemon.signal(signal.SIGTERM)
        (spool / "go").touch()
        assert daemon.process.wait(LONG) == 0
