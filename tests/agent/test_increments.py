"""Single resources of a source, declared to a real daemon: in the kernel, withdrawn, swept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import sockets
from holdfast.api.client import Client, connected
from holdfast.paths import Paths
from tests.agent.daemon import Daemon, serve
from tests.namespace import Namespace
from tests.resources.parts import admitting, raw
from tests.resources.routers import load

CI = "Owner/ci"
ANSWERED_S = 60.0


def route(name: str, destination: str, **more: Any) -> dict[str, Any]:
    spec = {"destination": destination, "gateway": "192.0.2.9", "interface": "lan"}
    return raw("IPv4Route", name, spec | more)


@dataclass(frozen=True, slots=True)
class Scene:
    netns: Namespace
    client: Client
    daemon: Daemon

    def declare(
        self, *put: dict[str, Any], withdraw: tuple[str, ...] = (), **more: Any
    ) -> dict[str, tuple[str, str]]:
        request = pb.DeclareRequest(
            source=CI,
            put=[json.dumps(one).encode() for one in put],
            withdraw=withdraw,
            wait_seconds=30,
            **more,
        )
        reply = self.client.ask("Dynamic.Declare", request, pb.DeclareReply, ANSWERED_S)
        return {one.id: (one.state, one.outcome) for one in reply.resources}

    def routes(self) -> set[str]:
        lines = self.netns.ip("route show proto 72").splitlines()
        return {line.split()[0] for line in lines}


@pytest.fixture
def scene(netns: Namespace, tmp_path: Path) -> Iterator[Scene]:
    netns.ip("link add eth0 type veth peer name eth1")
    netns.ip("link set eth0 up")
    netns.ip("link set eth1 up")
    netns.ip("address add 192.0.2.1/24 dev eth0")
    lan = ("Interface", "lan", {"ifname": "eth0", "managed": False})
    load(tmp_path, lan, admitting(CI))
    with serve(tmp_path, tmp_path / "router.yaml") as daemon:
        daemon.wait_for("read: 2 resources")
        with (
            sockets.folder(Paths(tmp_path)) as folder,
            connected(f"{folder}/holdfast.sock") as client,
        ):
            yield Scene(netns, client, daemon)


def test_single_resources_come_and_go(scene: Scene) -> None:
    done = scene.declare(route("a", "10.1.0.0/16"), route("b", "10.2.0.0/16"))
    assert done == {
        "IPv4Route/a": ("declared", "converged"),
        "IPv4Route/b": ("declared", "converged"),
    }
    assert scene.routes() == {"10.1.0.0/16", "10.2.0.0/16"}
    assert scene.declare(route("c", "10.3.0.0/16")) == {"IPv4Route/c": ("declared", "converged")}
    assert scene.declare(route("c", "10.3.0.0/16")) == {"IPv4Route/c": ("unchanged", "converged")}
    done = scene.declare(route("c", "10.4.0.0/16"), withdraw=("IPv4Route/a",))
    assert done == {
        "IPv4Route/c": ("declared", "converged"),
        "IPv4Route/a": ("withdrawn", "converged"),
    }
    assert scene.routes() == {"10.2.0.0/16", "10.4.0.0/16"}


def test_what_others_hold_is_told(scene: Scene) -> None:
    scene.declare(route("a", "10.1.0.0/16"))
    scene.netns.ip("route add 10.9.0.0/16 via 192.0.2.7 dev eth0")
    done = scene.declare(route("held", "10.9.0.0/16"), route("free", "10.8.0.0/16"))
    assert done == {
        "IPv4Route/held": ("declared", "failed"),
        "IPv4Route/free": ("declared", "converged"),
    }
    assert "via 192.0.2.7" in scene.netns.ip("route show 10.9.0.0/16")


def test_a_sync_leaves_what_is_put_again(scene: Scene) -> None:
    scene.declare(route("a", "10.1.0.0/16"), route("b", "10.2.0.0/16"))
    scene.declare(route("b", "10.2.0.0/16"), begin_sync=True, complete_sync=True)
    assert scene.routes() == {"10.2.0.0/16"}


def test_what_is_refused_changes_nothing(scene: Scene) -> None:
    scene.declare(route("a", "10.1.0.0/16"))
    done = scene.declare(route("b", "10.2.0.0/16"), route("x", "10.3.0.0/16", interface="wan"))
    assert {one[0] for one in done.values()} == {"refused"}
    assert scene.routes() == {"10.1.0.0/16"}
