"""What a daemon of FRR logs, as records, over the descriptor of `terminal monitor`.

Each datagram is one record: a header in the machine's byte order, the places of the arguments in
the text, and the text. Its fields are the same in 8.4 and 10.3, and so are the ids of messages.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from holdfast.dataclass import dataclass

# Seconds, nanoseconds, length of header and arguments, process, thread, records lost before this
# one, priority, flags, length of the text and of the id in front of it, id, error code, arguments.
_HEADER = struct.Struct("=QIIqqIIIII12sII")
_PLACE = struct.Struct("=II")
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Record:
    daemon: str
    time: float  # seconds since 1970
    id: str  # "N9HHH-F8H1M": of the message, whatever its words
    text: str
    arguments: tuple[str, ...]
    lost: int  # records before this one that did not fit into the socket


class Monitor:
    def __init__(self, daemon: str, descriptor: int) -> None:
        self._daemon = daemon
        self._sock = socket.socket(fileno=descriptor)
        self._sock.setblocking(False)
        os.set_inheritable(self._sock.fileno(), False)
        self.ended = False

    def fileno(self) -> int:
        return self._sock.fileno()

    def records(self) -> Iterator[Record]:
        """Those that are there; `ended` once the daemon is gone."""
        while not self.ended:
            try:
                datagram = self._sock.recv(_MOST)
            except BlockingIOError:
                return
            except OSError:
                datagram = b""
            if not datagram:
                self.ended = True
                return
            record = parse(self._daemon, datagram)
            if record is not None:
                yield record

    def close(self) -> None:
        self._sock.close()


def parse(daemon: str, datagram: bytes) -> Record | None:
    """None where it is not in the form that is known."""
    if len(datagram) < _HEADER.size:
        return None
    head = _HEADER.unpack_from(datagram)
    seconds, nanoseconds, start, _, _, lost, _, _, size, prefix, name, _, count = head
    if start + size > len(datagram) or _HEADER.size + count * _PLACE.size > start:
        return None
    text = datagram[start : start + size]
    places = _PLACE.iter_unpack(datagram[_HEADER.size : _HEADER.size + count * _PLACE.size])
    arguments = tuple(text[begin:end].decode(errors="replace") for begin, end in places)
    return Record(
        daemon,
        seconds + nanoseconds / 1e9,
        name.partition(b"\0")[0].decode(errors="replace"),
        text[prefix:].decode(errors="replace"),
        arguments,
        lost,
    )
