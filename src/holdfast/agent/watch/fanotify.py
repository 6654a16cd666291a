"""fanotify: what happens to files in a folder, and which process does it.

inotify says as much but for the process. Where the kernel or a file system has no fanotify of this
sort (Linux 5.9), inotify has to do.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

_CLOEXEC, _NONBLOCK, _REPORT_FOLDER_AND_NAME = 0x1, 0x2, 0x400 | 0x800
_ADD, _ONLY_FOLDERS = 0x1, 0x8
_ON_FOLDERS, _ON_CHILDREN = 0x40000000, 0x08000000
_HERE, _FOLLOW = -100, 0x400
OVERFLOW = 0x4000

_READ_AT_ONCE = 1 << 16
_EVENT = struct.Struct("=IBBHQii")  # length, version, _, length of this, what, _, process
_RECORD = struct.Struct("=BBH8sIi")  # type, _, length, file system, length and type of a handle
_FOLDER_AND_NAME = 2
_LONGEST_HANDLE = 128
_HANDLE = struct.Struct(f"=Ii{_LONGEST_HANDLE}s")


class Event(NamedTuple):
    """mask: bits as inotify has them."""

    folder: bytes  # as `mark` named it
    name: str
    mask: int
    pid: int  # 0 where it is not known


class Fanotify:
    def __init__(self, descriptor: int, libc: ctypes.CDLL) -> None:
        self._descriptor = descriptor
        self._libc = libc

    @classmethod
    def open(cls) -> Self | None:
        """None where there is none for us."""
        libc = ctypes.CDLL(None, use_errno=True)
        flags = _CLOEXEC | _NONBLOCK | _REPORT_FOLDER_AND_NAME
        descriptor = libc.fanotify_init(flags, os.O_RDONLY | os.O_CLOEXEC)
        return cls(descriptor, libc) if descriptor >= 0 else None

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def mark(self, folder: Path, mask: int) -> bytes | None:
        """Tells of files in it from now on; the handle that it goes by, None where that cannot be.
        Again does no harm."""
        place = os.fsencode(folder)
        handle = ctypes.create_string_buffer(_HANDLE.pack(_LONGEST_HANDLE, 0, b""), _HANDLE.size)
        mount = ctypes.c_int()
        if self._libc.name_to_handle_at(_HERE, place, handle, ctypes.byref(mount), _FOLLOW) < 0:
            return None
        what = ctypes.c_uint64(mask | _ON_FOLDERS | _ON_CHILDREN)
        if self._libc.fanotify_mark(self._descriptor, _ADD | _ONLY_FOLDERS, what, _HERE, place) < 0:
            return None
        length, kind, found = _HANDLE.unpack(handle.raw)
        named: bytes = found[:length]
        return bytes((kind & 0xFF,)) + named

    def read(self) -> Iterator[Event]:
        """All there are just now."""
        while True:
            try:
                data = os.read(self._descriptor, _READ_AT_ONCE)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                length, _, _, first, mask, _, pid = _EVENT.unpack_from(data, at)
                yield _event(data[at + first : at + length], mask, pid)
                at += length


def _event(record: bytes, mask: int, pid: int) -> Event:
    if len(record) < _RECORD.size:
        return Event(b"", "", mask, pid)
    kind, _, length, _, handle, handle_kind = _RECORD.unpack_from(record)
    if kind != _FOLDER_AND_NAME:
        return Event(b"", "", mask, pid)
    end = _RECORD.size + handle
    name = record[end:length].partition(b"\0")[0]
    folder = bytes((handle_kind & 0xFF,)) + record[_RECORD.size : end]
    return Event(folder, os.fsdecode(name), mask, pid)
