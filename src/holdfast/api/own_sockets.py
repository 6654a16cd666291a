"""Sockets that this process makes: the two for everybody's calls, and those of single sources."""

from __future__ import annotations

import grp
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from holdfast.api import sockets
from holdfast.api.callers import OwnSocket
from holdfast.api.sockets import FOLDER, Socket
from holdfast.errors import Refused
from holdfast.paths import Paths

Parent = Callable[[Path, str], AbstractContextManager[tuple[int, str]]]


def name_of(source: str) -> str:
    """Of the socket of Owner/ci: owner-ci.sock."""
    kind, _, name = source.partition("/")
    return f"{kind.lower()}-{name}.sock"


def place_of(source: str) -> str:
    return f"{FOLDER}/{name_of(source)}"


def made(folder: str, shown: Path, each: Socket, held: ExitStack) -> socket.socket:
    """Where the service manager holds none. held: removes it at the end."""
    place = f"{folder}/{each.name}"
    sockets.make_way(place, shown / each.name)
    found = sockets.listen(place, each)
    held.callback(Path(place).unlink, missing_ok=True)
    held.callback(found.close)
    return found


def opened(paths: Paths, own: OwnSocket, parent: Parent, held: ExitStack) -> socket.socket:
    """parent: opens the folder of a path below a root, and follows no link. Raises Refused where
    that folder is not in our hands alone: whoever can write it could have another file handed to
    the group, in the place of the socket."""
    if own.group:
        try:
            grp.getgrnam(own.group)
        except KeyError:
            raise Refused(f"there is no group {own.group}: addgroup --system {own.group}") from None
    try:
        folder, name = held.enter_context(parent(paths.root, own.path))
        state, shown = os.fstat(folder), paths.under(own.path).parent
        if state.st_uid != os.geteuid() or state.st_mode & 0o022:
            raise Refused(f"others may write the folder {shown}: chown root {shown}; chmod go-w")
        groups = (own.group,) if own.group else ()
        to = Socket(name, groups, read_only=False, services=sockets.EVERYTHING)
        return made(f"/proc/self/fd/{folder}", shown, to, held)
    except BaseException:
        held.close()
        raise
