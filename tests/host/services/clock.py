"""What chronyd does to a clock of its own: run by test_chrony.py, on a kernel given away for it.

The argument is the file system of the systemd lane's machine, which has a chronyd and its user.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.cli.conftest import COMMAND
from tests.host.services.service_passes import ServicePasses, over, until

_AHEAD_S = 100_000  # so far the server's clock is ahead of the one that is to be set
_TO_NTP_S = 2_208_988_800  # from 1900 to 1970
_HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
"""
_TIME = """\
    - apiVersion: system.holdfast.dev/v1alpha1
      kind: NTPClient
      metadata: {name: time}
      spec: {provider: chrony, servers: [SERVER]}
"""


def serve(port: socket.socket) -> None:
    """A time server of stratum 1 (RFC 5905, section 7.3)."""
    ahead = time.time() + _AHEAD_S - time.monotonic()  # by the clock that nobody sets
    while True:
        question, sender = port.recvfrom(512)
        now = ahead + time.monotonic() + _TO_NTP_S
        stamp = struct.pack("!II", int(now), int(now % 1 * 2**32))
        head = struct.pack("!BBbb8x4s", 0b00_100_100, 1, question[2], -20, b"TEST")
        port.sendto(head + stamp + question[40:48] + stamp + stamp, sender)


def furnish(image: Path, folder: Path) -> None:
    """The programs and the users of the machine, in place of those that are here."""
    for place in ("usr/sbin", "etc/passwd", "etc/group"):
        subprocess.run(["mount", "--bind", str(image / place), f"/{place}"], check=True)
    # chronyd gives up root's rights, and must still reach what is below.
    folder.chmod(0o755)


def holdfast(root: Path, *words: str) -> str:
    done = subprocess.run(
        [COMMAND, "--root", str(root), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main() -> None:
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("127.0.0.1", 123))
    threading.Thread(target=serve, args=(port,), daemon=True).start()
    folder = Path(tempfile.mkdtemp())
    furnish(Path(sys.argv[1]), folder)
    root, file, empty = folder / "root", folder / "router.yaml", folder / "empty.yaml"
    file.write_text(_HEAD + _TIME.replace("SERVER", "127.0.0.1"))
    empty.write_text(_HEAD.replace("resources:", "resources: []"))
    stage = ServicePasses(root)
    plan = ("plan", "--detailed-exitcode", str(file))

    before = time.time() - time.monotonic()
    holdfast(root, "apply", "--yes", str(file))
    pid = stage.pid("chrony")
    until(lambda: time.time() - time.monotonic() > before + _AHEAD_S - 10, "the clock is set", 60)
    assert Path(f"/proc/{pid}").stat().st_uid != 0
    holdfast(root, *plan)
    holdfast(root, "apply", "--yes", str(file))
    assert stage.pid("chrony") == pid, "a second pass restarts nothing"

    os.kill(pid, signal.SIGKILL)
    until(lambda: stage.restarted("chrony", pid), "it is started again")
    pid = stage.pid("chrony")
    conf = root / "etc/holdfast/chrony.conf"
    written = conf.read_text()
    conf.write_text("server 192.0.2.66\n")
    holdfast(root, "apply", "--yes", str(file))
    assert conf.read_text() == written
    assert stage.pid("chrony") == pid, "what it has read was right"
    holdfast(root, *plan)

    file.write_text(_HEAD + _TIME.replace("SERVER", "127.0.0.1, 192.0.2.1"))
    holdfast(root, "apply", "--yes", str(file))
    last = stage.pid("chrony")
    assert last != pid, "other servers are read by another process"
    holdfast(root, *plan)

    holdfast(root, "apply", "--yes", "--allow-mass-delete", str(empty))
    assert over(last)
    assert not conf.exists()
    drift = root / "var/lib/holdfast-chrony/drift"
    assert drift.exists(), "it is kept for the next boot: " + stage.log("chrony")
    until(lambda: stage.supervisors() == [], "the supervisor ends")
    print("set")


if __name__ == "__main__":
    main()
