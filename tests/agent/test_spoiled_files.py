"""A file with a mistake, or one that leads to a fault of Holdfast's own, leaves the router managed:
what was in force before it stays so and is held to, also by a daemon that starts with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from holdfast.config.document import SourceFile, parse
from holdfast.errors import ConfigError
from holdfast.resources import registry
from holdfast.resources.router import load_router
from tests.agent import faulty
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.resources.mutations import mutants
from tests.resources.surroundings import surrounded
from tests.safety.router_scene import document

GOOD = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4Route/there": "{destination: 10.1.0.0/16, gateway: 192.0.2.2}",
}
NEIGHBOUR = {"Neighbour/n": "{interface: wan, address: 192.0.2.9, mac: '02:00:00:00:00:09'}"}
OTHER = {"IPv4Route/other": "{destination: 10.2.0.0/16, gateway: 192.0.2.2}"}
# `ifname: "eth 0"` below a delegated prefix, and a NUL in the name of a file.
BROKEN = {
    "Interface/lan": '{ifname: "eth 0"}',
    "IPv6PrefixDelegation/wan": "{interface: lan}",
    "IPv6DelegatedAddress/lan": "{prefixDelegation: wan, interface: wan, addressSuffix: '::1'}",
}
NUL = {"RouteList/list": '{file: "routes\\0.txt"}'}
SPOILED = 40  # files that a daemon is given one after the other


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text(document(GOOD))
    return file


def put(file: Path, content: bytes) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(file)


def drift_is_repaired(netns: Namespace, daemon: Daemon) -> None:
    netns.ip("route del 10.1.0.0/16")

    def back() -> bool:
        assert daemon.process.poll() is None, daemon.said()
        return "10.1.0.0/16" in netns.ip("route show")

    try:
        until(back, "the route is there again")
    except AssertionError as error:
        raise AssertionError(f"{error}:\n{daemon.said()}") from None


def test_mistakes_that_were_faults(file: Path, root: Path, netns: Namespace) -> None:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        for number, mistake in enumerate((NUL, BROKEN), 1):
            put(file, document({**GOOD, **mistake}).encode())
            daemon.wait_for("is invalid: the last good one stays in force", number)
            drift_is_repaired(netns, daemon)
    with serve(root, file) as daemon:
        daemon.wait_for("is invalid: generation 1 of the ledger is in force")
        drift_is_repaired(netns, daemon)
        assert "fault of Holdfast" not in daemon.said()


@pytest.mark.parametrize("step", faulty.STEPS)
def test_a_fault_in_the_code_for_one_kind(
    file: Path, root: Path, netns: Namespace, step: str
) -> None:
    environment = {"HOLDFAST_FAULT": step}
    with serve(root, file, environment, "tests.agent.faulty") as daemon:
        daemon.wait_for("because of the start")
        put(file, document({**GOOD, **NEIGHBOUR, **OTHER}).encode())
        daemon.wait_for("which is a fault of Holdfast's: KeyError('of the test')")
        drift_is_repaired(netns, daemon)
        assert "10.2.0.0/16" not in netns.ip("route show")  # whole, or not at all
    with serve(root, file, environment, "tests.agent.faulty") as daemon:
        daemon.wait_for("in force")
        drift_is_repaired(netns, daemon)
        assert "10.2.0.0/16" not in netns.ip("route show")
        put(file, document({**GOOD, **OTHER}).encode())
        until(lambda: "10.2.0.0/16" in netns.ip("route show"), "the next file is applied")


def test_a_fault_in_what_is_in_force(file: Path, root: Path, netns: Namespace) -> None:
    """As when something is learned that the code was never tried with."""
    marker = root / "faulty"
    environment = {"HOLDFAST_FAULT": "compile", "HOLDFAST_FAULT_FILE": str(marker)}
    file.write_text(document({**GOOD, **NEIGHBOUR, **OTHER}))
    with serve(root, file, environment, "tests.agent.faulty") as daemon:
        daemon.wait_for("because of the start")
    marker.touch()
    with serve(root, file, environment, "tests.agent.faulty") as daemon:
        daemon.wait_for("Neighbour/n: what it asks for cannot be told")
        drift_is_repaired(netns, daemon)
        assert "192.0.2.9" in netns.ip("neigh show")
        assert "10.2.0.0/16" in netns.ip("route show")
        status = [sys.executable, "-m", "tests.agent.faulty", "--root", str(root), "status"]
        said = subprocess.run(status, env={**os.environ, **environment}, capture_output=True).stdout
        assert b"what it asks for cannot be told" in said, said
        marker.unlink()
        put(file, document(GOOD).encode())
        until(lambda: "10.2.0.0/16" not in netns.ip("route show"), "the next file is applied")
        until(lambda: "192.0.2.9" not in netns.ip("neigh show"), "the neighbour goes")


def _refused(folder: Path) -> Iterator[bytes]:
    """Of every kind, what is no good: files with mistakes, as they come."""
    spoiled = folder / "spoiled.yaml"
    own = parse(SourceFile("own", document({**GOOD, **OTHER}).encode())).data
    examples = [own, *(surrounded(name) for name in registry.names())]
    for number, example in enumerate(examples):
        for mutant in mutants(example, f"daemon {number}", 60):
            spoiled.write_bytes(mutant.content)
            try:
                load_router(spoiled, folder)
            except ConfigError:
                yield mutant.content
                break


def test_one_spoiled_file_after_the_other(file: Path, root: Path, netns: Namespace) -> None:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        for number, content in enumerate(islice(_refused(root), SPOILED), 1):
            put(file, content)
            daemon.wait_for("is invalid: the last good one stays in force", number)
            drift_is_repaired(netns, daemon)
        assert "fault of Holdfast" not in daemon.said()
        assert number == SPOILED
