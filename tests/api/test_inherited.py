"""A daemon on sockets that the service manager holds: served, kept over its end, checked first."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.api import sockets
from holdfast.api.client import Client, connected
from holdfast.api.inherited import Inherited, take
from holdfast.errors import Refused
from holdfast.paths import Paths
from tests.agent.daemon import Daemon
from tests.agent.daemon import serve as serve_by_hand
from tests.agent.two_providers import until
from tests.api.conftest import ROUTER, declare
from tests.api.handed import NAMES, held, serve
from tests.firewall.hosts import LONG
from tests.namespace import Namespace

_READY = "because of the start"


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    netns.veth("wan0", "far0")
    root.mkdir()
    declare(root / "router.yaml", ROUTER)
    return root / "router.yaml"


@contextmanager
def asked(root: Path, name: str = "holdfast.sock") -> Iterator[Client]:
    with sockets.folder(Paths(root)) as folder, connected(f"{folder}/{name}") as client:
        yield client


def command(root: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "--root", str(root), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_both_are_served(file: Path, root: Path) -> None:
    with held(root) as found, serve(root, file, [one.fileno() for one in found]) as daemon:
        daemon.wait_for(_READY)
        folder = Paths(root).under(sockets.FOLDER)
        for name, reads in zip(NAMES, (False, True), strict=True):
            with asked(root, name) as client:
                about = client.about()
                assert (about.pid, about.read_only) == (daemon.process.pid, reads)
            inner = (folder / f"inner-{name}").stat()
            assert (stat.S_IMODE(inner.st_mode), inner.st_uid) == (0o600, 0)
        for descriptor in (3, 4):
            flags = Path(f"/proc/{daemon.process.pid}/fdinfo/{descriptor}").read_text().split()[3]
            assert int(flags, 8) & os.O_CLOEXEC
        assert daemon.end() == 0
        # The manager's own stay where they are.
        assert {one.name for one in folder.iterdir() if one.is_socket()} == set(NAMES)


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_waits_for_the_next_daemon(file: Path, root: Path, ends: signal.Signals) -> None:
    with held(root) as found:
        handed = [one.fileno() for one in found]
        with serve(root, file, handed) as daemon:
            daemon.wait_for(_READY)
            daemon.signal(ends)
            daemon.process.wait(LONG)
        with command(root, "status") as waiting:
            assert waiting.stderr is not None
            assert waiting.stderr.readline() == "waiting for the daemon to answer\n"
            assert waiting.poll() is None
            with serve(root, file, handed):
                said, more = waiting.communicate(timeout=LONG)
                assert (waiting.returncode, more) == (0, "")
                assert "2 resources: 2 Healthy." in said


def test_one_of_them_alone(file: Path, root: Path) -> None:
    """The other one is the daemon's own then."""
    with held(root, NAMES[:1]) as (one,), serve(root, file, [one.fileno()], NAMES[:1]) as daemon:
        daemon.wait_for(_READY)
        for name in NAMES:
            with asked(root, name) as client:
                assert client.about().pid == daemon.process.pid
        assert daemon.end() == 0
        folder = Paths(root).under(sockets.FOLDER)
        assert [one.name for one in folder.iterdir() if one.is_socket()] == [NAMES[0]]


def _swapped(found: list[socket.socket]) -> tuple[list[int], list[str]]:
    return [one.fileno() for one in found], [NAMES[1], NAMES[0]]


def _unknown(found: list[socket.socket]) -> tuple[list[int], list[str]]:
    return [found[0].fileno()], ["holdfast.socket"]


def _twice(found: list[socket.socket]) -> tuple[list[int], list[str]]:
    return [found[0].fileno()] * 2, [NAMES[0]] * 2


def _unnamed(found: list[socket.socket]) -> tuple[list[int], list[str]]:
    return [one.fileno() for one in found], [NAMES[0]]


def _file(_found: list[socket.socket]) -> tuple[list[int], list[str]]:
    return [0], [NAMES[0]]


@pytest.mark.parametrize(
    ("handing", "told"),
    [
        (_swapped, "it listens on '.*/holdfast.sock'"),
        (_unknown, "there is no such socket; FileDescriptorName= is one of holdfast.sock, "),
        (_twice, "there are two of holdfast.sock"),
        (_unnamed, "2 descriptors with the names 'holdfast.sock' were handed over"),
        (_file, "it is no socket"),
    ],
)
def test_what_does_not_fit_is_not_served(
    file: Path,
    root: Path,
    handing: Callable[[list[socket.socket]], tuple[list[int], list[str]]],
    told: str,
) -> None:
    with held(root) as found:
        handed, names = handing(found)
        with serve(root, file, handed, names) as daemon:
            daemon.wait_for(_READY)  # the router is kept all the same
            # A pass after the first tells of it.
            said = f"the API is not served: .*{told}"
            until(lambda: re.search(said, daemon.said()) is not None, "it was told")
            assert daemon.end() == 0


def test_one_that_does_not_listen(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "holdfast.sock"))
        assert "nobody listens on it" in _taken(one).problem
    with socket.socket() as one:
        one.listen()
        assert "no stream socket of the Unix family" in _taken(one).problem


def _taken(one: socket.socket) -> Inherited:
    return take(_environment(os.getpid()), one.fileno())


def _environment(pid: int) -> dict[str, str]:
    return {"LISTEN_PID": str(pid), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "holdfast.sock"}


def test_those_for_another_process_are_not_ours(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "holdfast.sock"))
        one.listen()
        other = _environment(os.getppid())
        assert not take(other, one.fileno())
        assert not other  # nobody that is started from here takes them for its own
        ours = _environment(os.getpid())
        taken = take(ours, os.dup(one.fileno()))
        assert list(taken.sockets) == ["holdfast.sock"]
        assert not ours
        taken.sockets["holdfast.sock"].close()
        assert "is no number" in take(_environment(os.getpid()) | {"LISTEN_FDS": "x"}).problem


# As PID 1 of a namespace of its own: holds the socket, then has a daemon started by hand.
_MANAGER = """\
import socket, subprocess, sys
with socket.socket(socket.AF_UNIX) as held:
    held.bind(sys.argv[1])
    held.listen()
    sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


def test_a_daemon_started_by_hand_leaves_them(netns: Namespace, open_folder: Path) -> None:
    netns.veth("wan0", "far0")
    file = open_folder / "router.yaml"
    declare(file, ROUTER)
    place = Paths(open_folder).under(sockets.FOLDER) / "holdfast.sock"
    place.parent.mkdir(parents=True)
    by_hand = [sys.executable, "-m", "holdfast", "--root", str(open_folder), "serve", str(file)]
    manager = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", _MANAGER]
    done = subprocess.run(
        [*manager, str(place), *by_hand], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.returncode == Refused.exit_code
    assert f"{place} is held by systemd for holdfast.service" in done.stderr
    assert place.is_socket()
    assert not netns.ip_json("-4 address show dev wan0")


def test_without_them_it_makes_its_own(file: Path, root: Path) -> None:
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": ":".join(NAMES)}
    daemon: Daemon
    with serve_by_hand(root, file, environment) as daemon:
        daemon.wait_for(_READY)
        folder = Paths(root).under(sockets.FOLDER)
        until(lambda: all((folder / name).is_socket() for name in NAMES), "the sockets")
        inner = list(folder.glob("inner-*"))
        assert len(inner) == len(sockets.SOCKETS)
        assert not [one for one in inner if one.stat().st_mode & 0o077], "for the relay alone"
