"""`holdfast cleanup`: everything of ours, and nothing else."""

from __future__ import annotations

import pytest

from holdfast.cli import main
from tests.cli import confirm_scene as scene
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.namespace import Namespace

LAN = ("Interface", "lan", "{ifname: br0, type: bridge, adminUp: true}")
LAN_ADDRESS = ("IPv4StaticAddress", "lan", "{interface: lan, address: 198.51.100.1/24}")


def test_what_is_owned_goes_and_the_rest_stays(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, LAN, LAN_ADDRESS, route("lab", "203.0.113.0/24"))
    holdfast.ok("apply", str(file), "--yes")
    wan.ip("route add blackhole 192.0.0.0/24")
    wan.ip("address add 10.9.9.9/24 dev wan0")
    done = holdfast.ok("cleanup", str(file), "--yes")
    assert "4 deleted" in done.out
    left = wan.ip("-o address") + wan.ip("route") + wan.ip("-o link")
    assert "192.0.2.1/24" not in left
    assert "203.0.113.0/24" not in left
    assert "br0" not in left
    assert "blackhole 192.0.0.0/24" in left
    assert "10.9.9.9/24" in left
    assert "wan0" in left
    assert holdfast.ok("cleanup", str(file), "--yes").code == 0
    assert "UTC, nothing declared: a cleanup\n" in holdfast.ok("ledger", "show").out
    # It can be had back.
    holdfast.ok("apply", str(file), "--yes")
    assert "203.0.113.0/24" in wan.ip("route")


def test_a_link_that_others_use_stays(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(LAN, LAN_ADDRESS)
    holdfast.ok("apply", str(file), "--yes")
    wan.ip("address add 192.0.2.77/24 dev br0")
    done = holdfast.run("cleanup", str(file), "--yes")
    assert done.code != 0
    assert "192.0.2.77/24" in wan.ip("-o address")
    assert "192.0.2.77" in done.out + done.err


def test_without_a_file_the_last_good_one_says_the_tag(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS, route("lab", "203.0.113.0/24"))
    text = file.read_text().replace(
        "spec:\n  resources:", "spec:\n  ownership: {tag: 77}\n  resources:", 1
    )
    file.write_text(text)
    holdfast.ok("apply", str(file), "--yes")
    wan.ip("route add blackhole 192.0.0.0/24 proto 72")
    file.unlink()
    holdfast.ok("cleanup", str(file), "--yes")
    assert "203.0.113.0/24" not in wan.ip("route")
    assert "192.0.0.0/24" in wan.ip("route")


def test_nobody_to_be_asked(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", str(file), "--yes")
    done = holdfast.run("cleanup", str(file))
    assert done.code == 4
    assert "192.0.2.1/24" in wan.ip("-o address")


@pytest.mark.parametrize("stage", range(4))
def test_killed_in_the_middle_it_is_gone_on_with(
    holdfast: Holdfast, wan: Namespace, stage: int
) -> None:
    before = wan.ip("route show"), wan.ip("rule show"), wan.ip("-br link show type bridge")
    lan = ("Interface", "lan", "{ifname: lan0, type: bridge, adminUp: true}")
    inner = ("IPv4StaticAddress", "lan", "{interface: lan, address: 10.7.0.1/24}")
    rule = ("RoutingRule", "a", "{priority: 1000, from: 10.9.0.0/16, table: 100}")
    file = holdfast.declare(WAN, WAN_ADDRESS, lan, inner, rule, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", str(file), "--yes")
    words = ["--root", str(holdfast.root), "cleanup", str(file), "--yes"]
    scene.killed_at_stage(stage, lambda: main.run(words))
    for _ in range(2):
        holdfast.ok("cleanup", str(file), "--yes")
        after = wan.ip("route show"), wan.ip("rule show"), wan.ip("-br link show type bridge")
        assert after == before
