"""A daemon that holds many routes deals with one of them by a look at that one."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent import fact_tracker
from holdfast.agent.loop import Agent
from holdfast.agent.reconciler import Done, Reconciler
from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.facts import Facts, Lookup
from tests.namespace import Namespace
from tests.safety.router_scene import document

_LONGEST_S = 30.0
ROUTES = [f"10.0.{number}.0/24 via 192.0.2.2 dev wan" for number in range(200)]
RESOURCES = {
    "Interface/wan": "{ifname: wan, managed: false}",
    "RouteList/routes": "{file: routes.txt}",
}


@dataclass(slots=True)
class Running:
    """An Agent in this very process, and the full passes that it ran."""

    netns: Namespace
    folder: Path
    said: list[str] = field(default_factory=list)
    full: int = 0
    under_way: bool = False

    def write(self, name: str, text: str) -> None:
        fresh = self.folder / f"{name}.new"
        fresh.write_text(text)
        fresh.replace(self.folder / name)

    def routes(self, lines: list[str]) -> None:
        self.write("routes.txt", "".join(f"{line}\n" for line in lines))

    def there(self) -> set[str]:
        return {one["dst"] for one in self.netns.ip_json("route show proto 72")}

    async def until(self, so: Callable[[], bool]) -> None:
        end = time.monotonic() + _LONGEST_S
        while not so():
            assert time.monotonic() < end, "\n".join(self.said)
            await asyncio.sleep(0.01)

    async def settled(self) -> None:
        """No full pass has run for a while: those of the start are over."""
        before = -1
        while before != self.full or self.under_way:
            before = self.full
            await asyncio.sleep(0.3)


@pytest.fixture
def running(netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    root.mkdir()
    netns.veth("wan", "far", "192.0.2.1/24")
    for link in ("wan", "far"):
        # Link-local addresses pass their check after a second or two, which is news to the daemon.
        Path(f"/proc/sys/net/ipv6/conf/{link}/disable_ipv6").write_text("1")
    scene = Running(netns, root)
    scene.write("router.yaml", document(RESOURCES))
    scene.routes(ROUTES)
    full = Reconciler.full

    def counted(reconciler: Reconciler, *arguments: Any, **options: Any) -> Done:
        scene.full += 1
        scene.under_way = True
        try:
            return full(reconciler, *arguments, **options)
        finally:
            scene.under_way = False

    monkeypatch.setattr(Reconciler, "full", counted)
    return scene


def _serve(running: Running, steps: Callable[[], Any]) -> None:
    async def both() -> None:
        file = running.folder / "router.yaml"
        agent = Agent(Paths(running.folder), file, running.said.append)
        serving = asyncio.create_task(agent.run())
        try:
            await running.until(lambda: len(running.there()) == len(ROUTES))
            await running.settled()
            await steps()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(serving, _LONGEST_S)

    asyncio.run(both())


def test_edits_of_routes_need_no_full_pass(running: Running) -> None:
    async def steps() -> None:
        before = running.full
        extra = {"IPv4Route/extra": "{destination: 198.51.100.0/24, gateway: 192.0.2.2}"}
        running.write("router.yaml", document(RESOURCES | extra))
        await running.until(lambda: "198.51.100.0/24" in running.there())
        running.routes([*ROUTES[:100], "198.18.0.0/24 via 192.0.2.2 dev wan", *ROUTES[100:]])
        await running.until(lambda: "198.18.0.0/24" in running.there())
        running.routes(ROUTES)
        running.write("router.yaml", document(RESOURCES))
        await running.until(lambda: len(running.there()) == len(ROUTES))
        assert running.full == before, "\n".join(running.said)
        # Something else than a route is not for a few.
        address = {"IPv4StaticAddress/more": "{interface: wan, address: 203.0.113.1/24}"}
        running.write("router.yaml", document(RESOURCES | address))
        await running.until(lambda: running.full > before)

    _serve(running, steps)


def test_facts_are_not_learned_again_for_an_edit(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read them walks through all routes."""
    check = {"HealthCheck/far": "{target: 192.0.2.2, interface: wan, interval: 60s}"}
    running.write("router.yaml", document(RESOURCES | check))
    asked = 0

    def counted(
        paths: Paths, lookups: tuple[Lookup, ...], gateways: fact_tracker.Gateways
    ) -> Facts:
        nonlocal asked
        asked += 1
        return read_facts(paths, lookups, gateways)

    monkeypatch.setattr(fact_tracker, "read_facts", counted)

    async def steps() -> None:
        before = running.full, asked
        assert asked > 0
        running.routes([*ROUTES, "198.18.0.0/24 via 192.0.2.2 dev wan"])
        await running.until(lambda: "198.18.0.0/24" in running.there())
        assert (running.full, asked) == before
        os.kill(os.getpid(), signal.SIGHUP)  # whatever has changed
        await running.until(lambda: asked > before[1])

    _serve(running, steps)


def test_drift_of_a_route_needs_no_full_pass(running: Running) -> None:
    async def steps() -> None:
        before, there = running.full, running.there()
        for number in (7, 8, 9):
            await asyncio.to_thread(running.netns.ip, f"route del 10.0.{number}.0/24")
            await running.until(lambda: running.there() == there)
        assert running.full == before, "\n".join(running.said)

    _serve(running, steps)


def test_an_invalid_edit_changes_nothing_and_the_next_one_is_taken(running: Running) -> None:
    async def steps() -> None:
        before, there = running.full, running.there()
        running.routes([*ROUTES, "198.18.0.0/24 vja 192.0.2.2"])
        await running.until(lambda: any("routes.txt:201:15" in line for line in running.said))
        assert running.there() == there
        running.routes([*ROUTES, "198.18.0.0/24 via 192.0.2.2 dev wan"])
        await running.until(lambda: "198.18.0.0/24" in running.there())
        assert running.full <= before + 1  # one of the file that was in force before

    _serve(running, steps)
