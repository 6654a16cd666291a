"""A real daemon with one link to keep, and clients for its sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.api import sockets
from holdfast.api.client import Client, connected
from holdfast.paths import Paths
from tests.agent.daemon import Daemon, serve
from tests.namespace import Namespace
from tests.safety.router_scene import document

ADDRESS = "{interface: wan, address: 192.0.2.1/24}"
ROUTER = {"Interface/wan": "{ifname: wan0}", "IPv4StaticAddress/wan": ADDRESS}


@dataclass(slots=True)
class Served:
    root: Path
    file: Path
    netns: Namespace
    daemon: Daemon
    held: ExitStack = field(default_factory=ExitStack)

    @property
    def paths(self) -> Paths:
        return Paths(self.root)

    def socket(self, name: str) -> Path:
        return self.paths.under(sockets.FOLDER) / name

    def client(self, name: str = "holdfast.sock") -> Client:
        folder = self.held.enter_context(sockets.folder(self.paths))
        return self.held.enter_context(connected(f"{folder}/{name}"))


def declare(file: Path, resources: dict[str, str]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(document(resources))
    fresh.rename(file)


@pytest.fixture
def served(netns: Namespace, root: Path) -> Iterator[Served]:
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    declare(file, ROUTER)
    with serve(root, file) as daemon, ExitStack() as held:
        daemon.wait_for("because of the start")
        yield Served(root, file, netns, daemon, held)
