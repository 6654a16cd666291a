"""Rules as the kernel tells them, less what nobody declared: handles, and what is counted.

They come by the 10 000, most of them in runs of one layout. Such a run is blanked as a whole, word
by word over all its messages; what is left of a message is the same whatever run it came in.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.host.netlink.messages import HEADER, Run

# Attributes of a rule, from linux/netfilter/nf_tables.h.
_TABLE, _CHAIN, _HANDLE, _EXPRESSIONS, _POSITION, _USERDATA = 1, 2, 3, 4, 6, 7
_DECLARED = {1, 2, 4, 5, 7}
_FORMS = {
    (_TABLE, _CHAIN, _HANDLE, *position, _EXPRESSIONS, *comment)
    for position in ((), (_POSITION,))
    for comment in ((), (_USERDATA,))
}
# What changes by itself in the data of expressions: all that a counter counts and all that `last`
# tells, and how much of a quota is used up. Only a counter always tells as much of it.
_STATE = {b"counter": {1, 2}, b"last": {1, 2}, b"quota": {4}}
_BLANKED = b"counter"
# Which attribute of an expression's data is the name of a set that may be of this rule alone.
_NAMES_A_SET = {b"lookup": 1, b"objref": 4}
_AS_THEY_ARE: Mapping[bytes, bytes] = {}
_GENERIC = 4  # after the header: family, version, and the low bits of the generation
# Sequence number, port, and what _GENERIC covers, in words.
_OF_THE_ANSWER = (2, 3, 4)
_NLA = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF


class _Layout(NamedTuple):
    """Of messages of one length, in words of four bytes."""

    length: int
    blanks: list[int]  # handles, numbers that count, what is of this answer alone
    # Where attributes begin, and the names of expressions: place and content of each word.
    shape: list[tuple[int, bytes]]


def declared(runs: Iterable[Run]) -> Iterator[bytes]:
    """In the order packets meet them."""
    layout: _Layout | None = None
    for run in runs:
        words = array("I", run.data[run.start : run.end])
        if layout is None or not _fits(layout, run, words):
            layout = _layout(run)
            if layout is not None and not _fits(layout, run, words):
                layout = None
        if layout is not None:
            zeros = array("I", bytes(4 * run.count))
            for at in layout.blanks:
                words[at :: run.stride // 4] = zeros
            yield words.tobytes()
        elif run.count > 1:
            yield from declared(_alone(run, body) for body in run.bodies())
        else:
            (body,) = run.bodies()
            yield from pieces(body)


def _alone(run: Run, body: bytes) -> Run:
    """One message of a run, as a run of its own."""
    data = run.header + body + bytes(-len(body) % 4)
    return Run(data, 0, run.length, run.kind, run.flags, 1)


def _fits(layout: _Layout, run: Run, words: array[int]) -> bool:
    """Whether all messages are of that layout."""
    stride, count = run.stride // 4, run.count
    return run.length == layout.length and all(
        words[at::stride].tobytes() == word * count for at, word in layout.shape
    )


def _layout(run: Run) -> _Layout | None:
    """Of the first message; None where it has another form than rules of today have, or tells of
    something that is not always there."""
    message = run.data[run.start : run.start + run.length]
    attributes = list(_walk(message, HEADER.size + _GENERIC, len(message)))
    if tuple(kind for kind, _, _ in attributes) not in _FORMS:
        return None
    blanks: list[int] = list(_OF_THE_ANSWER)
    shape: list[int] = []
    for kind, start, end in attributes:
        shape.append(start // 4)
        if kind in (_HANDLE, _POSITION):
            blanks += range(start // 4 + 1, end // 4)
        elif kind == _EXPRESSIONS:
            for _, first, last in _walk(message, start + 4, end):
                if not _expression(message, first, last, blanks, shape):
                    return None
    return _Layout(run.length, blanks, [(at, message[4 * at : 4 * at + 4]) for at in shape])


def _expression(message: bytes, start: int, end: int, blanks: list[int], shape: list[int]) -> bool:
    """Adds the words of one expression; whether what changes in it can be blanked."""
    (_, first, named), *data = _walk(message, start + 4, end)
    name = message[first + 4 : named - 1]
    shape += range(start // 4, (named + 3) // 4)
    if name not in _STATE:
        shape += (at // 4 for _, at, _ in data)
        return True
    for _, nest, last in data:
        shape.append(nest // 4)
        for kind, at, after in _walk(message, nest + 4, last):
            shape.append(at // 4)
            if kind in _STATE[name]:
                blanks += range(at // 4 + 1, (after + 3) // 4)
    return name == _BLANKED


def chain(body: bytes) -> bytes:
    """The name of the chain that a rule is in."""
    return next(
        body[a + 4 : b] for kind, a, b in _walk(body, _GENERIC, len(body)) if kind == _CHAIN
    )


def pieces(body: bytes, names: Mapping[bytes, bytes] = _AS_THEY_ARE) -> Iterator[bytes]:
    """A rule of any form. names: what stands for the name of a set."""
    for kind, start, end in _walk(body, _GENERIC, len(body)):
        if kind == _EXPRESSIONS:
            for _, first, last in _walk(body, start + 4, end):
                yield from _lasting(body[first + 4 : last], names)
        elif kind in _DECLARED:
            yield body[start:end]


def _lasting(expression: bytes, names: Mapping[bytes, bytes]) -> Iterator[bytes]:
    name, *data = (expression[a:b] for _, a, b in _walk(expression, 0, len(expression)))
    yield name
    state = _STATE.get(name[4:-1], set())
    named = _NAMES_A_SET.get(name[4:-1])
    for nest in data:
        for kind, start, end in _walk(nest, 4, len(nest)):
            if kind == named:
                yield names.get(nest[start + 4 : end], nest[start:end])
            elif kind not in state:
                yield nest[start:end]


def _walk(data: bytes, offset: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of every attribute, header included."""
    while offset + 4 <= end:
        length, kind = _NLA.unpack_from(data, offset)
        if length < 4:
            return
        yield kind & _TYPE_MASK, offset, offset + length
        offset += (length + 3) & ~3
