"""The first source NAT starts connection tracking under connections that are there already."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.firewall.command import Router
from tests.firewall.home_network import CLIENT, GROUND, ISP, ROUTER, WAN
from tests.firewall.operator_scene import BEHIND, Scene, scene
from tests.namespace import Namespace

_RANGE = "portMapping: {type: range, start: 3000, end: 3999}"
TRANSLATIONS = {
    "masquerade": "{type: interfaceAddress}",
    "range": f"{{type: interfaceAddress, {_RANGE}}}",
    "address": "{type: address, address: 203.0.113.77}",
    "address and range": f"{{type: address, address: 203.0.113.77, {_RANGE}}}",
    "pool": "{type: pool, addresses: [203.0.113.77, 203.0.113.78]}",
}


@pytest.fixture
def network(netns: Namespace) -> Iterator[Scene]:
    with scene(netns) as made:
        made.far.ip(f"route add 203.0.113.76/30 via {WAN}")
        yield made


def nat(translation: str) -> dict[str, str]:
    return GROUND | {
        "IPv4SourceNAT/all": "{outboundInterface: wan, sourceCIDRs: [0.0.0.0/0],"
        f" translation: {translation}}}"
    }


def seen(network: Scene, port: int, sender: socket.socket) -> tuple[str, int]:
    """How a connection looks to the far side."""
    with network.far.listen(ISP, port) as far:
        sender.settimeout(30)
        sender.connect((ISP, port))
        accepted, peer = far.accept()
        with accepted:
            accepted.sendall(b"welcome")
            assert sender.recv(64) == b"welcome"
        return peer[0], peer[1]


def is_translated(translation: str, peer: tuple[str, int]) -> bool:
    addresses = (WAN,) if "interfaceAddress" in translation else ("203.0.113.77", "203.0.113.78")
    return peer[0] in addresses and (_RANGE not in translation or 3000 <= peer[1] <= 3999)


@pytest.mark.parametrize("local", [WAN, ROUTER])
@pytest.mark.parametrize("translation", TRANSLATIONS.values(), ids=list(TRANSLATIONS))
def test_an_operators_connection_goes_on(
    network: Scene, tmp_path: Path, translation: str, local: str
) -> None:
    """Whose next packet is the router's: it is what tracking takes the connection up by."""
    with network.session(BEHIND, local) as session:
        code, said = Router(tmp_path).run("apply", nat(translation), session.ssh)
        assert code == 0, said
        assert session.passes()
        assert session.passes()


@pytest.mark.parametrize("translation", TRANSLATIONS.values(), ids=list(TRANSLATIONS))
def test_what_begins_later_is_translated(network: Scene, tmp_path: Path, translation: str) -> None:
    """Clients' connections, and those that the router makes itself."""
    code, said = Router(tmp_path).run("apply", nat(translation))
    assert code == 0, said
    with network.other.inside():
        client = socket.socket()
    with client, socket.socket() as own, socket.socket() as inside:
        client.bind((CLIENT, 0))
        assert is_translated(translation, seen(network, 8001, client))
        assert is_translated(translation, seen(network, 8002, own))
        inside.bind((ROUTER, 0))
        assert is_translated(translation, seen(network, 8003, inside))
