"""Generic netlink: families of messages that the kernel numbers as it loads them."""

from __future__ import annotations

import errno
import struct
from functools import partial

from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request, open_transport

_GENERIC = 16
_CONTROL = 16  # the one family whose number is fixed
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_HEADER = struct.Struct("=BBH")
HEADER_SIZE = _HEADER.size


def connect() -> NetlinkSocket:
    return NetlinkSocket(partial(open_transport, _GENERIC))


def header(command: int, version: int = 1) -> bytes:
    return _HEADER.pack(command, version, 0)


def find_family(sock: NetlinkSocket, name: str) -> int | None:
    """The number of a family; None where the kernel has none of that name, nor a module for it."""
    body = header(_GET_FAMILY) + attributes.text(_FAMILY_NAME, name)
    answer = sock.get(Request(_CONTROL, 0, body))
    if isinstance(answer, NetlinkError):
        if answer.errno == errno.ENOENT:
            return None
        raise DriverError(f"cannot ask for generic netlink family {name}: {answer}", answer.errno)
    return attributes.to_int(attributes.parse(answer, HEADER_SIZE)[_FAMILY_ID])
