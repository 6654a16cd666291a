"""Other programs that act between two messages of ours."""

from __future__ import annotations

import struct
from collections.abc import Callable

from holdfast.host.netlink.socket import NetlinkSocket, Transport, open_transport


class Interrupted:
    """A transport that lets somebody act just before the first (or a later) message of a type is
    sent, and remembers the types of all that were."""

    def __init__(self, kind: int, act: Callable[[], object], after: int = 0) -> None:
        self.sent: list[int] = []
        self._kind, self._act, self._after = kind, act, after
        self._transport = open_transport()

    def send(self, data: bytes, /) -> int:
        offset = 0
        while offset < len(data):
            length, kind = struct.unpack_from("=IH", data, offset)
            if kind == self._kind:
                self._after -= 1
                if self._after == -1:
                    self._act()
            self.sent.append(kind)
            offset += (length + 3) & ~3
        return self._transport.send(data)

    def recv(self, size: int, /) -> bytes:
        return self._transport.recv(size)

    def close(self) -> None:
        self._transport.close()


def socket_with(transport: Transport) -> NetlinkSocket:
    return NetlinkSocket(lambda: transport)
