"""The first address declared in a subnet is the one that packets are sent from, and stays it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.cli import confirm_scene as trials
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.namespace import Namespace

SECOND = ("IPv4StaticAddress", "second", "{interface: wan, address: 192.0.2.2/24}")


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


def order(netns: Namespace) -> list[str]:
    told = [one for link in netns.ip_json("-4 addr show dev wan0") for one in link["addr_info"]]
    return [one["local"] + (" secondary" if one.get("secondary") else "") for one in told]


@pytest.mark.parametrize("promote", ["0", "1"])
def test_deleted_and_back(holdfast: Holdfast, netns: Namespace, promote: str) -> None:
    """Where secondaries are promoted, another has taken its place when it is made again."""
    netns.veth("wan0", "isp0")
    netns.run("sysctl", "-q", f"net.ipv4.conf.wan0.promote_secondaries={promote}")
    served = holdfast.declare(WAN, WAN_ADDRESS, SECOND)
    holdfast.set_up("apply", "router.yaml", "--yes")
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        assert order(netns) == ["192.0.2.1", "192.0.2.2 secondary"]
        netns.ip("route add 10.9.0.0/16 via 192.0.2.254 proto static")
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        trials.until(lambda: order(netns) == ["192.0.2.1", "192.0.2.2 secondary"], "as declared")
        if promote == "1":
            assert "10.9.0.0/16 via 192.0.2.254" in netns.ip("route show")
            assert "192.0.0.8" not in netns.ip("addr show")
        assert daemon.end() == 0


def test_others_stand_before_it(holdfast: Holdfast, netns: Namespace) -> None:
    """Theirs came first, and nothing of theirs is moved."""
    netns.veth("wan0", "isp0", "192.0.2.77/24")
    holdfast.declare(WAN, WAN_ADDRESS, SECOND)
    holdfast.ok("apply", "router.yaml", "--yes")
    assert order(netns) == ["192.0.2.77", "192.0.2.1 secondary", "192.0.2.2 secondary"]
    assert "nothing to do" in holdfast.ok("plan", "router.yaml").out
