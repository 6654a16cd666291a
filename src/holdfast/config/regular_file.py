"""Reading files that somebody named: regular ones alone, without waiting, and no more than is sane.

A pipe waits for who never writes, a device may never end, and opening one may set it off (a
watchdog): each by a slip in a file name, and each would freeze whoever reads it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A million IPv6 routes, each with its gateway, link and metric, are about 100 MB of text; what is
# far beyond that is no configuration, and a small router has not the memory to find out.
LARGEST = 256 << 20
_PIECE = 1 << 20

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_INSTEAD = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}
# What a command was handed by whoever started it.
_HANDED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def read(path: Path, most: int = LARGEST) -> bytes:
    """All of a regular file. Raises OSError in the system's words, or in ours where there are none;
    so, too, where it is or grows larger than `most`."""
    with opened(path) as descriptor:
        return _all(descriptor, path, most)


def read_handed(path: Path, most: int = LARGEST) -> bytes:
    """The same; but a descriptor that the process was started with, by its name, may be a pipe or
    a terminal, and is waited for as every command waits for its input."""
    if not str(path).startswith(_HANDED):
        return read(path, most)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return _all(descriptor, path, most)
    finally:
        os.close(descriptor)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a regular file. Raises as `read` does."""
    _refuse_others(path.stat(), path)
    descriptor = os.open(path, _FLAGS)
    try:
        _refuse_others(os.fstat(descriptor), path)  # it may be another one by now
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_others(found: os.stat_result, path: Path) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return
    what = _INSTEAD.get(kind, "something else")
    code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
    raise OSError(code, f"it is not a regular file, but {what}", str(path))


def _all(descriptor: int, path: Path, most: int) -> bytes:
    size = os.fstat(descriptor).st_size
    if size > most:
        raise _too_large(path, most)
    pieces: list[bytes] = []
    count = 0
    # It may grow meanwhile, and files of the kernel's have no size.
    while count <= most:
        piece = os.read(descriptor, min(most + 1 - count, max(_PIECE, size - count)))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        count += len(piece)
    raise _too_large(path, most)


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
