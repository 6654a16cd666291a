"""Many routes, one per line, at a speed that suits full tables.

Lines that say the same after their prefix share a template, and the prefixes of a template are
packed and checked all together by C code: under a microsecond per route. Whatever does not fit
that path is read line by line, which also finds every error and its column.
"""

from __future__ import annotations

import operator
import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import repeat
from typing import NamedTuple

from holdfast.engine.bulk_keys import Keys
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.route import RouteTemplate
from holdfast.resources.resource import Identity
from holdfast.resources.routes.route_line import (
    Defaults,
    LineError,
    parse_line,
    parse_template,
    words_of,
)

Groups = dict[RouteTemplate, list[bytes]]

_FEW = 8  # routes that lines are searched for, each by itself
_CHUNK = 1 << 22  # characters split into lines at a time, to bound memory
_FAMILIES = {4: (socket.AF_INET, 32), 6: (socket.AF_INET6, 128)}
_LENGTHS = {
    family: {str(length): bytes((length,)) for length in range(bits + 1)}
    for family, (_, bits) in _FAMILIES.items()
}
_HOST_BITS = {
    family: {
        bytes((length,)): ((1 << (bits - length)) - 1).to_bytes(bits // 8, "big")
        for length in range(bits + 1)
    }
    for family, (_, bits) in _FAMILIES.items()
}


class LineFault(NamedTuple):
    line: int  # from 0
    column: int  # from 1
    message: str


class Lines(NamedTuple):
    """What was read of some lines."""

    groups: Groups
    repeats: bool  # a route stands there more than once; it is read once
    faults: Sequence[LineFault] = ()


class _UnfitError(Exception):
    """Something the fast path leaves to the exact one."""


def chunks(text: str) -> Iterator[list[str]]:
    """The lines of a text, a few megabytes at a time."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _CHUNK)
        end = len(text) if end < 0 else end
        yield text[start:end].split("\n")
        start = end + 1


def read_lines(chunked: Iterable[Sequence[str]], defaults: Defaults) -> Lines | None:
    """The routes of all lines, None if there is anything to complain about."""
    found: dict[RouteTemplate, list[bytes]] = defaultdict(list)
    try:
        for lines in chunked:
            _read_chunk(lines, defaults, found)
    except (_UnfitError, LineError):
        return None
    groups: Groups = {template: Keys(dict.fromkeys(keys)) for template, keys in found.items()}
    repeats = any(len(keys) < len(found[template]) for template, keys in groups.items())
    return None if _overlapping(groups) else Lines(groups, repeats)


def _read_chunk(lines: Sequence[str], defaults: Defaults, found: Groups) -> None:
    if _read_alike(lines, defaults, found):
        return
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)  # by type and what follows
    plain: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        head, _, rest = line.partition(" ")
        if "/" in head:
            plain[rest].append(head)
            continue
        if head in routes.TYPES:
            prefix, _, tail = rest.partition(" ")
            if "/" in prefix:
                alike[head, tail].append(prefix)
                continue
        parsed = parse_line(line, defaults)
        if parsed is not None:
            found[parsed[0]].append(parsed[1])
    for rest, heads in plain.items():
        _pack_group("", rest, heads, defaults, found)
    for (kind, rest), heads in alike.items():
        _pack_group(kind, rest, heads, defaults, found)


def _read_alike(lines: Sequence[str], defaults: Defaults, found: Groups) -> bool:
    """A chunk in which every line is a prefix of one family and then the same: a table by one
    gateway. False: nothing was read."""
    if lines and not lines[-1]:  # what follows the last newline
        lines = lines[:-1]
    joined = "/".join(lines)
    parts = joined.split("/")
    if not lines or len(parts) != 2 * len(lines):
        return False
    ways = set(parts[1::2])  # prefix length and what follows it
    lengths, rests = {}, set()
    for way in ways:
        length, _, rest = way.partition(" ")
        lengths[way] = length
        rests.add(rest)
    if len(rests) != 1 or "#" in joined:
        return False
    family = 6 if ":" in parts[0] else 4
    try:
        keys = _pack(parts[::2], [lengths[way] for way in parts[1::2]], family)
    except _UnfitError:
        return False
    shared = parse_template("", words_of(rests.pop()), family, defaults)
    found[shared] += keys
    return True


def _pack_group(kind: str, rest: str, heads: list[str], defaults: Defaults, found: Groups) -> None:
    joined = "/".join(heads)
    if "#" in joined:
        raise _UnfitError
    if ":" not in joined:
        parts = {4: joined}
    else:
        parts = {6: "/".join(head for head in heads if ":" in head)}
        if len(old := [head for head in heads if ":" not in head]):
            parts[4] = "/".join(old)
    words = words_of(rest)
    for family, text in parts.items():
        shared = parse_template(kind, words, family, defaults)
        between = text.split("/")
        # Two slashes in one prefix put an address where a length belongs.
        found[shared] += _pack(between[::2], between[1::2], family)


def _pack(addresses: Sequence[str], given: Sequence[str], family: int) -> list[bytes]:
    """Keys for addresses and prefix lengths."""
    try:
        lengths = list(map(_LENGTHS[family].__getitem__, given))
        packed = list(map(socket.inet_pton, repeat(_FAMILIES[family][0]), addresses))
    except (KeyError, OSError, ValueError):
        raise _UnfitError from None
    if len(lengths) != len(packed):
        raise _UnfitError
    host_bits = b"".join(map(_HOST_BITS[family].__getitem__, lengths))
    if int.from_bytes(b"".join(packed), "big") & int.from_bytes(host_bits, "big"):
        raise _UnfitError
    return list(map(operator.add, lengths, packed))


def _overlapping(groups: Groups) -> bool:
    """Whether a destination stands under two templates of one scope."""
    scopes: dict[bytes, list[list[bytes]]] = defaultdict(list)
    for template, keys in groups.items():
        scopes[routes.scope(template)].append(keys)
    for lists in scopes.values():
        if len(lists) > 1:
            total = sum(map(len, lists))
            if len(set().union(*lists)) != total:
                return True
    return False


class _Reader:
    """Reads line by line; what lines have in common after their prefix is worked out once."""

    def __init__(self, defaults: Defaults) -> None:
        self.defaults = defaults
        self.templates: dict[tuple[str, int], RouteTemplate | None] = {}

    def read(self, line: str) -> tuple[RouteTemplate, bytes] | None:
        head, _, rest = line.partition(" ")
        if "/" in head:
            family = 6 if ":" in head else 4
            if (rest, family) not in self.templates:
                self.templates[rest, family] = self._template(rest, family)
            shared = self.templates[rest, family]
            if shared is not None:
                address, _, length = head.partition("/")
                try:
                    return shared, _pack([address], [length], family)[0]
                except _UnfitError:
                    pass
        return parse_line(line, self.defaults)

    def _template(self, rest: str, family: int) -> RouteTemplate | None:
        try:
            return parse_template("", words_of(rest), family, self.defaults)
        except LineError:
            return None


def read_exactly(chunked: Iterable[Sequence[str]], defaults: Defaults) -> Lines:
    """As `read_lines`, line by line, with every fault."""
    groups: Groups = defaultdict(list)
    seen: dict[tuple[bytes, bytes], tuple[RouteTemplate, int]] = {}
    faults: list[LineFault] = []
    repeats = False
    reader = _Reader(defaults)
    for number, line in _numbered(chunked):
        try:
            parsed = reader.read(line)
        except LineError as error:
            faults.append(LineFault(number, error.column, error.message))
            continue
        if parsed is None:
            continue
        template, key = parsed
        first = seen.setdefault((routes.scope(template), key), (template, number))
        if first == (template, number):
            groups[template].append(key)
        elif first[0] == template:
            repeats = True
        else:
            name = routes.expand(template, key).key.name
            message = f"{name} is also on line {first[1] + 1}, and leads elsewhere there"
            faults.append(LineFault(number, words_of(line)[0].column, message))
    return Lines(
        {route_template: Keys(keys) for route_template, keys in groups.items()}, repeats, faults
    )


def lines_of(
    chunked: Iterable[Sequence[str]], defaults: Defaults, wanted: Set[Identity]
) -> Iterator[tuple[int, Identity]]:
    """The numbers, from 0, of the lines that declare the wanted routes."""
    reader = _Reader(defaults)
    for number, line in _telling(chunked, wanted):
        parsed = reader.read(line)
        if parsed is not None:
            identity = routes.scope(parsed[0]), parsed[1]
            if identity in wanted:
                yield number, identity


def _telling(chunked: Iterable[Sequence[str]], wanted: Set[Identity]) -> Iterator[tuple[int, str]]:
    """The lines that may declare one of the wanted: to read every line takes ten times as long."""
    if len(wanted) > _FEW:
        yield from _numbered(chunked)
        return
    needles = {needle for _, key in wanted for needle in _needles(key)}
    start = 0
    for lines in chunked:
        telling = {
            number: line
            for needle in needles
            for number, line in enumerate(lines, start)
            if needle in line.lower()
        }
        yield from sorted(telling.items())
        start += len(lines)


def _needles(key: bytes) -> tuple[str, ...]:
    """A line that declares this destination holds one of these, in whatever way it is written."""
    if not key[0]:
        return ("default", "/0")
    if len(key) == 5:
        return (socket.inet_ntop(socket.AF_INET, key[1:]),)
    # The last two groups may be written as an IPv4 address. Of the others a later one is shared by
    # fewer lines.
    groups = (key[at : at + 2].hex().lstrip("0") for at in range(11, 0, -2))
    return (max(groups, key=len) or ":",)


def _numbered(chunked: Iterable[Sequence[str]]) -> Iterator[tuple[int, str]]:
    number = 0
    for lines in chunked:
        for line in lines:
            yield number, line
            number += 1
