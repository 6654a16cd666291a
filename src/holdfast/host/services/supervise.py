"""The supervisor as a process: `python -I -S supervise.py ROOT`, started by the driver.

Returns once it can be asked, and goes on in the background: status 0 also where another one is
there already. It ends by itself when there is nothing left to supervise.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress

# Without `site` (it would bring modules that are never used) the package has to be found first.
if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))  # noqa: PTH100

from pathlib import Path

from holdfast.host.services import log
from holdfast.host.services.folder import LOCK, SOCKET, Folder
from holdfast.host.services.supervisor import JOURNAL, Supervisor

# How long it waits with nothing to do: whoever started it is about to ask, and a pass that has
# something removed may ask for more.
PATIENCE_S = 10.0
REST_S = 1.0
_LONGEST_REQUEST = 4096


class Desk:
    """Where requests come in: one packet each, answered by one."""

    def __init__(self, supervisor: Supervisor, listener: socket.socket) -> None:
        self._supervisor = supervisor
        self._listener = listener
        self.leave_at = time.monotonic() + PATIENCE_S
        supervisor.watch(listener.fileno(), self._accept)

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionError):
            caller, _ = self._listener.accept()
            credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", credentials)[1] not in (0, os.geteuid()):
                caller.close()
                return
            caller.setblocking(False)
            self._supervisor.watch(caller.fileno(), lambda: self._hear(caller))

    def _hear(self, caller: socket.socket) -> None:
        self._supervisor.unwatch(caller.fileno())
        self.leave_at = time.monotonic() + REST_S
        try:
            said = json.loads(caller.recv(_LONGEST_REQUEST) or b"{}")
            what, name = said.get("do"), str(said.get("name"))
        except (OSError, ValueError, AttributeError):
            caller.close()
            return

        def answer(words: dict[str, object]) -> None:
            # Whoever asked may be gone, which changes nothing of what was asked.
            with suppress(OSError):
                caller.send(json.dumps(words).encode())
            caller.close()

        if self._supervisor.deposed():
            caller.close()  # whoever asked finds the next one
        elif what == "ensure":
            self._supervisor.ensure(name, answer)
        elif what == "remove":
            self._supervisor.remove(name, answer)
        else:
            answer({"error": f"cannot {what!r}"})


def serve(root: Path, folder: int, ready: int) -> None:
    supervisor = Supervisor(root)
    # A path below the root may be longer than the 107 bytes an address can hold.
    address = f"/proc/self/fd/{folder}/{SOCKET}"
    with suppress(FileNotFoundError):
        os.unlink(SOCKET, dir_fd=folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        own = _socket(folder)
        supervisor.deposed = lambda: _socket(folder) != own
        listener.setblocking(False)
        supervisor.adopt()
        listener.listen(16)
        desk = Desk(supervisor, listener)
        _detach(supervisor)
        os.write(ready, b"!")
        os.close(ready)
        while not supervisor.idle or (
            time.monotonic() < desk.leave_at and not supervisor.deposed()
        ):
            supervisor.turn(0.1 if supervisor.idle else PATIENCE_S)
        if not supervisor.deposed():
            os.unlink(SOCKET, dir_fd=folder)


def _socket(folder: int) -> int:
    """Which one is there under our name; 0 where none is."""
    try:
        return os.stat(SOCKET, dir_fd=folder, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


def _detach(supervisor: Supervisor) -> None:
    """Lets go of the streams of whoever started it; what Python has to say goes to the log."""
    nothing = os.open("/dev/null", os.O_RDWR)
    journal = log.open_or_nothing(supervisor.root, JOURNAL)
    for standard, stream in ((nothing, 0), (journal, 1), (journal, 2)):
        os.dup2(standard, stream)
    os.close(nothing)
    os.close(journal)


def main() -> int:
    root = Path(sys.argv[1])
    with Folder(root).opened(create=True) as opened:
        folder = os.dup(opened)
    lock = os.open(
        LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    told, ready = os.pipe2(os.O_CLOEXEC)
    if os.fork():
        os.close(ready)
        # Not an ordinary exit, which would end what the child goes on with.
        os._exit(0 if os.read(told, 1) else 1)
    os.close(told)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(root, folder, ready)
    return 0


if __name__ == "__main__":
    sys.exit(main())
