"""Failures put in the way of the netlink socket."""

from __future__ import annotations

import errno
import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.host.netlink.socket import NetlinkSocket, open_transport

_HEADER = struct.Struct("=IHHII")
_ERROR, _DONE = 2, 3
_MULTI, _INTERRUPTED = 0x2, 0x10
_DUMP = 0x300
FOREVER = 1 << 30


class Message(NamedTuple):
    kind: int
    flags: int
    sequence: int
    body: bytes

    @property
    def is_dump(self) -> bool:
        return self.kind & 3 == 2 and self.flags & _DUMP == _DUMP

    @property
    def is_write(self) -> bool:
        return self.kind & 3 != 2


Wanted = Callable[[Message], bool]


def dump(kind: int, family: int | None = None) -> Wanted:
    """Dumps of a type, of one family or of any."""
    return lambda message: (
        message.is_dump and message.kind == kind and family in (None, message.body[0])
    )


def get(kind: int) -> Wanted:
    return lambda message: message.kind == kind and not message.is_dump


def write(kind: int = 0) -> Wanted:
    """Requests that change something: of a type, or all."""
    return lambda message: message.is_write and kind in (0, message.kind)


class Fault:
    """What becomes of a request and its answer. As it stands: nothing out of the ordinary."""

    words = ""  # by which the fault is told

    def instead(self, _asked: list[Message]) -> list[bytes] | None:
        """An answer without the kernel having been asked."""
        return None

    def receive(self, receive: Callable[[], bytes]) -> bytes:
        return receive()


class Lost(Fault):
    words = "ENOBUFS"

    def receive(self, receive: Callable[[], bytes]) -> bytes:
        receive()
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))


class LostAtOnce(Lost):
    """What the kernel said is still there to be read."""

    words = "Input/output error"

    def receive(self, _receive: Callable[[], bytes]) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class Interrupted(Fault):
    words = "the kernel's tables changed while they were read"

    def receive(self, receive: Callable[[], bytes]) -> bytes:
        data = bytearray(receive())
        for offset in _offsets(data):
            (flags,) = struct.unpack_from("=H", data, offset + 6)
            struct.pack_into("=H", data, offset + 6, flags | _INTERRUPTED)
        return bytes(data)


class Cut(Fault):
    words = "cut short"

    def __init__(self, bytes_lost: int = 6) -> None:
        self._bytes_lost = bytes_lost

    def receive(self, receive: Callable[[], bytes]) -> bytes:
        return receive()[: -self._bytes_lost]


class Denied(Fault):
    words = "Operation not permitted (EPERM)"

    def instead(self, asked: list[Message]) -> list[bytes]:
        return [
            _HEADER.pack(36, _ERROR, 0, one.sequence, 0)
            + struct.pack("=i", -errno.EPERM)
            + _HEADER.pack(16 + len(one.body), one.kind, one.flags, one.sequence, 0)
            for one in asked
        ]


class DoneWithAnError(Fault):
    words = "Cannot allocate memory (ENOMEM)"

    def instead(self, asked: list[Message]) -> list[bytes]:
        done = struct.pack("=i", -errno.ENOMEM)
        return [_HEADER.pack(20, _DONE, _MULTI, one.sequence, 0) + done for one in asked]


class Meanwhile(Fault):
    """Somebody acts just before the kernel is asked."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def instead(self, _asked: list[Message]) -> None:
        self._act()


@dataclass(slots=True)
class Disturbance:
    """A fault that befalls requests of a sort, a number of times, after some have gone well."""

    wanted: Wanted
    fault: Fault
    times: int = 1
    after: int = 0
    befallen: int = field(default=0, init=False)

    def take(self, asked: list[Message]) -> Fault:
        if not any(map(self.wanted, asked)):
            return Fault()
        if self.after:
            self.after -= 1
            return Fault()
        if self.befallen == self.times:
            return Fault()
        self.befallen += 1
        return self.fault

    def socket(self) -> NetlinkSocket:
        return NetlinkSocket(lambda: _Transport(self))


class _Transport:
    def __init__(self, disturbance: Disturbance) -> None:
        self._disturbance = disturbance
        self._inner = open_transport()
        self._fault = Fault()
        self._answers: deque[bytes] = deque()

    def send(self, data: bytes, /) -> int:
        asked = list(_messages(data))
        self._fault = self._disturbance.take(asked)
        answers = self._fault.instead(asked)
        if answers is None:
            return self._inner.send(data)
        self._answers.extend(answers)
        return len(data)

    def recv(self, size: int, /) -> bytes:
        if self._answers:
            return self._answers.popleft()
        return self._fault.receive(lambda: self._inner.recv(size))

    def close(self) -> None:
        self._inner.close()


def _offsets(data: bytes | bytearray) -> Iterator[int]:
    offset = 0
    while offset < len(data):
        yield offset
        (length,) = struct.unpack_from("=I", data, offset)
        offset += (length + 3) & ~3


def _messages(data: bytes) -> Iterator[Message]:
    for offset in _offsets(data):
        length, kind, flags, sequence, _ = _HEADER.unpack_from(data, offset)
        yield Message(kind, flags, sequence, data[offset + 16 : offset + length])
