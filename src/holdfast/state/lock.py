"""One writer at a time: flock on a file that says who holds it.

The kernel drops the lock with its holder, whatever it died of; what the file says is only read
while the lock is held.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import LedgerError
from holdfast.state import defaults, faults

_LENGTH = 256


class Lock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(
        cls,
        path: Path,
        *,
        command: str,
        wait: float,
        clock: Callable[[], float],
        waiting: Callable[[float], None] = lambda _seconds: None,
        folder: bool = False,
    ) -> Lock:
        """Takes the lock, waiting up to `wait` seconds; LedgerError names the holder. waiting: told
        now and then, while another holds it, for how long that has been so. folder: the path is one
        that is there, and nothing is written."""
        descriptor = _open_folder(path) if folder else _open(path)
        try:
            _wait_for(descriptor, path, wait, waiting)
            # The lock is held all the same where there is no room to say by whom.
            with suppress(OSError):
                _say_holder(descriptor, command, clock())
        except OSError as error:
            os.close(descriptor)
            raise faults.from_system(error, path, "take the lock") from error
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            # Closing alone would leave it held by a child forked meanwhile.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path) -> int:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except OSError as error:
        problem = faults.from_system(error, path, "open the lock")
        if not isinstance(problem, faults.NotWritableError):
            raise problem from error
        try:
            # Who may not write it may lock it: flock asks for no more than a descriptor.
            return os.open(path, os.O_RDONLY | flags)
        except OSError:
            raise problem from error


def _open_folder(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise faults.from_system(error, path, "open the folder to lock") from error


def _say_holder(descriptor: int, command: str, now: float) -> None:
    holder = {"pid": os.getpid(), "command": command, "since": now}
    # Of one length, so that the file need not be cut: that waits for the disk at times.
    said = json.dumps(holder).encode().ljust(_LENGTH)
    os.pwrite(descriptor, said, 0)
    if os.fstat(descriptor).st_size > len(said):
        os.ftruncate(descriptor, len(said))


def _wait_for(descriptor: int, path: Path, wait: float, waiting: Callable[[float], None]) -> None:
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - began
            if waited >= wait:
                still = f" still, after waiting {wait:g} s," if wait else ""
                raise LedgerError(
                    f"{path.parent}: the ledger is{still} held by {_holder(descriptor)}."
                    f" {faults.UNTOUCHED} Let it end, or end it, then run this again."
                ) from None
            waiting(waited)
            time.sleep(min(defaults.LOCK_POLL_S, wait - waited))


def _holder(descriptor: int) -> str:
    try:
        said = json.loads(os.pread(descriptor, 4096, 0))
        since = datetime.fromtimestamp(said["since"], UTC)
        return f"process {said['pid']} (`{said['command']}`) since {since:%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, KeyError, TypeError, OSError):
        return "a process that has only just taken it"
