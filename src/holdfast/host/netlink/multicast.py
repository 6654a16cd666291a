"""What the kernel tells everybody: a socket that only listens."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Iterable

from holdfast.errors import DriverError
from holdfast.host.netlink import socket_filter
from holdfast.host.netlink.socket_filter import Wanted

_SOL_NETLINK = 270
_ADD_MEMBERSHIP = 1
_SO_RCVBUFFORCE = 33
# A message takes up about 1 KiB of it whatever its size; room for ten thousand of them while
# nobody reads.
RECEIVE_BUFFER = 16 << 20
_RECEIVE = 1 << 16


class Lost(Exception):  # noqa: N818 - what is left is read on
    """The kernel had more to say than the buffer holds."""


class MulticastSocket:
    def __init__(self, protocol: int, groups: Iterable[int], buffer: int = RECEIVE_BUFFER) -> None:
        """groups: by number; those that this kernel does not have are left out."""
        self._sock = socket.socket(
            socket.AF_NETLINK,
            socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC,
            protocol,
        )
        try:
            self._enlarge(buffer)
            self._bind()
            for group in groups:
                self._join(group)
        except OSError as error:
            self._sock.close()
            raise DriverError(f"cannot listen to the kernel: {error.strerror}", error.errno or 0) \
                from error  # fmt: skip

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def filter(self, wanted: Wanted) -> None:
        """What is in the buffer already stays there."""
        socket_filter.attach(self._sock, wanted)

    def receive(self) -> bytes | None:
        """A datagram, None where there is none just now. Lost: read on, there may be more."""
        try:
            return self._sock.recv(_RECEIVE)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                raise Lost from error
            raise

    def _enlarge(self, buffer: int) -> None:
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer)
        except PermissionError:  # in a user namespace the system's limit holds
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)

    def _bind(self) -> None:
        """Not to the number of this process, which the kernel gives to the first that asks: that is
        for the socket that changes things, so that others can tell who did."""
        while True:
            try:
                self._sock.bind((1 << 31 | secrets.randbits(31), 0))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return

    def _join(self, group: int) -> None:
        try:
            self._sock.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT):
                raise
