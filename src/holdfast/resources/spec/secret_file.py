"""Secrets in files of their own, which nobody but their owner can read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from holdfast.config import regular_file
from holdfast.config.document import Location
from holdfast.dataclass import dataclass, field
from holdfast.resources.resource import Fault, Folder

_MOST = 4096  # bytes of a file that are looked at; a secret is one line
_ELSEWHERE = "the router needs it, and `validate --on-host` there looks for it"


@dataclass(frozen=True, slots=True)
class Secret:
    value: str = field(repr=False)  # "" where there is none
    faults: tuple[Fault, ...] = ()


def read(
    folder: Folder, name: str, location: Location, parse: Callable[[str], str], *, stand_in: str
) -> Secret:
    """What `parse` makes of the first line. It raises ValueError, without the secret in it, for
    what will not do. location: the field that names the file. stand_in: for one that is not to be
    had on a machine that is not the router, so that the rest can be checked."""
    path = folder.find(name)
    try:
        content = _content(path)
    except OSError as error:
        words = f"{path}: {error.strerror or error}"
        if folder.on_host:
            return Secret("", (Fault(location, words),))
        return Secret(stand_in, (Fault(location, f"{words}; {_ELSEWHERE}", warning=True),))
    try:
        return Secret(parse(content.decode().split("\n", 1)[0].rstrip("\r")))
    except UnicodeDecodeError:
        words = "is not UTF-8 text"
    except ValueError as error:
        words = f"its first line {error}"
    return Secret("", (Fault(location, f"{path}: {words}"),))


def _content(path: Path) -> bytes:
    """Raises OSError, also where others can read it: a check-out of a repository has it so, the
    router must not."""
    with regular_file.opened(path) as descriptor:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & 0o077:
            words = f"others can read it (mode {mode:04o}): chmod 600 it"
            raise PermissionError(errno.EPERM, words, str(path))
        return os.read(descriptor, _MOST)
