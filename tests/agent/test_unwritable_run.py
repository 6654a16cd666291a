"""A daemon whose /run takes no writes starts all the same, and keeps the router as declared."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from holdfast.agent.instance_lock import only_instance
from holdfast.errors import Refused
from holdfast.host.namespace_holder import place_of
from holdfast.paths import Paths
from tests.agent.daemon import Daemon, serve
from tests.agent.test_full_disk import FOREIGN, ROUTER, foreign_is_there, routes
from tests.agent.two_providers import until
from tests.cli.conftest import Holdfast
from tests.disks import Disk, small_disk
from tests.namespace import Namespace
from tests.safety.router_scene import document

FULL = ("use_up_inodes", "give_inodes")
READ_ONLY = ("read_only", "writable")
# The link needs a claim that lasts, and there is none for now.
UNTAGGED = ("Interface/lan", "IPv4StaticAddress/lan")
TROUBLES = ("the API is not served", "what a daemon keeps below /run is not there")


@pytest.fixture
def declared(netns: Namespace, tmp_path: Path) -> Path:
    netns.veth("wan0", "isp0")
    netns.ip(FOREIGN)
    file = tmp_path / "router.yaml"
    file.write_text(document({k: v for k, v in ROUTER.items() if k not in UNTAGGED}))
    return file


@contextmanager
def running(root: Path, file: Path) -> Iterator[Daemon]:
    with serve(root, file, logs=file.parent) as daemon:
        yield daemon


def there(netns: Namespace) -> bool:
    return routes(netns) == {"10.9.0.0/16"} and "holdfast" in netns.run("nft", "list", "tables")


def spoil(netns: Namespace) -> None:
    netns.ip("route del 10.9.0.0/16")
    netns.run("nft", "flush", "ruleset")


def keeps(netns: Namespace, daemon: Daemon) -> None:
    """Twice: the second time by what it holds in memory."""
    until(lambda: there(netns), daemon.said())
    for trouble in TROUBLES:
        daemon.wait_for(trouble)
    spoil(netns)
    until(lambda: there(netns), daemon.said())
    assert "was not carried out" not in daemon.said(), daemon.said()
    assert "failed" not in daemon.said(), daemon.said()


def heals(netns: Namespace, holdfast: Holdfast, daemon: Daemon, file: Path) -> None:
    """It answers, holds its lock, and tells of no trouble any more."""

    def troubles() -> object:
        return holdfast.run("status", str(file), "-o", "json").json["troubles"]

    until(lambda: Path(holdfast.root, "run/holdfast/holdfast.sock").exists(), daemon.said())
    until(lambda: troubles() == [], daemon.said())
    lock = Path(holdfast.root, "run/holdfast/serve.lock")
    until(lambda: is_locked(lock), daemon.said())
    spoil(netns)
    until(lambda: there(netns), daemon.said())
    foreign_is_there(netns)


def is_locked(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("how", [FULL, READ_ONLY], ids=["no inodes", "read-only"])
def test_a_start_without_run(
    netns: Namespace, root: Path, tmp_path: Path, declared: Path, how: tuple[str, str]
) -> None:
    holdfast = Holdfast(tmp_path, root)
    with small_disk(root / "run") as run:
        getattr(run, how[0])()
        with running(root, declared) as daemon:
            keeps(netns, daemon)
            second(root, declared)
            getattr(run, how[1])()
            heals(netns, holdfast, daemon, declared)
            second(root, declared)


@pytest.mark.parametrize("before", [True, False], ids=["after a run", "the first"])
@pytest.mark.parametrize("how", [FULL, READ_ONLY], ids=["no inodes", "read-only"])
def test_a_start_on_a_root_that_takes_nothing(
    netns: Namespace,
    root: Path,
    tmp_path: Path,
    declared: Path,
    before: bool,
    how: tuple[str, str],
) -> None:
    holdfast = Holdfast(tmp_path, root)
    with small_disk(root) as disk:
        if before:
            with running(root, declared) as daemon:
                until(lambda: there(netns), daemon.said())
            spoil(netns)
        getattr(disk, how[0])()
        with running(root, declared) as daemon:
            until(lambda: there(netns), daemon.said())
            if not before or how is READ_ONLY:  # files that are there can be written
                daemon.wait_for("the ledger is not written")
                daemon.wait_for("the API is not served")
                told = holdfast.run("plan", str(declared))
                assert f"a daemon (process {daemon.process.pid}) is at work here" in told.err
            spoil(netns)
            until(lambda: there(netns), daemon.said())
            assert "was not carried out" not in daemon.said(), daemon.said()
            second(root, declared)
            getattr(disk, how[1])()
            heals(netns, holdfast, daemon, declared)


def second(root: Path, file: Path) -> None:
    with running(root, file) as other:
        assert other.process.wait(60) != 0
        assert "another `holdfast serve` is at work" in other.said()


def use_file(run: Disk) -> None:
    assert run.folder.is_dir()


@pytest.mark.parametrize("first", [Disk.use_up_inodes, Disk.read_only, use_file])
@pytest.mark.parametrize("later", [Disk.use_up_inodes, Disk.read_only, use_file])
def test_two_for_one_root_never(
    netns: Namespace, root: Path, first: Callable[[Disk], None], later: Callable[[Disk], None]
) -> None:
    del netns  # names are of a network namespace
    paths = Paths(root)
    with small_disk(root / "run") as run:
        first(run)
        with only_instance(paths):
            for back in (Disk.writable, Disk.give_inodes) if first is not later else ():
                back(run)
            if later is not Disk.read_only or first is not use_file:  # its lock is open to write
                later(run)
            with (
                pytest.raises(Refused, match=f"another .*process {os.getpid()}"),
                only_instance(paths),
            ):
                pass
        with only_instance(paths):
            pass


@pytest.mark.parametrize("user", [0, 65534])
def test_a_name_counts_by_who_has_it(netns: Namespace, root: Path, user: int) -> None:
    """Anybody may bind any name; nobody is kept from starting by a stranger."""
    del netns
    root.mkdir(exist_ok=True)
    name = f"holdfast/serve {place_of(root)} 1 0"
    bind = (
        "import os, socket; s = socket.socket(1, 2); s.set_inheritable(True);"
        f" s.bind(b'\\0' + {name!r}.encode()); os.setuid({user}); os.execl('/bin/cat', 'cat')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", bind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.stdout.readline()  # it is what it shall be
        expected: AbstractContextManager[object] = nullcontext()
        if not user:
            expected = pytest.raises(Refused, match="process 1")
        with expected, only_instance(Paths(root)):
            pass
        other.stdin.close()
