"""Somebody's address on another link overlaps with a declared one, while the daemon runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.cli import confirm_scene as trials
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

LAN = ("Interface", "lan", "{ifname: lan0, adminUp: true}")
FIRST = ("IPv4StaticAddress", "lan", "{interface: lan, address: 192.0.2.1/24}")
RENUMBERED = ("IPv4StaticAddress", "lan", "{interface: lan, address: 198.51.100.1/24}")


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    root.mkdir(exist_ok=True)
    return Holdfast(folder, root)


@pytest.fixture(autouse=True)
def links(netns: Namespace) -> None:
    netns.veth("lan0", "client0")
    netns.veth("other0", "other1")


def on_lan(netns: Namespace) -> str:
    return netns.ip("-4 -o addr show dev lan0")


def test_what_was_there_first_is_repaired(holdfast: Holdfast, netns: Namespace) -> None:
    served = holdfast.declare(LAN, FIRST)
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("converged")
        netns.ip("addr add 192.0.2.66/24 dev other0")
        daemon.wait_for("stays in force, but the prefixes overlap")
        netns.ip("addr del 192.0.2.1/24 dev lan0")
        trials.until(lambda: "192.0.2.1/24" in on_lan(netns), "repaired")
        assert daemon.end() == 0


def test_a_link_that_cannot_get_its_new_address_keeps_the_old_one(
    holdfast: Holdfast, netns: Namespace
) -> None:
    served = holdfast.declare(LAN, FIRST)
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("converged")
        netns.ip("addr add 198.51.100.66/24 dev other0")
        holdfast.declare(LAN, RENUMBERED)
        daemon.wait_for("blocked: IPv4StaticAddress/lan address 198.51.100.1/24 dev lan0")
        daemon.rest()
        assert "192.0.2.1/24" in on_lan(netns)
        netns.ip("addr del 198.51.100.66/24 dev other0")
        trials.until(lambda: "192.0.2.1/24" not in on_lan(netns), "renumbered")
        assert "198.51.100.1/24" in on_lan(netns)
        assert daemon.end() == 0
