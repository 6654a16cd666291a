"""Netlink attributes: length, type, value, padded to four bytes."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

from holdfast.characters import escaped

_HEADER = struct.Struct("=HH")
_NESTED = 0x8000
_TYPE_MASK = 0x3FFF


def attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return _HEADER.pack(length, kind) + value + b"\0" * (-length % 4)


def u32(kind: int, value: int) -> bytes:
    return attribute(kind, value.to_bytes(4, sys.byteorder))


def u16(kind: int, value: int) -> bytes:
    return attribute(kind, value.to_bytes(2, sys.byteorder))


def u8(kind: int, value: int) -> bytes:
    return attribute(kind, bytes((value,)))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(attributes))


def parse(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """The attributes from an offset to the end; of a repeated type the last one."""
    found: dict[int, bytes] = {}
    end = len(data)
    while offset + 4 <= end:
        length, kind = _HEADER.unpack_from(data, offset)
        if length < 4:
            break
        found[kind & _TYPE_MASK] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


def each(data: bytes) -> Iterator[tuple[int, bytes]]:
    """All of them, for where a type may come more than once."""
    offset = 0
    while offset + 4 <= len(data):
        length, kind = _HEADER.unpack_from(data, offset)
        if length < 4:
            break
        yield kind & _TYPE_MASK, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def to_int(value: bytes) -> int:
    return int.from_bytes(value, sys.byteorder)


def to_text(value: bytes) -> str:
    """What is not UTF-8 stays different: links may have any bytes for their names. Control
    characters are written the same way, since everybody may give a link an alias that is shown."""
    return escaped(value.rstrip(b"\0").decode(errors="backslashreplace"))
