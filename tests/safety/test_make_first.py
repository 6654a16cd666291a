"""Who mistypes the gateway of a default route keeps the one there is."""

from __future__ import annotations

import time
from pathlib import Path

from holdfast.paths import Paths
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import Scene, document

LAN = {
    "Interface/lan": "{ifname: nic1}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/lan": "{interface: lan, address: 'fd00::1/64'}",
}
BEFORE = LAN | {
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 192.0.2.254}",
    "IPv6Route/default": "{destination: '::/0', gateway: 'fd00::fe'}",
}
MISTYPED = LAN | {
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 10.9.9.9, interface: lan, metric: 50}",
    "IPv6Route/default": "{destination: '::/0', gateway: 'fd09::fe', interface: lan, metric: 50}",
}
# Nothing says which link these are behind: they wait.
UNKNOWN = LAN | {
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 10.9.9.9, metric: 50}",
    "IPv6Route/default": "{destination: '::/0', gateway: 'fd09::fe', metric: 50}",
}
AFTER = LAN | {
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 192.0.2.253, metric: 50}",
    "IPv6Route/default": "{destination: '::/0', gateway: 'fd00::fd', metric: 50}",
}


def ways(netns: Namespace) -> list[str]:
    found = netns.ip_json("-4 route show default proto 72")
    found += netns.ip_json("-6 route show default proto 72")
    return [one["gateway"] for one in found]


def test_the_old_way_stays_until_there_is_a_new_one(netns: Namespace, root: Path) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
    netns.veth("nic1", "far1")
    scene = Scene(Paths(root))
    assert scene.apply(BEFORE).converged
    assert ways(netns) == ["192.0.2.254", "fd00::fe"]
    for _ in range(2):
        report = scene.apply(MISTYPED)
        assert len(report.failures) == 4 and not report.converged
        assert ways(netns) == ["192.0.2.254", "fd00::fe"]
        report = scene.apply(UNKNOWN)
        assert len(report.after.pending) == 2 and not report.converged
        assert ways(netns) == ["192.0.2.254", "fd00::fe"]
    assert scene.apply(AFTER).converged
    assert ways(netns) == ["192.0.2.253", "fd00::fd"]


def test_the_daemon_keeps_it_too_however_often_it_tries(netns: Namespace, root: Path) -> None:
    netns.run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
    netns.veth("nic1", "far1")
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document(BEFORE))
    with serve(root, file) as daemon:
        until(lambda: ways(netns) == ["192.0.2.254", "fd00::fe"], "all is as declared")
        file.write_text(document(MISTYPED))
        daemon.wait_for("create-failed", 2)
        deadline = time.monotonic() + 5  # what failed is tried again after one second, then three
        while time.monotonic() < deadline:
            assert ways(netns) == ["192.0.2.254", "fd00::fe"], daemon.said()
            time.sleep(0.1)
        file.write_text(document(UNKNOWN))
        daemon.wait_for("waits for the link of gateway", 2)
        daemon.rest()
        assert ways(netns) == ["192.0.2.254", "fd00::fe"], daemon.said()
        file.write_text(document(AFTER))
        until(lambda: ways(netns) == ["192.0.2.253", "fd00::fd"], daemon.said())
        assert daemon.end() == 0
