"""One daemon for each root: two with different files would undo each other's work for ever.

A lock on a file holds against daemons in whatever network namespace, and a name in this namespace
where no file can be made: no room on the disk is not no network.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.host import namespace_presence
from holdfast.host.namespace_holder import place_of
from holdfast.host.namespace_presence import Taken
from holdfast.paths import Paths

_FILE, _PURPOSE = "/run/holdfast/serve.lock", "serve"


@dataclass(slots=True)
class InstanceLock:
    """Held for as long as it is open; the kernel lets go of it with its holder."""

    paths: Paths
    _file: int | None = None
    _name: int | None = None

    def take(self) -> None:
        """Raises Refused while another daemon runs."""
        with suppress(OSError):  # `lock` is asked again
            self.lock()
        place = place_of(self.paths.root)
        try:
            self._name = namespace_presence.hold_alone(_PURPOSE, place)
        except Taken as holder:
            raise _refused(self.paths, str(holder)) from None
        if self._file is None and self._name is None:
            raise Refused(f"no other `holdfast serve` on {self.paths.root} can be kept out")

    def lock(self) -> None:
        """By the file, unless that is done. Raises Refused where another daemon has it, and OSError
        where it cannot be made."""
        if self._file is None:
            self._file = _locked(self.paths)

    def close(self) -> None:
        for descriptor in (self._file, self._name):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._name = None


@contextmanager
def only_instance(paths: Paths) -> Iterator[InstanceLock]:
    """Raises Refused while another one runs."""
    held = InstanceLock(paths)
    try:
        held.take()
        yield held
    finally:
        held.close()


def _locked(paths: Paths) -> int:
    place = paths.under(_FILE)
    descriptor = _opened(str(place), str(place.parent))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # What is written there may be of one before, where it could not be written anew.
        holder = namespace_presence.holder_of(_PURPOSE, place_of(paths.root))
        holder = holder or os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown"
        os.close(descriptor)
        raise _refused(paths, f"process {holder}") from None
    except BaseException:
        os.close(descriptor)
        raise
    with suppress(OSError):  # it is held all the same where there is no room to say by whom
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _opened(place: str, folder: str) -> int:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 (as below)
        return os.open(place, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except OSError:
        # Who may not write it may lock it, as on a file system that turned read-only.
        with suppress(OSError):
            return os.open(place, os.O_RDONLY | flags)
        raise


def _refused(paths: Paths, holder: str) -> Refused:
    return Refused(f"another `holdfast serve` is at work on {paths.root} ({holder})")
