"""A trial that is taken back by another daemon than the one it was begun beside."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.cli import confirm_scene as trials
from tests.cli import others_scene as scene
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.cli.test_put_back import same
from tests.namespace import Namespace


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.mark.parametrize("foreign", ["there", "gone meanwhile"])
def test_renumbered_and_killed(holdfast: Holdfast, netns: Namespace, foreign: str) -> None:
    """Somebody's route from a secondary keeps our old address there for the first pass of the
    candidate; once that is gone the daemon deletes ours, which the way back has to know of all the
    same."""
    scene.unchecked()
    netns.veth("wan0", "isp0")
    served = holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.set_up("apply", "router.yaml", "--yes")
    scene.make(netns, "route add 10.99.0.0/16 via 192.0.2.254 proto static")
    other = ("IPv4StaticAddress", "wan", "{interface: wan, address: 198.51.100.1/24}")
    holdfast.declare(WAN, other, file="candidate.yaml")
    if foreign == "gone meanwhile":
        scene.make(netns, "addr add 192.0.2.77/24 dev wan0")
        scene.make(netns, "route add 10.98.0.0/16 dev wan0 src 192.0.2.77 proto static")
    before = trials.settled(lambda: scene.everything(netns))
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        holdfast.run("apply", "candidate.yaml", "--yes", "--confirm-within", "30s")
        if foreign == "gone meanwhile":
            assert "192.0.2.1/24" in netns.ip("addr show dev wan0")
            scene.make(netns, "addr del 192.0.2.77/24 dev wan0")
        trials.until(lambda: "192.0.2.1/24" not in netns.ip("addr show dev wan0"), "renumbered")
        daemon.rest()
        daemon.signal(signal.SIGKILL)
        trials.kill(trials.keepers(holdfast.root))
    trials.until(lambda: trials.overdue(holdfast.root), "the deadline passed")
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("was reverted: nobody confirmed it within 30s\n")
        daemon.wait_for(f"{served} read")
        same(netns, before)
        assert daemon.end() == 0
