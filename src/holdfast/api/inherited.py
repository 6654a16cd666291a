"""Listening sockets that the service manager opened and handed to this process (LISTEN_FDS)."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import PurePosixPath

from holdfast.api.sockets import SOCKETS
from holdfast.dataclass import dataclass, field

_FIRST = 3  # sd_listen_fds(3): they come in a row after stderr
_NAMES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


@dataclass(frozen=True, slots=True)
class Inherited:
    sockets: Mapping[str, socket.socket] = field(default_factory=dict)  # by the name of its file
    problem: str = ""  # why none of what was handed over is served

    def __bool__(self) -> bool:
        return bool(self.sockets or self.problem)


def take(environment: MutableMapping[str, str], first: int = _FIRST) -> Inherited:
    """Once, before anything is forked: no child has the descriptors, or is told of them."""
    pid, count, names = (environment.pop(name, "") for name in _NAMES)
    if pid != str(os.getpid()):
        return Inherited()
    if not count.isdecimal() or len(count) > 4:
        return Inherited(problem=f"LISTEN_FDS={count} is no number of descriptors")
    descriptors = range(first, first + int(count))
    for descriptor in descriptors:
        with suppress(OSError):  # one that is not open is told of below
            os.set_inheritable(descriptor, False)
    named = names.split(":") if names else []
    if len(named) != len(descriptors):
        return Inherited(problem=f"{count} descriptors with the names {names!r} were handed over")
    found: dict[str, socket.socket] = {}
    for descriptor, name in zip(descriptors, named, strict=True):
        problem = f"there are two of {name}" if name in found else _problem(descriptor, name)
        if problem:
            for each in found.values():
                each.close()
            return Inherited(problem=f"descriptor {descriptor}, handed over as {name!r}: {problem}")
        found[name] = socket.socket(fileno=descriptor)
        found[name].setblocking(False)
    return Inherited(found)


def _problem(descriptor: int, name: str) -> str:
    if name not in {each.name for each in SOCKETS}:
        return f"there is no such socket; FileDescriptorName= is one of {_known()}"
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return "it is no socket"
        # Looked at through a copy: closing that one leaves the descriptor itself open.
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.family != socket.AF_UNIX or copy.type != socket.SOCK_STREAM:
                return "it is no stream socket of the Unix family"
            if not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return "nobody listens on it"
            place = os.fsdecode(copy.getsockname())
    except OSError as error:
        return str(error)
    # The name decides what may be asked there, the file who may ask: a mix-up would let those
    # who may look change things.
    if PurePosixPath(place).name != name:
        return f"it listens on {place!r}"
    return ""


def _known() -> str:
    return ", ".join(each.name for each in SOCKETS)
