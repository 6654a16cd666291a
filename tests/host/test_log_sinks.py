"""Events reach syslog sockets and programs, and a sink that is not there stops nothing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.host.log_sinks import Message, deliver
from holdfast.paths import Paths
from holdfast.resources.resource import Resource
from holdfast.resources.system.log_sink import KINDS
from tests.namespace import Namespace

MADE = Message("info", "created route 10.0.0.0/8: declared", "RouteList/x", {"count": 3})
FAILED = Message("error", "create-failed link br0:\nno such\tdevice", "Interface/br0")


def sink(spec: dict[str, Any]) -> Resource:
    return Resource("LogSink", "logs", KINDS["LogSink"].spec.read(spec), "router.yaml:1:1", 0)


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


def test_program_gets_json_on_its_input(root: Path) -> None:
    root.mkdir()
    program = root / "sink"
    lines = (
        "#!/bin/sh",
        f"cat >> {root}/seen",
        f'echo "$HOLDFAST_LOG_LEVEL $ROUTERD_LOG_ROUTER" >> {root}/env',
    )
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    spec = {"type": "plugin", "minLevel": "warning", "plugin": {"path": "/sink"}}
    assert sent(root, spec, [MADE, FAILED]) == []
    (line,) = (root / "seen").read_text().splitlines()
    said = json.loads(line)
    assert said["level"] == "error"
    assert said["router"] == "edge"
    assert said["resourceID"] == "Interface/br0"
    assert (root / "env").read_text() == "error edge\n"


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
    assert "could not be run: No such file or directory" in problem


def test_disabled_and_below_the_level(root: Path) -> None:
    assert sent(root, {"type": "syslog", "enabled": False}, [FAILED]) == []
    assert sent(root, {"type": "syslog", "minLevel": "error"}, [MADE]) == []
