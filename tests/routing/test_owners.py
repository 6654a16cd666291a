"""An owner advertises over the API of routing control, and the neighbour really hears of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.api import routes_pb2 as pb
from holdfast.api import sockets
from holdfast.api.tokens import digest_of
from holdfast.client import RouteError, Routes
from holdfast.paths import Paths
from holdfast.resources.dynamic.tokens import as_declared
from tests.cli.served import daemon
from tests.frr.ground import wait_until
from tests.routing.scene import NEIGHBOUR, ROUTING, Scene
from tests.routing.test_daemon import events

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


def stage(edge: Routes, resource: str) -> tuple[str, list[str]]:
    found = [one for one in edge.status().objects if one.resource.endswith(resource)]
    name = pb.RouteStage.Name(found[0].stage).removeprefix("ROUTE_STAGE_") if found else ""
    return name, list(found[0].advertised_to) if found else []


def test_an_owner_is_told_what_is_really_advertised(scene: Scene, edge: Routes) -> None:
    edge.advertise("198.51.100.7/32")
    wait_until("it is told", lambda: stage(edge, "198.51.100.7-32") == ("ADVERTISED", [NEIGHBOUR]))
    scene.bird.ask("disable up")
    wait_until("it is applied", lambda: stage(edge, "198.51.100.7-32") == ("APPLIED", []))
    scene.bird.ask("enable up")
    wait_until("it is told again", lambda: stage(edge, "198.51.100.7-32")[0] == "ADVERTISED")
    wait_until("it is an event", lambda: len(events(scene, "prefix-advertised")) > 1)
    frr = scene.holdfast.ok("route", "status").out
    assert "Established" in frr
    scene.frr.kill("bgpd")
    wait_until("FRR is gone", lambda: events(scene, "frr-disconnected"))


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
