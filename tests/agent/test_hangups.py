"""SIGHUP has the file read again. At no moment of its life does it end the daemon."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

RESOURCES = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
}


def _ignored(pid: int) -> bool:
    """Once the interpreter runs the first line of the command."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = sum(
        int(line.split()[1], 16)
        for line in status.splitlines()
        if line.startswith(("SigIgn:", "SigCgt:"))
    )
    return bool(caught & 1 << (signal.SIGHUP - 1))


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def test_a_hangup_at_any_moment(netns: Namespace, root: Path) -> None:
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text(document(RESOURCES))
    with serve(root, file) as daemon:
        pid, over = daemon.process.pid, threading.Event()
        until(lambda: _ignored(pid), "the first line of the command")

        def hang_up() -> None:
            while not over.is_set():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGHUP)
                time.sleep(0.001)

        sender = threading.Thread(target=hang_up)
        sender.start()
        try:
            until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "the first pass")
            assert daemon.process.poll() is None
            daemon.signal(signal.SIGTERM)
            # Not reaped yet, so that its number is nobody else's before the sender stops.
            until(lambda: _ended(pid), "ended")
        finally:
            over.set()
            sender.join()
        assert daemon.process.wait() == 0
