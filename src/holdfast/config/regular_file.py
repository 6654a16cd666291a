"""Reading files that somebody named: regular ones alone, without waiting, and no more than is sane.

A pipe waits for who never writes, a device may never end, and opening one may set it off (a
watchdog): each by a slip in a file name, and each would freeze whoever reads it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.config import trusted_file
from holdfast.errors import Refused

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
_STDIN = "/dev/stdin"
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


def read(path: Path, most: int = LARGEST) -> bytes:
    """All of a regular file. Raises OSError in the system's words, or in ours where there are none;
    so, too, where it is or grows larger than `most`."""
    with opened(path) as descriptor:
        return _all(descriptor, path, most)


def is_handed(path: Path) -> bool:
    """Whether it is a descriptor that the process was started with, by its name."""
    return str(path).startswith(_HANDED)


def read_handed(path: Path, most: int = LARGEST) -> bytes:
    """The same; but what the process was started with may be a pipe or a terminal, and is waited
    for as every command waits for its input.

    The descriptor itself is read: opening it again by its name asks for the right to the file, and
    who opened it may have had one that this process has not (`sudo -u`, a file of mode 600)."""
    if not is_handed(path):
        return read(path, most)
    descriptor = _handed(path)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return _all(descriptor, path, most, whole=True)
    return _all(descriptor, path, most)


def _handed(path: Path) -> int:
    if str(path) == _STDIN:
        return 0
    named = _DESCRIPTOR.fullmatch(str(path))
    if named is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return int(named[1])


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a regular file. Raises as `read` does."""
    descriptor = _open(path)
    try:
        _refuse_others(os.fstat(descriptor), path)  # it may be another one by now
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    if os.geteuid() != 0 or is_handed(path):  # a name of our own descriptors is nobody's link
        _refuse_others(path.stat(), path)
        return os.open(path, _FLAGS)
    # Root reads what nobody else may: it follows no link of others, and opens what was looked at.
    try:
        with trusted_file.reached(path) as found:
            seen = os.fstat(found.file)
            _refuse_others(seen, path)
            descriptor = os.open(found.path.name, _FLAGS | os.O_NOFOLLOW, dir_fd=found.folder)
    except Refused as refused:
        raise PermissionError(errno.EPERM, str(refused), str(path)) from None
    if not os.path.samestat(seen, os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.EAGAIN, "another file took its place meanwhile", str(path))
    return descriptor


def _refuse_others(found: os.stat_result, path: Path) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return
    what = _INSTEAD.get(kind, "something else")
    code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
    raise OSError(code, f"it is not a regular file, but {what}", str(path))


def _all(descriptor: int, path: Path, most: int, *, whole: bool = False) -> bytes:
    """whole: from the file's first byte on, wherever others that share the descriptor are in it."""
    size = os.fstat(descriptor).st_size
    if size > most:
        raise _too_large(path, most)
    pieces: list[bytes] = []
    count = 0
    # It may grow meanwhile, and files of the kernel's have no size.
    while count <= most:
        room = min(most + 1 - count, max(_PIECE, size - count))
        piece = os.pread(descriptor, room, count) if whole else os.read(descriptor, room)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        count += len(piece)
    raise _too_large(path, most)


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
