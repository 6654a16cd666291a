"""Events reach syslog sockets and programs, and a sink that is not there stops nothing."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast.host.log_sinks import Message, deliver
from holdfast.paths import Paths
from holdfast.resources.resource import Resource
from holdfast.resources.system.log_sink import LogSink
from tests.agent.two_providers import until
from tests.namespace import Namespace

pytestmark = pytest.mark.programs

MADE = Message("info", "created route 10.0.0.0/8: declared", "RouteList/x", {"count": 3})
FAILED = Message("error", "create-failed link br0:\nno such\tdevice", "Interface/br0")


def sink(spec: dict[str, Any]) -> Resource:
    return Resource("LogSink", "logs", LogSink.read(spec), "router.yaml:1:1", 0)


def sent(root: Path, spec: dict[str, Any], messages: Sequence[Message]) -> list[str]:
    return list(deliver(Paths(root), [sink(spec)], "edge", "apply", messages))


def test_local_syslog(root: Path) -> None:
    (root / "dev").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(root / "dev/log"))
        server.settimeout(30)
        assert (
            sent(root, {"type": "syslog", "syslog": {"facility": "local0"}}, [MADE, FAILED]) == []
        )
        first, second = server.recv(4096).decode(), server.recv(4096).decode()
    assert first.startswith(f"<{16 * 8 + 6}>")
    assert first.endswith("]: created route 10.0.0.0/8: declared")
    assert " holdfast[" in first
    assert second.startswith(f"<{16 * 8 + 3}>")
    assert second.endswith(": create-failed link br0: no such device")  # one line


def test_udp_and_tcp(netns: Namespace, root: Path) -> None:
    netns.ip("link set lo up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        spec = {"type": "syslog", "syslog": {"network": "udp", "address": address}}
        assert sent(root, spec, [MADE]) == []
        assert server.recv(4096).startswith(f"<{22 * 8 + 6}>1 ".encode())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        spec = {"type": "syslog", "syslog": {"network": "tcp", "address": address}}
        assert sent(root, spec, [MADE, FAILED]) == []
        connection, _ = listener.accept()
        with connection:
            data = connection.makefile("rb").read()
    length, _, rest = data.partition(b" ")
    assert rest[: int(length)].endswith(b"declared")
    length, _, last = rest[int(length) :].partition(b" ")
    assert len(last) == int(length)


def test_a_host_of_any_name(netns: Namespace, root: Path) -> None:
    netns.ip("link set lo up")
    socket.sethostname(os.fsdecode(b"r\xff1"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        spec = {"type": "syslog", "syslog": {"network": "udp", "address": address}}
        assert sent(root, spec, [MADE]) == []
        assert server.recv(4096).split(b" ")[2] == b"r\\udcff1"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Where a program without rights can write."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def program(root: Path, *lines: str) -> dict[str, Any]:
    root.mkdir(exist_ok=True)
    (root / "sink").write_text("\n".join(("#!/bin/sh", *lines, "")))
    (root / "sink").chmod(0o755)
    return {"type": "plugin", "minLevel": "warning", "plugin": {"path": "/sink"}}


def test_program_gets_json_on_its_input(root: Path, open_folder: Path) -> None:
    spec = program(
        root,
        f"cat >> {open_folder}/seen",
        f'echo "$HOLDFAST_LOG_LEVEL $ROUTERD_LOG_ROUTER" >> {open_folder}/env',
    )
    assert sent(root, spec, [MADE, FAILED]) == []
    (line,) = (open_folder / "seen").read_text().splitlines()
    said = json.loads(line)
    assert said["level"] == "error"
    assert said["router"] == "edge"
    assert said["resourceID"] == "Interface/br0"
    assert (open_folder / "env").read_text() == "error edge\n"


def test_program_has_no_rights(root: Path, open_folder: Path) -> None:
    spec = program(root, f"cat /proc/self/status > {open_folder}/status", "test ! -r /etc/shadow")
    assert sent(root, spec, [FAILED]) == []
    status = (open_folder / "status").read_text()
    assert re.search(r"^Uid:\t65534\t65534\t65534\t65534$", status, re.M)
    assert re.search(r"^Gid:\t65534\t65534\t65534\t65534$", status, re.M)
    assert re.search(r"^Groups:\s*$", status, re.M)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.M)
    for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert re.search(rf"^Cap{kind}:\t0+$", status, re.M)


@pytest.mark.parametrize("how", ["(sleep {} &)", "(setsid setsid sleep {} &)"])
@pytest.mark.parametrize("end", ["exit 0", "exec sleep 60"], ids=["ends", "hangs"])
def test_nothing_that_it_starts_outlives_it(root: Path, how: str, end: str) -> None:
    seconds = f"61.{os.getpid()}"
    spec = program(root, how.format(seconds), end)
    spec["plugin"]["timeout"] = "3s"
    told = sent(root, spec, [FAILED])
    assert told == [] if end == "exit 0" else "did not answer within 3 s" in told[0]
    until(lambda: not _running(f"sleep\0{seconds}"), "its end")


def _running(words: str) -> bool:
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words in found.read_text():
                return True
    return False


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.chmod(0o775), "others than its owner may write"),
        (lambda file: file.chmod(0o757), "others than its owner may write"),
        (lambda file: os.chown(file, 1000, 1000), "belongs to user 1000"),
        (lambda file: file.parent.chmod(0o777), "others than its owner may write the folder"),
        (lambda file: os.chown(file.parent, 1000, 0), "the folder"),
        (lambda file: file.chmod(0o644), "is not executable: chmod 0755"),
        (lambda file: file.chmod(0o744), "is run as nobody, who may not"),
        (lambda file: _behind_a_link(file), "the link"),
        (lambda file: _instead(file, os.mkfifo), "is not a regular file"),
    ],
)
def test_a_program_in_the_hands_of_others_is_not_run(
    root: Path, open_folder: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spec = program(root, f"touch {open_folder}/ran")
    spoil(root / "sink")
    (problem,) = sent(root, spec, [FAILED])
    assert said in problem
    assert not (open_folder / "ran").exists()


def _behind_a_link(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")
    os.lchown(file, 1000, 1000)


def _instead(file: Path, made: Callable[[Path], object]) -> None:
    file.unlink()
    made(file)


def test_what_cannot_be_reached_is_said(root: Path) -> None:
    (problem,) = sent(root, {"type": "syslog"}, [MADE])
    assert problem.startswith("LogSink/logs: 1 event was not delivered: ")
    root.mkdir()
    slow = root / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    spec = {"type": "plugin", "plugin": {"path": "/slow", "timeout": "200ms"}}
    (problem,) = sent(root, spec, [MADE])
    assert "did not answer within 0.2 s" in problem
    (problem,) = sent(root, {"type": "plugin", "plugin": {"path": "/none"}}, [MADE])
    assert "/none: No such file or directory" in problem


def test_disabled_and_below_the_level(root: Path) -> None:
    assert sent(root, {"type": "syslog", "enabled": False}, [FAILED]) == []
    assert sent(root, {"type": "syslog", "minLevel": "error"}, [MADE]) == []
