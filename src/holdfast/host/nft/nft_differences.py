"""What differs between a table and what is declared of it, in nft's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from holdfast.engine import difference
from holdfast.engine.artifact import Artifact
from holdfast.engine.difference import Difference
from holdfast.engine.plan import Operation, Verb
from holdfast.host.nft import nft_scratch
from holdfast.host.nft.nft_written import WrittenTables

_ELEMENTS = "elements = {"
_ELEMENT = re.compile(r'(?:"[^"]*"|[^,"])+')
# Of such sets the elements come and go by themselves.
_CHANGING = re.compile(r"flags .*\bdynamic\b|timeout ")


def read(
    operation: Operation,
    written: WrittenTables,
    load: Callable[[str], str],
    show: Callable[[str, str], str],
) -> Difference:
    """show: the listing of a table, by family and name; raises DriverError."""
    wanted, seen = operation.subject, operation.observed
    if not isinstance(wanted, Artifact):
        raise TypeError("tables come one by one")
    gone = operation.verb is Verb.DELETE
    if not isinstance(seen, Artifact):
        return _between(b"", wanted.payload)
    known = written.body(seen)
    if known is not None:
        return _between(known, b"" if gone else wanted.payload)
    # Written by others, changed by hand, or before bodies were kept: as nft lists both.
    family, _, name = seen.key.name.partition(" ")
    before = _listed(show(family, name))
    if gone:
        return _between(before, b"")
    after = nft_scratch.within(wanted, load, lambda: show(family, name))
    return _between(before, _listed(after))


def _between(before: bytes, after: bytes) -> Difference:
    start, end = difference.same_ends(before, after)
    opened = _opened(before, start)
    old, new = (
        [opened, *body[start : len(body) - end].decode(errors="replace").split("\n")]
        for body in (before, after)
    )
    return difference.of(difference.parts(old, new, _heading, _words))


def _opened(body: bytes, end: int) -> str:
    """The last line before a place that begins a part."""
    while (at := body.rfind(b"{\n", 0, end)) >= 0:
        end = body.rfind(b"\n", 0, at) + 1
        line = body[end : at + 1].decode(errors="replace")
        if _heading(line):
            return line
    return ""


def _heading(line: str) -> str:
    """`chain forward`, where a line begins it."""
    if not line.endswith("{"):
        return ""
    words = line[:-1].strip()
    return "" if words == "elements =" else words


def _words(line: str) -> str:
    words = line.strip().removesuffix(",")
    return "" if words in ("}", _ELEMENTS) else words


def _listed(text: str) -> bytes:
    return "\n".join(_parted(text)).encode()


def _parted(text: str) -> Iterator[str]:
    """The lines between the braces of a table, each element of a set on one of its own."""
    _, *lines, _ = text.rstrip("\n").split("\n")
    changing = False
    elements: list[str] | None = None
    for line in lines:
        words = line.strip()
        if elements is None and words.startswith(_ELEMENTS):
            elements = []
            words = words.removeprefix(_ELEMENTS)
        if elements is None:
            changing = not words.endswith("{") and (changing or bool(_CHANGING.match(words)))
            if not words.startswith("comment "):
                yield words
            continue
        elements.append(words)
        if words.endswith("}"):
            inside = " ".join(elements)[:-1]
            found = [one.strip() for one in _ELEMENT.findall(inside)]
            yield from () if changing else sorted(one for one in found if one)
            elements = None
