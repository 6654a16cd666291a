"""A leg that another program appends to an IPv6 route of ours: the kernel makes one route of both,
and only the other can take its leg out again. That is told, and not called a repair."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.safety.router_scene import document

ROUTE = "2001:db8:9::/48"
RESOURCES = {
    "Interface/lan": "{ifname: lan0, adminUp: true}",
    "IPv6StaticAddress/lan": "{interface: lan, address: '2001:db8:1::1/64'}",
    "IPv6Route/office": f"{{destination: '{ROUTE}', gateway: '2001:db8:1::fe', interface: lan}}",
}


def phase(holdfast: Holdfast) -> str:
    done = holdfast.run("status", "-o", "json")
    found = {one["resource"]: one["phase"] for one in json.loads(done.out)["resources"]}
    return str(found["IPv6Route/office"])


def test_another_programs_leg_in_our_route(netns: Namespace, root: Path, tmp_path: Path) -> None:
    root.mkdir()
    netns.veth("lan0", "far0")
    Path("/proc/sys/net/ipv6/conf/lan0/accept_dad").write_text("0")
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    holdfast = Holdfast(tmp_path, root)

    def has_routes(count: int) -> bool:
        return netns.ip(f"-6 route show {ROUTE}").count("via ") == count

    def told(daemon: Daemon) -> None:
        daemon.wait_for("another program added a leg to it (via 2001:db8:1::fd dev lan0)")
        assert has_routes(2), "it is not ours to delete"
        assert phase(holdfast) == "Blocked"
        assert "repaired" not in daemon.said()

    with serve(root, file) as daemon:
        until(lambda: has_routes(1), "the first pass")
        netns.ip(f"-6 route append {ROUTE} via 2001:db8:1::fd dev lan0 proto static")
        told(daemon)
        daemon.end()
    with serve(root, file) as daemon:
        told(daemon)
        netns.ip(f"-6 route del {ROUTE} via 2001:db8:1::fd dev lan0 proto static")
        until(lambda: phase(holdfast) == "Healthy", "the leg is gone")
        assert has_routes(1)
        assert daemon.end() == 0
