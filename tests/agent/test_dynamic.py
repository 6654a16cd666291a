"""Sources beside the startup file, with a real daemon: parts, masks, expiry, bad ones, restarts."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.part import Directive, Part
from holdfast.paths import Paths
from holdfast.runtime import sources
from holdfast.state.ledger import Ledger
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.resources.parts import admitting, mask, raw
from tests.resources.routers import load

POLICY = {
    "allow": [
        {
            "source": source,
            "operations": ["mask"],
            "targets": [
                {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route", "name": "fallback"}
            ],
        }
        for source in ("Owner/ci", "Plugin/cloud")
    ]
}
APP = raw("IPv4Route", "app", {"destination": "10.1.0.0/16", "gateway": "192.0.2.9"})
MASK = mask("IPv4Route", "fallback", "the app is elsewhere")


@dataclass(frozen=True, slots=True)
class Place:
    namespace: Namespace
    root: Path

    @property
    def file(self) -> Path:
        return self.root / "router.yaml"

    @property
    def paths(self) -> Paths:
        return Paths(self.root)

    def put(self, *resources: dict[str, Any], source: str = "Owner/ci", lasts: float | None = 600,
            masks: tuple[Directive, ...] = (MASK,)) -> Part:  # fmt: skip
        with Ledger.open(self.paths, command="test", wait=20) as ledger:
            known = [one.generation for one in ledger.parts(newest=True) if one.source == source]
            now = time.time()
            end = None if lasts is None else now + lasts
            given = Part(source, max(known, default=0) + 1, now, end, resources, masks)
            sources.put(ledger, given)
        return given

    def leads_to(self, gateway: str, destination: str = "10.1.0.0/16") -> None:
        def there() -> bool:
            return f"via {gateway} " in self.namespace.ip(f"route show {destination}")

        until(there, f"{destination} via {gateway}")

    def kinds(self) -> list[str]:
        with Ledger.read(self.paths) as ledger:
            kinds = [event.kind for event in ledger.events()]
        return [kind for kind in kinds if kind.startswith(("part-", "mask-"))]


@pytest.fixture
def root(open_folder: Path) -> Path:
    return open_folder / "root"


@pytest.fixture
def place(netns: Namespace, root: Path) -> Place:
    root.mkdir()
    netns.veth("wan0", "far0")
    made = Place(netns, root)
    declare(made)
    return made


def declare(
    place: Place, *more: tuple[str, str, dict[str, Any]], plugin: str = "/bin/false"
) -> None:
    load(
        place.root,
        ("Interface", "wan", {"ifname": "wan0", "adminUp": True}),
        ("IPv4StaticAddress", "wan", {"interface": "wan", "address": "192.0.2.1/24"}),
        ("IPv4Route", "fallback", {"destination": "10.1.0.0/16", "gateway": "192.0.2.2"}),
        (
            "Plugin",
            "cloud",
            {
                "executable": plugin,
                "triggers": [{"type": "interval", "every": "1h"}],
                "capabilities": ["propose.dynamicConfig"],
            },
        ),
        ("DynamicConfigSource", "cloud", {"pluginRef": "cloud", "ttl": "1h"}),
        admitting(),
        admitting("Owner/bad"),
        ("DynamicOverridePolicy", "all", POLICY),
        *more,
    )


def holdfast(place: Place, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--root", str(place.root), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture
def daemon(place: Place) -> Iterator[Daemon]:
    with serve(place.root, place.file) as process:
        place.leads_to("192.0.2.2")
        yield process


def test_a_part_comes_into_force_and_is_over_by_itself(place: Place, daemon: Daemon) -> None:
    place.put(APP, lasts=15)
    place.leads_to("192.0.2.9")
    status = holdfast(place, "status")
    assert "masked by Owner/ci#1 until 20" in status
    assert "the app is elsewhere" in status
    place.leads_to("192.0.2.2")
    assert place.kinds() == ["part-accepted", "mask-applied", "part-ended", "mask-lifted"]
    daemon.wait_for("mask-lifted IPv4Route/fallback")
    assert daemon.end() == 0


def test_one_bad_source_stops_nothing(place: Place, daemon: Daemon) -> None:
    place.put({"kind": "Bogus"}, source="Owner/bad")
    daemon.wait_for("Owner/bad#1 is rejected")
    place.put(APP)
    place.leads_to("192.0.2.9")
    place.namespace.ip("route del 10.1.0.0/16")
    place.leads_to("192.0.2.9")
    listed = holdfast(place, "dynamic", "list")
    assert re.search(r"Owner/bad +1 +Rejected", listed)
    assert "resources[0]: apiVersion: is missing" in listed
    before = daemon.said().count("Owner/bad#1 is rejected")
    daemon.signal(signal.SIGHUP)
    daemon.wait_for("read again")
    assert daemon.said().count("Owner/bad#1 is rejected") == before, "it is said once"
    place.put({"kind": "Bogus"}, source="Owner/bad")
    until(lambda: "Owner/bad#2 is rejected" in holdfast(place, "status"), "the newer one")
    told = holdfast(place, "status", "-o", "json")
    troubles = json.loads(told[: told.rindex("}") + 1])["troubles"]
    assert any("Owner/bad#2 is rejected" in one for one in troubles)
    assert "Owner/bad#2 is rejected" not in daemon.said(), "the same again is no news"


def test_a_part_that_nobody_thought_of_stops_nothing(place: Place, daemon: Daemon) -> None:
    place.put({"kind": ["a"]}, source="Owner/bad")
    daemon.wait_for("Owner/bad#1 is rejected")
    place.namespace.ip("route del 10.1.0.0/16")
    place.leads_to("192.0.2.2")
    assert "kind: " in holdfast(place, "dynamic", "list")


def test_a_bad_update_takes_nothing_away(place: Place, daemon: Daemon) -> None:
    """What is in use stays in use, with another daemon as well, until its own end."""
    place.put(APP)
    place.leads_to("192.0.2.9")
    place.put(APP, {"kind": "Bogus"})
    daemon.wait_for("Owner/ci#2 is rejected")
    daemon.wait_for("Owner/ci#1 stays in force until 20")
    listed = holdfast(place, "dynamic", "list")
    assert re.search(r"Owner/ci +2 +Rejected", listed)
    assert re.search(r"Owner/ci +1 +Active", listed)
    assert "masked by Owner/ci#1 until 20" in holdfast(place, "status")
    daemon.signal(signal.SIGKILL)
    daemon.process.wait()
    place.namespace.ip("route del 10.1.0.0/16")
    with serve(place.root, place.file) as again:
        place.leads_to("192.0.2.9")
        assert place.kinds() == ["part-accepted", "mask-applied", "part-rejected"]
        good = raw("IPv4Route", "app", {"destination": "10.1.0.0/16", "gateway": "192.0.2.8"})
        place.put(good)
        place.leads_to("192.0.2.8")
        place.put({"kind": "Bogus"}, lasts=None)
        again.wait_for("Owner/ci#3 stays in force")
        with Ledger.open(place.paths, command="test", wait=20) as ledger:
            sources.withdraw(ledger, "Owner/ci")
        place.leads_to("192.0.2.2")
        assert again.end() == 0


def test_many_routes_of_a_part_go_when_it_is_over(place: Place, daemon: Daemon) -> None:
    """More than may be deleted at once without asking: but by its time limit this was agreed to."""
    lines = [f"10.20.{number}.0/24 via 192.0.2.9" for number in range(40)]
    place.put(raw("RouteList", "many", {"routes": lines}), lasts=15, masks=())

    def count() -> int:
        return place.namespace.ip("route show proto 72").count("10.20.")

    until(lambda: count() == 40, "the routes are there")
    until(lambda: count() == 0, "the routes are gone")
    assert "would be deleted" not in daemon.said()
    place.leads_to("192.0.2.2")


def test_an_invalid_file_leaves_all_in_force(place: Place, daemon: Daemon) -> None:
    place.put(APP)
    place.leads_to("192.0.2.9")
    place.file.write_text("spec: [\n")
    daemon.wait_for("is invalid: the last good one stays in force")
    place.namespace.ip("route del 10.1.0.0/16")
    place.leads_to("192.0.2.9")
    with Ledger.open(place.paths, command="test", wait=20) as ledger:
        sources.withdraw(ledger, "Owner/ci")
    place.leads_to("192.0.2.2")


def test_a_start_with_an_invalid_file(place: Place, daemon: Daemon) -> None:
    """The last good generation is taken, and parts in force count on top of it."""
    place.put(APP, lasts=None)
    place.leads_to("192.0.2.9")
    assert daemon.end() == 0
    place.file.write_text("spec: [\n")
    place.namespace.ip("route del 10.1.0.0/16")
    place.namespace.ip("addr del 192.0.2.1/24 dev wan0")
    with serve(place.root, place.file) as process:
        place.leads_to("192.0.2.9")
        process.wait_for("of the ledger is in force")
        assert process.end() == 0
    assert place.kinds() == ["part-accepted", "mask-applied"], "a restart tells nothing twice"


@pytest.fixture
def gate(place: Place) -> Path:
    """A plugin that fails once `open` is there."""
    plugin = place.root / "plugin"
    plugin.write_text(f"#!/bin/sh\nwhile [ ! -e {place.root}/open ]; do sleep 0.1; done; exit 1\n")
    plugin.chmod(0o755)
    return plugin


def test_nothing_is_deleted_until_every_source_has_loaded(place: Place, gate: Path) -> None:
    """The part was over while no daemon ran, and the plugin has not said since what it
    contributes. What is declared goes on meanwhile."""
    declare(place, plugin=f"/{gate.name}")
    other = raw("IPv4Route", "cloud", {"destination": "10.7.0.0/16", "gateway": "192.0.2.9"})
    place.put(other, source="Plugin/cloud", lasts=60, masks=())
    assert "Converged" in holdfast(place, "reconcile", "--once", str(place.file))
    place.leads_to("192.0.2.9", "10.7.0.0/16")
    with sqlite3.connect(place.paths.ledger) as database:
        database.execute("UPDATE parts SET expires=?", (time.time() - 1,))
    database.close()
    new = ("IPv4Route", "new", {"destination": "10.8.0.0/16", "gateway": "192.0.2.2"})
    declare(place, new, plugin=f"/{gate.name}")
    with serve(place.root, place.file) as process:
        place.leads_to("192.0.2.2", "10.8.0.0/16")
        planned = holdfast(place, "plan", "-o", "json")
        assert "waits until Plugin/cloud has loaded" in planned, process.said()
        place.leads_to("192.0.2.9", "10.7.0.0/16")
        (place.root / "open").touch()
        until(
            lambda: not place.namespace.ip("route show 10.7.0.0/16"),
            "the route is gone",
        )
        assert process.end() == 0
