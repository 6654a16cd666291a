"""A file that takes long to read: what is in force is kept in repair meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from holdfast.runtime.detached_thread import DetachedThread, StillRunning, TookTooLong
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.firewall.hosts import LONG
from tests.namespace import Namespace
from tests.safety.router_scene import document

OLD, NEW = "10.20.0.0/16", "10.30.0.0/16"


def resources(*destinations: str) -> str:
    found = {
        "Interface/lan": "{ifname: lan0, adminUp: true}",
        "IPv4StaticAddress/lan": "{interface: lan, address: 192.0.2.1/24}",
    }
    for number, one in enumerate(destinations):
        found[f"IPv4Route/r{number}"] = f"{{destination: {one}, gateway: 192.0.2.254}}"
    return document(found)


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("lan0", "far0")
    (root / "router.yaml").write_text(resources(OLD))
    return root / "router.yaml"


@contextmanager
def reading(netns: Namespace, root: Path, file: Path, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that has begun to read another file, and does not come to its end."""
    held = tmp_path / "held"
    environment = {"HOLDFAST_HELD": str(held)}
    with serve(root, file, environment, program="tests.agent.held_reading") as daemon:
        until(lambda: bool(netns.ip(f"route show {OLD}")), "the first pass")
        daemon.rest()
        held.touch()
        fresh = root / "fresh.yaml"
        fresh.write_text(resources(OLD, NEW))
        fresh.rename(file)
        daemon.wait_for(f"{file} is being read")
        yield daemon
        held.unlink()
        until(lambda: bool(netns.ip(f"route show {NEW}")), "the file was read")
        assert "was never" not in daemon.said()
        assert daemon.end() == 0


def repaired(netns: Namespace) -> None:
    netns.ip(f"route del {OLD}")
    until(lambda: bool(netns.ip(f"route show {OLD}")), "it was put back")
    assert not netns.ip(f"route show {NEW}"), "the file is being read still"


def test_drift_is_repaired_while_a_file_is_read(
    netns: Namespace, root: Path, file: Path, tmp_path: Path
) -> None:
    with reading(netns, root, file, tmp_path):
        for _ in range(3):
            repaired(netns)


def test_who_asks_for_the_file_waits_and_nobody_else(
    netns: Namespace, root: Path, file: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        with reading(netns, root, file, tmp_path) as daemon:
            asking = Holdfast(tmp_path, root).start("reconcile", "--once")
            stack.callback(asking.wait)
            stack.callback(asking.kill)
            until(lambda: _is_connected(asking.pid), "it has asked")
            daemon.rest()
            repaired(netns)
            assert asking.poll() is None
        assert asking.wait(LONG) == 0


def _is_connected(pid: int) -> bool:
    """Is it one end of a connection to the daemon?"""
    inodes = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            inodes.add(path.readlink().name)
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return any(
        f"socket:[{words[6]}]" in inodes and words[5] == "03" for words in map(str.split, lines)
    )


def test_a_file_that_changes_while_it_is_read_is_read_again(
    netns: Namespace, root: Path, file: Path, tmp_path: Path
) -> None:
    newest = "10.40.0.0/16"
    with reading(netns, root, file, tmp_path) as daemon:
        fresh = root / "fresh.yaml"
        fresh.write_text(resources(OLD, NEW, newest))
        fresh.rename(file)
        daemon.rest()
        repaired(netns)
        (tmp_path / "held").unlink()
        until(lambda: bool(netns.ip(f"route show {newest}")), "the newest one")
        (tmp_path / "held").touch()


def test_an_answer_that_nobody_waited_for_is_given_to_who_asks_next() -> None:
    told, go_on = threading.Event(), threading.Event()
    apart: DetachedThread[int] = DetachedThread(finished=told.set)

    def work() -> int:
        go_on.wait()
        return 1

    with pytest.raises(StillRunning):
        apart.run(work, 0)
    assert apart.busy and not told.is_set()
    go_on.set()
    assert told.wait(LONG)
    assert apart.run(lambda: 2) == 1
    assert apart.run(lambda: 2) == 2 and not apart.busy


def test_what_takes_too_long_in_all_hangs() -> None:
    apart: DetachedThread[int] = DetachedThread(patience=0)
    go_on = threading.Event()
    with pytest.raises(TookTooLong):
        apart.run(lambda: int(go_on.wait()), 0)
    go_on.set()
    until(lambda: apart._running is not None and apart._running.done.is_set(), "its end")
    assert apart.run(lambda: 2) == 1


def test_drift_is_repaired_while_somebody_reads_a_file_with_a_long_word(
    netns: Namespace, root: Path, file: Path, tmp_path: Path
) -> None:
    """What may be a secret in it is searched for in the daemon."""
    file.write_text(f"{resources(OLD)}# key {'a-' * 50_000}\n# key {'a-' * 25_000}\n")
    with serve(root, file) as daemon:
        until(lambda: bool(netns.ip(f"route show {OLD}")), "the first pass")
        daemon.rest()
        asking = Holdfast(tmp_path, root).start("generations", "show", "1")
        try:
            repaired(netns)
            assert asking.wait(LONG) == 0
        finally:
            asking.kill()
            asking.wait()
        assert daemon.end() == 0
