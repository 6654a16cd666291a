"""An owner advertises over the API of routing control, and the neighbour really hears of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.api import sockets
from holdfast.api.tokens import digest_of
from holdfast.client import RouteError, Routes
from holdfast.paths import Paths
from holdfast.resources.dynamic.tokens import as_declared
from tests.cli.served import daemon
from tests.frr.ground import wait_until
from tests.routing.scene import ROUTING, Scene

TOKEN = "a-token-of-the-test-that-is-long"  # noqa: S105 (of a test)
EDGE = (
    "DynamicConfigSource",
    "edge",
    f'{{source: Owner/edge, tokens: ["{as_declared(digest_of(TOKEN))}"], allow: {{kinds:'
    " [BGPPrefix], names: ['*'], maxResources: 10, prefixes: [198.51.100.0/24], prefixLength:"
    " host_only}}",
)


@pytest.fixture
def edge(scene: Scene) -> Iterator[Routes]:
    scene.declare(*ROUTING, EDGE)
    with daemon(scene.holdfast, scene.holdfast.folder / "router.yaml") as running:
        scene.wait_for_routes(2)
        running.rest()
        with sockets.folder(Paths(scene.holdfast.root)) as folder:
            place = f"{folder}/{sockets.ROUTES.name}"
            with Routes("edge", token=TOKEN, socket=place) as routes:
                yield routes


def test_what_an_owner_advertises_is_at_the_neighbour(scene: Scene, edge: Routes) -> None:
    before = scene.bgp_lines()
    edge.advertise("198.51.100.7/32", med=0)
    scene.wait_for_routes(3)
    assert "BGP.med: 0" in scene.told("198.51.100.7/32")
    with pytest.raises(RouteError):
        edge.advertise("198.51.100.0/25")
    edge.advertise("198.51.100.8/32")
    edge.withdraw("198.51.100.7/32")
    wait_until("it is withdrawn", lambda: "198.51.100.8/32" in scene.told("198.51.100.8/32"))
    scene.wait_for_routes(3)
    edge.withdraw("198.51.100.8/32")
    scene.wait_for_routes(2)
    wait_until("nothing of it is left", lambda: scene.bgp_lines() == before)
