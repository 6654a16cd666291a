"""Hints that something changed outside: the kernel's links and addresses, and files.

A hint says nothing about what changed. It is a reason to look, and the look is the truth.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import DriverError

_GROUP_LINK, _GROUP_IPV4_ADDRESS, _GROUP_IPV6_ADDRESS = 0x1, 0x10, 0x100
_READ_AT_ONCE = 1 << 16

_CLOSE_WRITE, _MOVED_TO, _DELETE = 0x8, 0x80, 0x200
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_INOTIFY_EVENT = struct.Struct("=iIII")


class KernelHints:
    """Something happened to a link or an address."""

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._sock = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0
        )
        self._sock.bind((0, _GROUP_LINK | _GROUP_IPV4_ADDRESS | _GROUP_IPV6_ADDRESS))
        asyncio.get_running_loop().add_reader(self._sock, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    def _read(self) -> None:
        while True:
            try:
                self._sock.recv(_READ_AT_ONCE)
            except BlockingIOError:
                break
            except OSError as error:
                # Overrun: what was lost is seen by the look all the same.
                if error.errno != errno.ENOBUFS:
                    raise
        self._told()


class FileHints:
    """A file was written, put in place or removed in one of the folders watched."""

    def __init__(self, told: Callable[[str, str], None]) -> None:
        """told: the folder, and the name inside it; both empty where events were lost."""
        self._told = told
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._call(
            "cannot watch files", self._libc.inotify_init1, _NONBLOCK_CLOEXEC
        )
        self._folders: dict[int, str] = {}
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def watch(self, folder: Path) -> bool:
        """Again and again does no harm. True where it was not watched until now."""
        mask = _CLOSE_WRITE | _MOVED_TO | _DELETE
        number = self._call(
            f"cannot watch {folder}",
            self._libc.inotify_add_watch,
            self._descriptor,
            os.fsencode(folder),
            mask,
        )
        before = self._folders.get(number)
        self._folders[number] = str(folder)
        return before is None

    def _call(self, failed: str, function: Callable[..., int], *arguments: object) -> int:
        answer = function(*arguments)
        if answer < 0:
            code = ctypes.get_errno()
            raise DriverError(f"{failed}: {os.strerror(code)}", code)
        return answer

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_AT_ONCE)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            number, mask, _, length = _INOTIFY_EVENT.unpack_from(data, offset)
            offset += _INOTIFY_EVENT.size
            name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
            offset += length
            if mask & _OVERFLOW:
                self._told("", "")
            elif mask & _IGNORED:
                # The folder is gone. Its number is not given to another one.
                self._folders.pop(number, None)
            elif number in self._folders:
                self._told(self._folders[number], name)
