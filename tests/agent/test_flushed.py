"""Somebody flushes the main table, and with our routes go the kernel's own to our prefixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import Scene, document

RESOURCES = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/more": "{interface: wan, address: 192.0.2.2/24}",
    "IPv4Route/default": "{destination: 0.0.0.0/0, gateway: 192.0.2.254}",
}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    netns.veth("wan0", "far0")
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    return file


def main(netns: Namespace) -> list[str]:
    return sorted(netns.ip("route show table main").splitlines())


def test_a_pass_brings_back_all_of_it(file: Path, root: Path, netns: Namespace) -> None:
    assert file.exists()
    scene = Scene(Paths(root))
    assert scene.apply(RESOURCES).converged
    before = main(netns)
    assert len(before) == 2
    netns.ip("route flush table main")
    report = scene.apply(RESOURCES)
    assert main(netns) == before
    assert report.converged and not report.failures
    assert not scene.apply(RESOURCES).results


def test_the_daemon_brings_it_back_at_once(file: Path, root: Path, netns: Namespace) -> None:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        until(lambda: len(main(netns)) == 2, "all is as declared")
        before = main(netns)
        for _ in range(3):
            netns.ip("route flush table main")
            until(lambda: main(netns) == before, daemon.said())
        daemon.rest()
        netns.ip("route del 192.0.2.0/24")  # alone, with nothing of ours
        until(lambda: main(netns) == before, daemon.said())
        # The kernel told of it: no timer brought about any of this.
        assert "because of the timer" not in daemon.said()
        assert daemon.end() == 0
    with Ledger.read(Paths(root)) as ledger:
        told = [one for one in ledger.events() if one.kind == "repaired"]
    addresses = [one for one in told if one.subject == "address 192.0.2.1/24 dev wan0"]
    assert addresses and "no_prefix_route changed by " in addresses[-1].message
