"""Kernel settings and the host's name."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from holdfast.agent.watch.hint import Hint
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.hostname import HOSTNAME, HOSTNAME_KEY
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.host.sysctl import setting_path

# The kernel tells nobody of most settings: the declared ones are read this often. Of the few that
# it does tell of (forwarding, rp_filter, proxy_arp), netlink has a hint that hurries it.
# 200 of them take 0.2 ms.
POLL_S = 0.5
_LONGEST = 4096
_PROC = Path("/proc/sys")
_HOSTNAME = _PROC / "kernel/hostname"


class SysctlWatch:
    """Values are compared with those read before, so that what we set ourselves is told of once."""

    def __init__(self, told: Callable[[Hint], None], every: float = POLL_S) -> None:
        self._told = told
        self._every = every
        # Kept open: to open one costs four times as much as to read it. None: it is not there.
        self._open: dict[str, int | None] = {}
        self._values: dict[str, bytes] = {}
        self._loop = asyncio.get_running_loop()
        self._hurried = False
        self._next = self._loop.call_later(every, self._again)

    def close(self) -> None:
        self._next.cancel()
        for name in list(self._open):
            self._forget(name)

    def follow(self, keys: Iterable[Key]) -> None:
        """What is new is only read: whoever follows it is about to look, or just did."""
        names = {key.name for key in keys if key.kind == SYSCTL.name}
        for name in self._open.keys() - names:
            self._forget(name)
        for name in names - self._open.keys():
            self._open[name] = None
            self._values[name] = self._read(name)

    def wrote(self, name: str, value: str) -> None:
        """We set it ourselves. Not read again for that: somebody may have changed it since, to what
        it was before."""
        if name in self._values:
            self._values[name] = f"{value}\n".encode(errors="surrogateescape")

    def hurry(self) -> None:
        """One may have changed just now. Many such hints in a row lead to one reading."""
        if not self._hurried and self._open:
            self._hurried = True
            self._loop.call_soon(self.look)

    def look(self) -> None:
        self._hurried = False
        for name, before in self._values.items():
            now = self._read(name)
            if now != before:
                self._values[name] = now
                self._told(Hint(SYSCTL.name, Key(SYSCTL.name, name), gone=not now))

    def _again(self) -> None:
        self._next = self._loop.call_later(self._every, self._again)
        self.look()

    def _read(self, name: str) -> bytes:
        """Empty where it is not there or cannot be read, which is for the pass to find out."""
        descriptor = self._open[name]
        if descriptor is not None:
            try:
                return os.pread(descriptor, _LONGEST, 0)
            except OSError:
                # Its link is gone, and another one of the same name may be there.
                os.close(descriptor)
                self._open[name] = None
        try:
            place = _PROC / setting_path(name)
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError):
            return b""
        self._open[name] = descriptor
        try:
            return os.pread(descriptor, _LONGEST, 0)
        except OSError:
            return b""

    def _forget(self, name: str) -> None:
        descriptor = self._open.pop(name)
        self._values.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)


class HostnameWatch:
    """The running name. That of the next boot is a file."""

    def __init__(self, told: Callable[[Hint], None]) -> None:
        self._told = told
        self._file = os.open(_HOSTNAME, os.O_RDONLY | os.O_CLOEXEC)
        # The file can always be read, so that its change is not what the loop would wait for.
        self._changes = select.epoll()
        self._changes.register(self._file, select.EPOLLPRI)
        self._name = self._read()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._changes, self._changed)

    def close(self) -> None:
        self._loop.remove_reader(self._changes)
        self._changes.close()
        os.close(self._file)

    def _changed(self) -> None:
        with suppress(InterruptedError):
            self._changes.poll(0)
        name = self._read()
        # The kernel tells of a change in any UTS namespace.
        if name != self._name:
            self._name = name
            self._told(Hint(HOSTNAME.name, HOSTNAME_KEY))

    def _read(self) -> bytes:
        return os.pread(self._file, _LONGEST, 0)
