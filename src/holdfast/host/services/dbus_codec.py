"""Values on the D-Bus wire: the part of its types that systemd's interfaces use, little-endian."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

_FIXED = {
    "y": ("<B", 1), "n": ("<h", 2), "q": ("<H", 2), "i": ("<i", 4), "u": ("<I", 4),
    "x": ("<q", 8), "t": ("<Q", 8), "d": ("<d", 8), "b": ("<I", 4), "h": ("<I", 4),
}  # fmt: skip
_ALIGNMENT = {"s": 4, "o": 4, "g": 1, "v": 1, "a": 4, "(": 8, "{": 8}
_LONGEST_ARRAY = 1 << 26


def types(signature: str) -> Iterator[str]:
    """The complete types that a signature is made of, one after the other."""
    at = 0
    while at < len(signature):
        end = _end(signature, at)
        yield signature[at:end]
        at = end


def _end(signature: str, at: int) -> int:
    if signature[at] == "a":
        return _end(signature, at + 1)
    if signature[at] not in "({":
        return at + 1
    depth = 0
    for index in range(at, len(signature)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(signature[index], 0)
        if depth == 0:
            return index + 1
    raise ValueError(f"unbalanced signature {signature!r}")


class Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def pad(self, to: int) -> None:
        self.data += bytes(-len(self.data) % to)

    def write(self, kind: str, value: Any) -> None:
        first = kind[0]
        if first in _FIXED:
            form, width = _FIXED[first]
            self.pad(width)
            self.data += struct.pack(form, value)
        elif first in "so":
            encoded = value.encode()
            if b"\0" in encoded:
                raise ValueError(f"{value!r} cannot be sent: it has a NUL in it")
            self.write("u", len(encoded))
            self.data += encoded + b"\0"
        elif first == "g":
            self.data += bytes([len(value)]) + value.encode() + b"\0"
        elif first == "v":
            inner, inside = value
            self.write("g", inner)
            self.write(inner, inside)
        elif first == "a":
            self._array(kind[1:], value)
        else:
            self.pad(8)
            for inner, inside in zip(types(kind[1:-1]), value, strict=True):
                self.write(inner, inside)

    def _array(self, kind: str, values: Sequence[Any]) -> None:
        self.write("u", 0)
        place = len(self.data) - 4
        self.pad(_alignment(kind))
        begin = len(self.data)
        for value in values:
            self.write(kind, value)
        struct.pack_into("<I", self.data, place, len(self.data) - begin)


class Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def pad(self, to: int) -> None:
        self._at += -self._at % to

    def read(self, kind: str) -> Any:
        first = kind[0]
        if first in _FIXED:
            form, width = _FIXED[first]
            self.pad(width)
            (value,) = struct.unpack_from(form, self._data, self._at)
            self._at += width
            return bool(value) if first == "b" else value
        if first in "so":
            return self._text(self.read("u"))
        if first == "g":
            return self._text(self.read("y"))
        if first == "v":
            return self.read(self.read("g"))
        if first == "a":
            return self._array(kind[1:])
        self.pad(8)
        return tuple(self.read(inner) for inner in types(kind[1:-1]))

    def _text(self, length: int) -> str:
        found = self._data[self._at : self._at + length]
        if len(found) != length:
            raise ValueError("a text is longer than the message it is in")
        self._at += length + 1
        return found.decode(errors="replace")

    def _array(self, kind: str) -> list[Any]:
        length = self.read("u")
        if length > _LONGEST_ARRAY:
            raise ValueError("an array is longer than D-Bus allows")
        self.pad(_alignment(kind))
        end = self._at + length
        found = []
        while self._at < end:
            found.append(self.read(kind))
        return found


def _alignment(kind: str) -> int:
    first = kind[0]
    return _FIXED[first][1] if first in _FIXED else _ALIGNMENT[first]
