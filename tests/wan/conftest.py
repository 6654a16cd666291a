"""A router and its provider, and the client started from the unit that the resources declare."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds.service import Unit, unit_of
from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.router import load_router
from tests.namespace import Namespace
from tests.safety.router_scene import document
from tests.wan.isp import Provider, provider, wait_for

WAN = {"Interface/wan": "{ifname: wan0, managed: false}"}


def tell(
    process: subprocess.Popen[bytes], number: signal.Signals, effect: Callable[[], Any], what: str
) -> None:
    """dhcpcd 9.4.1 loses signals that reach it while its hook runs: they are sent again."""
    for _ in range(20):
        process.send_signal(number)
        with suppress(AssertionError):
            wait_for(effect, what, 2)
            return
    raise AssertionError(f"{number.name} had no effect: {what}")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


@dataclass(frozen=True, slots=True)
class Router:
    folder: Path
    root: Path

    def desired(self, resources: dict[str, str], facts: Facts = NOTHING_KNOWN) -> Desired:
        path = self.folder / "router.yaml"
        path.write_text(document({**WAN, **resources}))
        return compile_router(load_router(path), facts, str(self.root))

    def facts(self) -> Facts:
        return read_facts(Paths(self.root), ())

    @contextmanager
    def clients(self, resources: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
        """dhcpcd, by the units and the files that the resources declare."""
        processes = self.start_clients(resources)
        try:
            yield processes
        finally:
            for process in processes:
                tell(process, signal.SIGTERM, partial(_ended, process), "its end")

    def start_clients(self, resources: dict[str, str]) -> list[subprocess.Popen[bytes]]:
        processes = []
        for unit in self.write_files(resources):
            for folder in unit.folders:
                Path(folder).mkdir(parents=True, exist_ok=True)
            with (self.folder / "dhcpcd.log").open("ab") as log:
                processes.append(subprocess.Popen(unit.argv, stdout=log, stderr=log))
        return processes

    def write_files(self, resources: dict[str, str]) -> list[Unit]:
        units: dict[str, Unit] = {}
        for intent in self.desired(resources, self.facts()).intents:
            if isinstance(intent, BulkIntent):
                continue
            artifact = intent.artifact
            if artifact.key.kind == "file":
                path = Path(f"{self.root}{artifact.key.name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(artifact.payload)
                path.chmod(int(str(artifact.fields["mode"]), 8))
            elif artifact.key.kind == "service":
                units[artifact.key.name] = unit_of(artifact)
        return list(units.values())

    def log(self) -> str:
        return (self.folder / "dhcpcd.log").read_text()


@pytest.fixture
def isp(netns: Namespace, tmp_path: Path) -> Iterator[Provider]:
    del netns  # the namespace it is in
    with provider(tmp_path / "isp") as made:
        yield made


@pytest.fixture
def router(isp: Provider, tmp_path: Path) -> Router:
    del isp  # which makes the link wan0
    # A blank and quotes, for whatever would take a path apart.
    root = tmp_path / "root 'of' \"it\""
    root.mkdir()
    return Router(tmp_path, root)
