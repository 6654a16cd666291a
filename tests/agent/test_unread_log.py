"""A log that nobody takes any more is no reason to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.agent.street import until
from tests.namespace import Namespace
from tests.safety.router import document

LINK = {"Interface/wan": "{ifname: wan0}"}
ADDRESS = {**LINK, "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}"}


def there(netns: Namespace) -> bool:
    return "192.0.2.1/24" in netns.ip("addr show dev wan0")


def test_whoever_read_the_log_is_gone(netns: Namespace, root: Path) -> None:
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text(document(ADDRESS))
    argv = [sys.executable, "-m", "holdfast", "--root", str(root), "serve", str(file)]
    reader, writer = os.pipe()
    daemon = subprocess.Popen([*argv, "--listen", "none"], stdin=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    try:
        until(lambda: there(netns), "the first pass")
        os.close(reader)
        for _ in range(3):
            netns.ip("addr del 192.0.2.1/24 dev wan0")
            until(lambda: there(netns), "repaired")
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(30) == 0
    finally:
        daemon.kill()
        daemon.wait()
