"""A pass that is killed at a point of its own choosing.

Points lie after everything that outlasts the process, and before the first of it: each write to
the ledger, each datagram that asks the kernel for a change, each call that changes a file, a
setting or the host name. Nothing lasts that comes between two of them, so a kill before one is a
kill after the one before it.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from holdfast.host import rooted, sysctl
from holdfast.host.netlink.socket import NetlinkSocket, Transport, open_transport
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.safety.router_scene import Scene, Watched

_GET = 2  # the last two bits of an rtnetlink message type: new, delete, get, set
_LEDGER = (
    "write_claims", "put_note", "begin_generation", "append_events", "finish_generation",
)  # fmt: skip
_FILE_CALLS = ("link", "unlink", "rename", "mkdir", "chmod", "fchmod", "fsync", "write")


class Points:
    """Counts the points passed, and dies at the last one."""

    def __init__(self, last: int, tell: int) -> None:
        self._begun = False
        self._left = last
        self._tell = tell

    def pass_(self, where: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._tell, where.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if not self._begun:
                self._begun = True
                self.pass_("before anything")
            result = call(*arguments, **named)
            self.pass_(f"after {what}")
            return result

        return counted


class _Transport:
    def __init__(self, points: Points) -> None:
        self._points = points
        self._inner: Transport = open_transport()
        self.recv, self.close = self._inner.recv, self._inner.close

    def send(self, data: bytes, /) -> int:
        kinds = message_types(data)
        if all(kind & 3 == _GET for kind in kinds):
            return self._inner.send(data)
        what = f"sending {len(kinds)} of type {kinds[0]}"
        sent: int = self._points.after(what, self._inner.send)(data)
        return sent


def message_types(data: bytes) -> list[int]:
    kinds, offset = [], 0
    while offset < len(data):
        length, kind = struct.unpack_from("=IH", data, offset)
        kinds.append(kind)
        offset += (length + 3) & ~3
    return kinds


class _System:
    """The module `os` as a driver sees it, with points after what changes files."""

    def __init__(self, points: Points, module: ModuleType) -> None:
        self._points = points
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name == "open":
            return self._open
        return self._points.after(f"os.{name}", found) if name in _FILE_CALLS else found

    def _open(self, path: str, flags: int, *rest: Any, **named: Any) -> int:
        call: Callable[..., int] = os.open
        if flags & os.O_CREAT:
            call = self._points.after("os.open of a new file", call)
        return call(path, flags, *rest, **named)


def _watch(points: Points) -> Watched:
    """Only ever in a child that is about to die, so nothing is put back."""
    for module in (rooted, sysctl):
        module.os = _System(points, os)  # type: ignore[attr-defined]  # a stand-in for the module
    vars(socket)["sethostname"] = points.after("sethostname", socket.sethostname)

    def ledger(opened: Ledger) -> Ledger:
        for name in _LEDGER:
            setattr(opened, name, points.after(f"ledger.{name}", getattr(opened, name)))
        return opened

    return Watched(ledger, lambda: NetlinkSocket(lambda: _Transport(points)))


def killed_at(point: int, scene: Scene, resources: Mapping[str, str]) -> str:
    """Where a pass was killed that was to die at a point; empty where it ended before that."""
    told, tell = os.pipe()
    pid = in_child(lambda: _die(scene, resources, Points(point, tell)))
    os.close(tell)
    with os.fdopen(told) as stream:
        where = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (-signal.SIGKILL if where else 0), f"the child ended with {status}"
    return where


def _die(scene: Scene, resources: Mapping[str, str], points: Points) -> None:
    assert scene.apply(resources, _watch(points)).converged
