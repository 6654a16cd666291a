"""Services that are stopped, killed, or lose whoever watches over them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.agent.watch.watch import Watch
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds.dropin import dropin
from holdfast.engine.kinds.service import service
from holdfast.host.services.unit_signals import UnitSignals, place_of
from holdfast.paths import Paths
from tests import lanes
from tests.agent.watch.listening import LONG, TAG, Heard, run, write
from tests.host.services.service_passes import ServicePasses, stage, unit, until
from tests.namespace import Namespace

ONE = unit("one")


@pytest.fixture
def services(netns: Namespace, root: Path) -> Iterator[ServicePasses]:  # noqa: ARG001 (entered)
    with stage(root) as made:
        yield made


@asynccontextmanager
async def watching(root: Path, *more: Intent) -> AsyncIterator[Heard]:
    heard = Heard()
    watch = Watch(Paths(root), TAG, heard.tell, frozenset, lambda _event: None)
    try:
        await watch.start()
        desired = Desired((Intent("Test/it", service(ONE), ""), *more))
        assert watch.follow(desired, (), TAG) == []
        yield heard
    finally:
        watch.close()


def test_process_that_is_killed(services: ServicePasses) -> None:
    async def test() -> None:
        services.apply(ONE)
        before = services.pid("one")
        async with watching(services.root) as heard:
            os.kill(before, signal.SIGKILL)
            await heard.of("service", "one")
            until(lambda: services.restarted("one", before), "it runs again")
            await heard.of("service", "one")

    run(test)


def test_definition_that_is_changed_or_removed(services: ServicePasses) -> None:
    async def test() -> None:
        services.apply(ONE)
        definition = services.root / "run/holdfast/services/one.json"
        async with watching(services.root) as heard:
            write(definition, definition.read_text().replace("for a test", "changed"))
            await heard.of("service", "one")
            subprocess.run(["rm", definition], check=True)
            await heard.of("service", "one")

    run(test)


def test_supervisor_that_is_killed(services: ServicePasses) -> None:
    async def test() -> None:
        services.apply(ONE)
        async with watching(services.root) as heard:
            services.kill_supervisor()
            await heard.of("service")

    run(test)


def test_service_that_comes_later(services: ServicePasses) -> None:
    async def test() -> None:
        async with watching(services.root) as heard:
            services.apply(ONE)
            await heard.of("service", "one")

    run(test)


def test_place_of_a_unit() -> None:
    assert place_of("holdfast-dhcpcd-eth0.service") == (
        "/org/freedesktop/systemd1/unit/holdfast_2ddhcpcd_2deth0_2eservice"
    )
    assert place_of("4a@é.service") == "/org/freedesktop/systemd1/unit/_34a_40_c3_a9_2eservice"


@pytest.fixture
def machine() -> Iterator[ServicePasses]:
    """The whole machine, as the systemd lane has one to give away."""
    if lanes.current() != "systemd":
        lanes.covered_elsewhere("systemd", "PID 1 is not systemd here, or not ours to use")
    made = ServicePasses(Path("/"))
    try:
        yield made
    finally:
        systemctl("daemon-reload")
        made.work()
        shutil.rmtree("/var/lib/holdfast", ignore_errors=True)


def systemctl(*words: str) -> None:
    subprocess.run(["systemctl", *words], check=True)


@pytest.mark.systemd
def test_units_of_systemd(machine: ServicePasses) -> None:
    async def test() -> None:
        machine.apply(ONE)
        other = dropin("/etc/systemd/timesyncd.conf.d/x.conf", b"", "systemd-timesyncd.service")
        async with watching(machine.root, Intent("Test/it", other, "")) as heard:
            heard.hints.clear()
            systemctl("stop", "holdfast-one.service")
            await heard.of("service", "one")
            systemctl("start", "holdfast-one.service")
            await heard.of("service", "one")
            systemctl("kill", "--signal", "KILL", "holdfast-one.service")
            await heard.of("service", "one")
            systemctl("disable", "holdfast-one.service")
            await heard.of("service")
            systemctl("restart", "systemd-timesyncd.service")
            await heard.of("dropin", other.key.name)
            subprocess.run(["rm", "/etc/systemd/system/holdfast-one.service"], check=True)
            await heard.of("service", "one")

    run(test)


@pytest.mark.systemd
def test_connection_that_is_lost(machine: ServicePasses, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd hangs up on those that talk to it directly when it replaces itself."""
    from holdfast.agent.watch import services as watched
    from holdfast.host.services import dbus

    connections: list[UnitSignals] = []

    def connected() -> UnitSignals:
        connections.append(UnitSignals())
        return connections[-1]

    monkeypatch.setattr(watched, "AGAIN_S", 0.1)
    monkeypatch.setattr(watched, "UnitSignals", connected)
    monkeypatch.setattr(dbus, "SYSTEM_BUS", "/nowhere")

    async def are_made(number: int) -> None:
        async with asyncio.timeout(LONG):
            while len(connections) < number:
                await asyncio.sleep(0.01)

    async def test() -> None:
        machine.apply(ONE)
        async with watching(machine.root) as heard:
            await are_made(1)
            systemctl("daemon-reexec")
            await heard.of("service")  # the connection is over
            await are_made(2)
            await heard.of("service")  # there is another one
            heard.hints.clear()
            systemctl("stop", "holdfast-one.service")
            await heard.of("service", "one")

    run(test)
