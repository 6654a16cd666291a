"""What becomes of a connection where the test machine has no such links."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.path import judgement
from holdfast.engine.path.judgement import Connection, Situation
from holdfast.engine.path.lookup import Path
from holdfast.engine.path.network import Network
from holdfast.engine.plan import Change, Operation, Verb

OPERATOR, ROUTER = ip_address("10.9.0.2"), ip_address("10.9.0.1")
ANNE = "anne= allowed-ips=10.9.0.2/32,10.50.0.0/16 keepalive=off psk=none"
BOB = "bob= endpoint=192.0.2.7:51820 allowed-ips=10.9.0.0/24 keepalive=25 psk=none"


def tunnel(key: str = "ours=", *peers: str) -> Artifact:
    return Artifact(Key("wireguard", "wg0"), {"public_key": key, "peers": peers})


def judge(*operations: Operation, lower: dict[str, str] | None = None) -> str:
    connection = Connection(OPERATOR, ROUTER, 40000, 22)
    network = Network(4, {name: {"type": "", "up": True} for name in ("wg0", "ppp0", "wan0")})
    network.addresses[Key("address", "10.9.0.1/24 dev wg0")] = {"address": "10.9.0.1", "dev": "wg0"}
    path = Path("unicast", frozenset({Nexthop(dev="wg0")}))
    found, known = judgement.relevant(operations, connection)
    loss = judgement.judge(Situation(connection, network, path, lower or {}), found, known)
    return loss.why if loss is not None else ""


@pytest.mark.parametrize(
    ("after", "cut"),
    [
        (tunnel("ours=", ANNE, BOB), False),
        # Endpoints and other peers are their own matter.
        (tunnel("ours=", ANNE.replace("keepalive=off", "keepalive=25")), False),
        (tunnel("ours=", BOB), True),  # who has the rest of the prefix is somebody else
        (tunnel("ours=", ANNE.replace("10.9.0.2/32,", ""), BOB), True),
        (tunnel("ours=", ANNE.replace("psk=none", "psk=12"), BOB), True),
        (tunnel("other=", ANNE, BOB), True),
        (tunnel("ours="), True),
    ],
)
def test_peers_of_a_wireguard_link(after: Artifact, cut: bool) -> None:
    before = tunnel("ours=", ANNE, BOB)
    operation = Operation(Verb.UPDATE, after, (), "differs", observed=before)
    assert bool(judge(operation)) == cut


def test_a_wireguard_link_that_is_told_nothing_any_more() -> None:
    before = tunnel("ours=", ANNE, BOB)
    operation = Operation(Verb.DELETE, before, (), "no longer declared", observed=before)
    assert judge(operation) == f"wg0 has {OPERATOR} for no peer, or not the same keys, then"


def test_links_below_that_only_the_configuration_knows_of() -> None:
    down = Operation(
        Verb.UPDATE, link("wan0", {"up": False}), (), "", changes=(Change("up", True, False),)
    )
    assert judge(down) == ""
    assert judge(down, lower={"wg0": "ppp0", "ppp0": "wan0"}) == "wan0 is down then"
