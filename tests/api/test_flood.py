"""Connections that say nothing, more of them than a process may have descriptors."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from holdfast.api import sockets
from holdfast.api.client import connected
from holdfast.api.conditions import Gone
from holdfast.paths import Paths
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.api import handed
from tests.api.limited import DESCRIPTORS
from tests.lanes import needs
from tests.namespace import Namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
_PROGRAM = "tests.api.limited"
_SILENT = 1500
CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: one}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan0, adminUp: true}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: wan}
      spec: {interface: wan, address: 192.0.2.1/24}
"""


@contextmanager
def served(root: Path, file: Path, how: str) -> Iterator[Daemon]:
    with ExitStack() as stack:
        if how == "by hand":
            yield stack.enter_context(serve(root, file, program=_PROGRAM))
        else:
            numbers = [one.fileno() for one in stack.enter_context(handed.held(root))]
            yield stack.enter_context(handed.serve(root, file, numbers, program=_PROGRAM))


def connect(place: Path, stack: ExitStack) -> None:
    """As many as the daemon takes; those that are sent away are closed here at the end."""
    for _ in range(_SILENT):
        one = stack.enter_context(socket.socket(socket.AF_UNIX))
        one.settimeout(0.2)
        with suppress(TimeoutError, BlockingIOError):
            one.connect(str(place))


def answered(place: str) -> bool:
    """gRPC takes a full queue of the kernel's for a connection, which then breaks."""
    with suppress(Gone), connected(place) as client:
        return bool(client.about(60).pid)
    return False


@pytest.mark.parametrize("how", ["by hand", "handed over"])
def test_passes_and_callers_go_on(netns: Namespace, root: Path, how: str) -> None:
    root.mkdir()
    netns.ip("link add wan0 type veth peer name isp0")
    netns.ip("link set isp0 up")
    file = root / "router.yaml"
    file.write_text(CONFIG)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needs(hard >= 2 * _SILENT, "as many descriptors as this opens")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * _SILENT), hard))
    with served(root, file, how) as daemon, ExitStack() as silent:
        daemon.wait_for("converged")
        connect(root / "run/holdfast/holdfast-ro.sock", silent)
        descriptors = Path(f"/proc/{daemon.process.pid}/fd")
        assert len(list(descriptors.iterdir())) < DESCRIPTORS - 100
        for _ in range(3):
            netns.ip("addr del 192.0.2.1/24 dev wan0")
            until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "the repair")
        with sockets.folder(Paths(root)) as folder:
            for name in handed.NAMES:
                until(partial(answered, f"{folder}/{name}"), "the answer")
        assert "Too many open files" not in daemon.said()
