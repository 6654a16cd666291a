"""How long a file was left alone, and who has it open; and a read that never ends."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.loop import Agent
from holdfast.paths import Paths
from holdfast.resources.router import load_router
from holdfast.runtime import startup
from holdfast.runtime.detached_thread import DetachedThread, TookTooLong
from holdfast.runtime.unfinished_files import QUIET_S, Unfinished, doubt, is_open_for_writing
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("a\n")
    return path


class Clocks:
    """One that is never set, and one that is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed = 0.0
        self.off = 0.0
        self.start = path.stat().st_ctime_ns / 1e9

    def wall(self) -> float:
        return self.start + self.passed + self.off

    def unfinished(self) -> Unfinished:
        return Unfinished(lambda: 1000 + self.passed, self.wall)

    def age(self, unfinished: Unfinished) -> float:
        found = unfinished.youngest([self.path])
        assert found is not None
        return found.age


def test_age_is_counted_from_the_last_change(path: Path) -> None:
    clocks = Clocks(path)
    unfinished = clocks.unfinished()
    clocks.passed = 3
    assert clocks.age(unfinished) == pytest.approx(3)  # also before it was looked at first
    found = unfinished.youngest([path, path.with_name("none")])
    assert found is not None
    assert found.missing(QUIET_S) == 0
    assert found.missing(5) == pytest.approx(2)
    assert unfinished.youngest([path.with_name("none")]) is None


@pytest.mark.parametrize("off", [-1e6, 0.0])
def test_a_clock_that_is_wrong(path: Path, off: float) -> None:
    """A machine without one that runs on begins in 1970: then it is how long we have known it."""
    clocks = Clocks(path)
    clocks.off = off
    unfinished = clocks.unfinished()
    assert clocks.age(unfinished) == 0
    clocks.passed = 1
    assert clocks.age(unfinished) == pytest.approx(1)


def test_who_appends_with_pauses_is_waited_for(path: Path) -> None:
    """Three times as long as he paused; a pause of minutes is one between two edits."""
    clocks = Clocks(path)
    unfinished = clocks.unfinished()

    def missing_after(pause: float, text: str = "a\n", mode: str = "a") -> float:
        clocks.passed += pause
        with path.open(mode) as stream:
            stream.write(text)
        clocks.off = path.stat().st_ctime - clocks.start - clocks.passed
        found = unfinished.youngest([path])
        assert found is not None
        return found.missing(QUIET_S)

    unfinished.youngest([path])
    assert missing_after(0.4) == pytest.approx(1.2, abs=0.01)
    assert missing_after(0.9) == pytest.approx(2.7, abs=0.01)
    assert missing_after(0.1) == pytest.approx(2.7, abs=0.01), "it may happen again"
    assert missing_after(100) == pytest.approx(QUIET_S, abs=0.01)
    for text in ("another\nwhole\none\n", "and\nanother\nwhole\none\n", "b\n"):
        assert missing_after(0.2, text, "w") == pytest.approx(QUIET_S, abs=0.01), "written anew"


def test_what_came_by_a_rename_is_whole(path: Path) -> None:
    clocks = Clocks(path)
    unfinished = clocks.unfinished()
    unfinished.came_whole(path)
    assert clocks.age(unfinished) == math.inf
    with path.open("a") as stream:  # somebody appends to it
        stream.write("b\n")
    assert clocks.age(unfinished) < math.inf


def test_the_youngest_of_several(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("b\n")
    unfinished = Unfinished()
    unfinished.came_whole(path)
    found = unfinished.youngest([path, other])
    assert found is not None
    assert found.path == other
    with path.open("a"):
        found = unfinished.youngest([path, other])
        assert found is not None
        assert (found.path, found.opened, found.missing(0) > 0) == (path, True, True)


def test_who_has_it_open(path: Path) -> None:
    """Also another process; who reads it does no harm."""
    with path.open():
        assert not is_open_for_writing(path)
    assert doubt([path]) == ""
    with path.open("a"):
        assert is_open_for_writing(path)
        assert doubt([path]) == f"{path} is open for writing, so it may not be whole"
    assert not is_open_for_writing(path)
    assert not is_open_for_writing(path.with_name("none"))
    assert not is_open_for_writing(Path("/dev/null"))


def test_writers_that_come_while_it_is_asked(path: Path) -> None:
    """They wait for a moment, and nobody is killed by the signal that comes of it."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with path.open("a") as stream:
                stream.write("c\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = {is_open_for_writing(path) for _ in range(2000)}
    finally:
        stop.set()
        writer.join()
    assert seen


def test_work_that_hangs() -> None:
    release = threading.Event()
    apart: DetachedThread[int] = DetachedThread(patience=0.2)
    assert apart.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        apart.run(lambda: 1 // 0)
    with pytest.raises(TookTooLong):
        apart.run(lambda: 0 * release.wait())
    with pytest.raises(TookTooLong):  # no second thread beside it
        apart.run(lambda: 8)
    release.set()
    until(lambda: not any(one.name == "read" for one in threading.enumerate()), "it has ended")
    assert apart.run(lambda: 9) == 0, "what was begun is answered, to whoever asks then"
    assert apart.run(lambda: 9) == 9


def test_a_read_that_never_ends(
    netns: Namespace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a file system whose server is gone: the daemon repairs, and ends when it is told to."""
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    address = "{interface: wan, address: 192.0.2.1/24}"
    file.write_text(document({"Interface/wan": "{ifname: wan0}", "IPv4StaticAddress/wan": address}))
    release = threading.Event()
    said: list[str] = []
    agent = Agent(Paths(root), file, said.append)
    agent.in_force.configuration.startup.apart.patience = 0.3
    real = load_router

    def hangs(*arguments: Any, **options: Any) -> Any:
        if agent.status.passes:
            release.wait()
        return real(*arguments, **options)

    monkeypatch.setattr(startup, "load_router", hangs)

    def others() -> None:
        until(lambda: agent.status.passes > 0, "the first pass")
        os.kill(os.getpid(), signal.SIGHUP)
        until(lambda: any("does not answer" in line for line in said), "it is told")
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "it is repaired")
        agent.in_force.configuration.startup.apart.patience = 600.0
        os.kill(os.getpid(), signal.SIGTERM)

    async def both() -> None:
        await asyncio.gather(agent.run(), asyncio.to_thread(others))

    try:
        since = time.monotonic()
        asyncio.run(asyncio.wait_for(both(), 120))
        assert time.monotonic() - since < 100
    finally:
        release.set()
