"""Files that show the host's configuration: written whole or not at all, for their owner alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write(path: Path, pieces: Iterable[str]) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        error.filename = str(path)  # the one that was asked for
        raise
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        new.rename(path)
    except BaseException:
        with suppress(FileNotFoundError):
            new.unlink()
        raise
