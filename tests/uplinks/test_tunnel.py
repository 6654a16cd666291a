"""A WireGuard tunnel as one of the ways out: its own packets leave by another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.firewall.hosts import SHORT
from tests.host.wireguard_scene import Tunnel, tunnel, wait_for_handshake
from tests.namespace import Namespace

pytestmark = pytest.mark.qemu

ENDPOINT, BEYOND = "198.51.100.7", "203.0.113.1"  # both behind the far end, and on no link of ours
WAYS = {
    "Interface/uplink": "{ifname: nic0, managed: false}",
    "IPv4DefaultRoutePolicy/out": "{candidates: ["
    "{interface: wg0, priority: 10, table: 111, mark: 0x111},"
    " {interface: uplink, gatewaySource: static, gateway: 10.99.0.2, priority: 20, table: 112,"
    " mark: 0x112}]}",
}


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Tunnel]:
    with tunnel(tmp_path) as made:
        made.far_link()
        made.far.ip(f"addr add {ENDPOINT}/32 dev lo", f"addr add {BEYOND}/32 dev lo")
        yield made


def _declared(wire: Tunnel, fwmark: int) -> dict[str, str]:
    peer = wire.peer(endpoint=f"{ENDPOINT}:51820", allowedIPs='["0.0.0.0/0"]')
    return wire.declared(peer, fwmark=fwmark, routes="false") | WAYS


def test_by_the_mark_of_another_candidate(wire: Tunnel) -> None:
    wire.converge(_declared(wire, 0x112))
    assert "dev wg0" in Namespace().ip(f"route get {BEYOND}")
    with wire.far.listen(BEYOND, 80):
        wire.near.connect(BEYOND, 80).close()
    wait_for_handshake(wire.theirs.public)


def test_without_a_mark_they_go_in_circles(wire: Tunnel) -> None:
    """What `validate` warns of."""
    wire.converge(_declared(wire, 0))
    with wire.far.listen(BEYOND, 80), pytest.raises(OSError, match=r"."):
        wire.near.connect(BEYOND, 80, wait=2 * SHORT)
