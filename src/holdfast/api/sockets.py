"""The sockets: where they lie, and who may open them."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.paths import Paths

FOLDER = "/run/holdfast"
SERVICE_MANAGER = 1
_NAMES = ("Router", "Dynamic", "Plugins", "Actions", "Events")
_CREDENTIALS = struct.Struct("3i")  # ucred of unix(7): process, user, group


@dataclass(frozen=True, slots=True)
class Socket:
    name: str
    groups: tuple[str, ...]  # the first of them that exists may open it; none: its maker alone
    read_only: bool  # for callers who show no token
    services: frozenset[str]  # that answer there


_ROUTER = frozenset(f"holdfast.v1.{one}" for one in _NAMES)
_ROUTES = frozenset({"novaroute.v1.RouteControl", "holdfast.v1.Routes"})
# For programs that own routes, and are trusted with nothing else of the router. What changes
# something shows whose it is by a token.
ROUTES = Socket("routes.sock", ("holdfast-routes", "holdfast"), read_only=True, services=_ROUTES)
SOCKETS = (
    Socket("holdfast.sock", ("holdfast",), read_only=False, services=_ROUTER),
    # What can be read there includes the firewall and the peers: it is not for everybody.
    Socket("holdfast-ro.sock", ("holdfast-ro", "holdfast"), read_only=True, services=_ROUTER),
    ROUTES,
)
EVERYTHING = _ROUTER | _ROUTES  # what a source's own socket answers


def services(name: str) -> frozenset[str]:
    """That answer on the socket of this name."""
    return next((each.services for each in SOCKETS if each.name == name), EVERYTHING)


def make_folder(paths: Paths) -> None:
    """One that others can reach the sockets through, whatever the umask of whoever starts it."""
    place = paths.under(FOLDER)
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(stat.S_IMODE(place.stat().st_mode) | 0o011)


@contextmanager
def folder(paths: Paths) -> Iterator[str]:
    """A short name for the sockets' folder while it is open.

    The kernel takes at most 107 bytes for the name of a socket, and `--root` may be longer.
    """
    descriptor = os.open(paths.under(FOLDER), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def answers(place: str) -> bool:
    """Whether somebody listens there. PermissionError where that may not be known."""
    return listener(place) is not None


def listener(place: str) -> int | None:
    """The process that listens there, 0 where the kernel does not say which; None: nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(place)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except (BlockingIOError, TimeoutError):
            return 0  # its backlog is full: it is there, and busy
        return _peer(probe)[0]


def user(connection: socket.socket) -> int:
    """Who is at the other end."""
    return _peer(connection)[1]


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, group = _CREDENTIALS.unpack(said)
    return process, user, group


def listen(place: str, to: Socket) -> socket.socket:
    """Makes the socket there, for its group."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    mask = os.umask(0o177)
    try:
        found.bind(place)
        hand_over(place, to)
        found.listen()
        found.setblocking(False)
    except BaseException:
        found.close()
        raise
    finally:
        os.umask(mask)
    return found


def refuse_held(paths: Paths) -> None:
    """Where the service manager holds them for its service, callers would wait for that one. A
    listener's credentials are those of whoever called listen(2), whoever accepts there now."""
    if os.getpid() == SERVICE_MANAGER or not paths.under(FOLDER).is_dir():
        return
    with folder(paths) as short:
        for each in SOCKETS:
            if listener(f"{short}/{each.name}") == SERVICE_MANAGER:
                raise Refused(
                    f"{paths.under(FOLDER) / each.name} is held by systemd for holdfast.service:"
                    " start that (systemctl start holdfast), or end it with its sockets first"
                    " (systemctl stop holdfast holdfast.socket holdfast-ro.socket)"
                )


def make_way(place: str, shown: Path) -> None:
    """A socket that a daemon left behind when it was killed is removed; any other is not."""
    if answers(place):
        raise Refused(f"{shown}: another process listens there; end it first")
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(Path(place).lstat().st_mode):
            raise Refused(f"{shown} is in the way, and no socket: remove it first")
        Path(place).unlink()


def hand_over(place: str, to: Socket) -> None:
    """From its maker alone to its group: nobody else has had a moment in between."""
    import grp

    for name in to.groups:
        try:
            group = grp.getgrnam(name).gr_gid
        except KeyError:
            continue
        os.chown(place, -1, group)
        break
    Path(place).chmod(0o660 if to.groups else 0o600)
