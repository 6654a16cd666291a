"""One daemon for each root: two with different files would undo each other's work for ever."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import Refused
from holdfast.paths import Paths

_FILE = "/run/holdfast/serve.lock"


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Raises Refused while another one runs. The kernel lets go of the lock with its holder."""
    place = paths.under(_FILE)
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown"
            raise Refused(
                f"another `holdfast serve` is at work on {paths.root} (process {holder})"
            ) from None
        with suppress(OSError):  # it is held all the same where there is no room to say by whom
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
