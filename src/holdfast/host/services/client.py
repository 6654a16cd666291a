"""Asking the supervisor of a root, and starting one where there is none."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.errors import DriverError
from holdfast.host import process
from holdfast.host.services import processes, supervise
from holdfast.host.services.folder import SOCKET, Folder

_START_TIMEOUT_S = 30.0
# A supervisor that ends just now still has its lock when its successor looks.
_ATTEMPTS = 50
_PAUSE_S = 0.1
# On top of what a program is given to end.
_ANSWER_TIMEOUT_S = 20.0


class Client:
    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def there(self) -> bool:
        """Whether there is one. DriverError where it is in another network namespace: what it
        starts would be there too."""
        connection = self._connect()
        if connection is None:
            return False
        with connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid = struct.unpack("3i", credentials)[0]
            try:
                elsewhere = processes.network(pid) != processes.network()
            except OSError:
                return False  # it ended meanwhile
        if elsewhere:
            raise DriverError(
                f"the supervisor of {self._root} (process {pid}) runs in another network"
                " namespace; run Holdfast there, or end it"
            )
        return True

    def ensure(self, name: str, stop_timeout: int) -> int:
        """The number of the process that runs; DriverError with the supervisor's words."""
        return int(self._ask("ensure", name, stop_timeout).get("pid", 0))

    def remove(self, name: str, stop_timeout: float) -> None:
        self._ask("remove", name, stop_timeout)

    def remove_all(self) -> None:
        """Ends every service below the root; the supervisor ends with the last. For roots that
        are about to be deleted, where no pass comes after."""
        for name in Folder(self._root).names():
            self.remove(name, _ANSWER_TIMEOUT_S)

    def _ask(self, what: str, name: str, stop_timeout: float) -> dict[str, Any]:
        for _ in range(_ATTEMPTS):
            if not self.there():
                self._start()
            said = self._exchange({"do": what, "name": name}, stop_timeout + _ANSWER_TIMEOUT_S)
            if said is None:
                time.sleep(_PAUSE_S)  # it ended before it heard us
                continue
            if "error" in said:
                raise DriverError(str(said["error"]))
            return said
        raise DriverError(f"the supervisor of {self._root} does not answer")

    def _exchange(self, question: dict[str, str], timeout: float) -> dict[str, Any] | None:
        connection = self._connect()
        if connection is None:
            return None
        with connection:
            connection.settimeout(timeout)
            try:
                connection.send(json.dumps(question).encode())
                answer = connection.recv(1 << 16)
            except TimeoutError:
                raise DriverError(f"the supervisor did not answer within {timeout:g} s") from None
            except OSError:
                return None
        said: dict[str, Any] | None = json.loads(answer) if answer else None
        return said

    def _connect(self) -> socket.socket | None:
        try:
            with Folder(self._root).opened() as folder:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                try:
                    # A path below the root may be longer than an address can hold.
                    connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
                except BaseException:
                    connection.close()
                    raise
                return connection
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise DriverError(f"the supervisor of {self._root}: {error.strerror}") from error

    def _start(self) -> None:
        script = os.path.abspath(supervise.__file__)  # noqa: PTH100 (a link is not followed)
        try:
            done = subprocess.run(  # noqa: S603 (no shell, absolute path)
                [sys.executable, "-I", "-S", script, str(self._root)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_START_TIMEOUT_S,
                check=False,
                cwd="/",
                env={"PATH": process.PATH, "LC_ALL": "C.UTF-8"},
            )
        except subprocess.TimeoutExpired:
            raise DriverError("the supervisor did not begin in time") from None
        except OSError as error:
            raise DriverError(f"the supervisor could not be started: {error}") from error
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise DriverError(f"the supervisor could not be started: {'; '.join(lines[-2:])}")
