"""Secrets in files of their own, which nobody but their owner can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from holdfast.config import regular_file
from holdfast.config.document import Location
from holdfast.resources.resource import Fault

_MOST = 4096  # bytes of a file that are looked at; a secret is one line


def read(path: Path, location: Location, parse: Callable[[str], str]) -> str | Fault:
    """What `parse` makes of the first line. It raises ValueError, without the secret in it, for
    what will not do. location: the field that names the file."""

    def wrong(message: str) -> Fault:
        return Fault(location, f"{path}: {message}")

    try:
        with regular_file.opened(path) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if mode & 0o077:
                return wrong(f"others can read it (mode {stat.S_IMODE(mode):04o}): chmod 600 it")
            content = os.read(descriptor, _MOST)
    except OSError as error:
        return wrong(error.strerror or str(error))
    try:
        return parse(content.decode().split("\n", 1)[0].rstrip("\r"))
    except UnicodeDecodeError:
        return wrong("is not UTF-8 text")
    except ValueError as error:
        return wrong(f"its first line {error}")
