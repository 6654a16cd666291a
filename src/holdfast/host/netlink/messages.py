"""Netlink messages in bulk, kept as the datagrams that carry them.

A hundred thousand routes of one gateway are messages of one length. Such a run is recognised by
its headers, all looked at together, and can be compared and made as one piece of memory; objects
are made for its messages only where somebody asks for them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

from holdfast.dataclass import dataclass

HEADER = struct.Struct("=IHHII")  # length, kind, flags, sequence number, port
# What messages of a run have in common of their headers.
_COMMON = struct.Struct("=IHH")
_FLAGS, _SEQUENCE = 6, 8


@dataclass(frozen=True, slots=True)
class Run:
    """Messages of one length, kind and flags, one after the other."""

    data: bytes
    start: int
    length: int  # of each, header included
    kind: int
    flags: int
    count: int

    @property
    def stride(self) -> int:
        return (self.length + 3) & ~3

    @property
    def end(self) -> int:
        return self.start + self.stride * self.count

    @property
    def header(self) -> bytes:
        """Of the first; the others' may differ in sequence number and port."""
        return self.data[self.start : self.start + HEADER.size]

    def bodies(self) -> list[bytes]:
        data, stride = self.data, self.stride
        first, body = self.start + HEADER.size, self.length - HEADER.size
        return [data[at : at + body] for at in range(first, first + stride * self.count, stride)]


def runs(data: bytes) -> Iterator[Run]:
    """All messages of a datagram. struct.error: it was cut short."""
    if not data:
        raise struct.error("empty datagram")
    uniform = _run_to_the_end(data)
    if uniform is not None:
        yield uniform
        return
    offset, end = 0, len(data)
    while offset < end:
        start, common = offset, data[offset : offset + _COMMON.size]
        length, kind, flags = _COMMON.unpack(common)
        if length < HEADER.size:
            raise struct.error("message cut short")
        stride = (length + 3) & ~3
        while data[offset : offset + _COMMON.size] == common:
            offset += stride
        if offset - stride + length > end:  # only the last of a datagram can be cut
            raise struct.error("message cut short")
        yield Run(data, start, length, kind, flags, (offset - start) // stride)


def _run_to_the_end(data: bytes) -> Run | None:
    """The whole datagram, where all its headers say the same."""
    length, kind, flags = _COMMON.unpack_from(data)
    stride = (length + 3) & ~3
    count, rest = divmod(len(data), stride) if length >= HEADER.size else (0, 0)
    if rest or not count:
        return None
    if any(data[at::stride] != data[at : at + 1] * count for at in range(_COMMON.size)):
        return None
    return Run(data, 0, length, kind, flags, count)


@dataclass(frozen=True, slots=True)
class Dump:
    """A whole answer, not interrupted."""

    runs: list[Run]

    def __len__(self) -> int:
        return sum(run.count for run in self.runs)

    def bodies(self) -> list[bytes]:
        """What follows the header, of every message."""
        found: list[bytes] = []
        for run in self.runs:
            found += run.bodies()
        return found


@dataclass(frozen=True, slots=True)
class Block:
    """Requests of one length, ready to be sent but for their sequence numbers."""

    data: bytearray
    stride: int

    @property
    def count(self) -> int:
        return len(self.data) // self.stride

    def number(self, first: int, last_flags: int) -> bytes:
        """The datagram, its messages numbered from `first`, with more flags on the last."""
        sequences = array("I", range(first, first + self.count)).tobytes()
        for at in range(4):
            self.data[_SEQUENCE + at :: self.stride] = sequences[at::4]
        last = len(self.data) - self.stride + _FLAGS
        (flags,) = struct.unpack_from("=H", self.data, last)
        struct.pack_into("=H", self.data, last, flags | last_flags)
        return bytes(self.data)
