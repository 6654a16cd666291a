"""The socket files: who may open them, and what becomes of those that were left behind."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from holdfast.api import sockets
from holdfast.api.client import connected
from holdfast.api.sockets import SOCKETS
from holdfast.errors import HoldfastError, Refused
from holdfast.paths import Paths
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.api.conftest import ROUTER, Served, declare
from tests.namespace import Namespace


def test_for_root_alone_where_there_is_no_group(served: Served) -> None:
    for each in SOCKETS:
        found = served.socket(each.name).lstat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o660
        assert found.st_uid == 0


def test_a_clean_end_leaves_none(served: Served) -> None:
    assert served.daemon.end() == 0
    assert not any(served.socket(each.name).exists() for each in SOCKETS)


def test_those_of_a_killed_daemon_are_replaced(served: Served) -> None:
    served.daemon.signal(signal.SIGKILL)
    served.daemon.process.wait()
    assert all(served.socket(each.name).exists() for each in SOCKETS)
    with serve(served.root, served.file) as again:
        again.wait_for("router.yaml read")
        assert served.client().about().pid == again.process.pid


def test_one_that_is_listened_on_is_not_taken(netns: Namespace, root: Path) -> None:
    netns.veth("wan0", "far0")
    paths = Paths(root)
    paths.under(sockets.FOLDER).mkdir(parents=True)
    file = root / "router.yaml"
    declare(file, ROUTER)
    place = paths.under(sockets.FOLDER) / "holdfast.sock"
    with socket.socket(socket.AF_UNIX) as other, sockets.folder(paths) as folder:
        other.bind(f"{folder}/{place.name}")
        other.listen()
        before = place.lstat().st_ino
        with serve(root, file) as daemon:
            daemon.wait_for("another process listens there")
            daemon.wait_for("because of the start")  # the router is kept all the same
        assert place.lstat().st_ino == before


def test_a_file_in_the_way_is_left_alone(netns: Namespace, root: Path) -> None:
    netns.veth("wan0", "far0")
    place = Paths(root).under(sockets.FOLDER) / "holdfast.sock"
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    file = root / "router.yaml"
    declare(file, ROUTER)
    with serve(root, file) as daemon:
        daemon.wait_for("is in the way, and no socket")
    assert place.read_text() == "mine"


def test_a_root_longer_than_the_kernel_takes_for_a_socket(netns: Namespace, root: Path) -> None:
    netns.veth("wan0", "far0")
    deep = root / ("d" * 100)
    deep.mkdir(parents=True)
    file = deep / "router.yaml"
    declare(file, ROUTER)
    with serve(deep, file) as daemon, ExitStack() as held:
        daemon.wait_for("because of the start")
        folder = held.enter_context(sockets.folder(Paths(deep)))
        client = held.enter_context(connected(f"{folder}/holdfast.sock"))
        assert client.about().pid == daemon.process.pid


def test_a_second_daemon_leaves_the_sockets_of_the_first(served: Served) -> None:
    with serve(served.root, served.file) as second:
        assert second.process.wait(30) == Refused.exit_code
    assert served.client().about().pid == served.daemon.process.pid


GROUP, READERS = 61_234, 61_235


def test_the_group_may_open_them(netns: Namespace, open_folder: Path) -> None:
    """With groups of those names, which this machine may not have."""
    netns.veth("wan0", "far0")
    (open_folder / "run").mkdir(mode=0o755)
    file = open_folder / "router.yaml"
    declare(file, ROUTER)
    groups = open_folder / "group"
    here = Path("/etc/group").read_text()
    groups.write_text(f"{here}holdfast:x:{GROUP}:\nholdfast-ro:x:{READERS}:\n")
    daemon = f"{sys.executable} -m holdfast --root {open_folder} serve {file}"
    script = f"mount --bind {groups} /etc/group; umask 077; exec {daemon}"
    log = open_folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(["unshare", "--mount", "sh", "-ec", script], stderr=out)
    try:
        until(lambda: "because of the start" in log.read_text(), "the first pass")
        folder = Paths(open_folder).under(sockets.FOLDER)
        assert (folder / "holdfast.sock").stat().st_gid == GROUP
        assert (folder / "holdfast-ro.sock").stat().st_gid == READERS
        assert _status(open_folder, GROUP).startswith("2 resources: 2 Healthy")
        assert _status(open_folder, READERS).startswith("2 resources: 2 Healthy")
        denied = "it is for root and for the group holdfast: run it with sudo, or as one of that"
        assert denied in _status(open_folder, 65534)
        assert denied in _last_line(open_folder, 65534, "top")
    finally:
        process.kill()
        process.wait()


def _status(root: Path, group: int) -> str:
    return _last_line(root, group, "status")


def _last_line(root: Path, group: int, command: str) -> str:
    """What a command says last, as somebody of that group alone, who may read all files:
    the interpreter may lie in a folder of root's. Opening a socket takes the right to write."""
    reads = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
    who = ("--reuid", "65534", "--regid", str(group), "--clear-groups")
    done = subprocess.run(
        ["setpriv", *who, *reads, sys.executable, "-m", "holdfast", "--root", str(root), command],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_errors_come_back_as_they_were() -> None:
    from holdfast.api import errors, limits
    from holdfast.errors import ConfigError, DriverError, LedgerError, Problem

    for error in (Refused("no"), LedgerError("held"), DriverError("EPERM"), HoldfastError("x")):
        back = errors.from_wire(errors.to_wire(error))
        assert type(back) is type(error)
        assert (str(back), back.exit_code) == (str(error), error.exit_code)
    many = ConfigError([Problem(f"router.yaml:{n}:1", "spec", "wrong " * 20) for n in range(5000)])
    wire = errors.to_wire(many)
    assert wire.ByteSize() < 2 * limits.MAX_ERROR_BYTES
    back = errors.from_wire(wire)
    assert isinstance(back, ConfigError)
    assert back.problems[0] == many.problems[0]
    assert str(back).endswith(f"… and {5000 - len(wire.problems)} more")
