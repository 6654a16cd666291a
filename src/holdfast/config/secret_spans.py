"""Where secrets stand in a document, by the fields that hold them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from holdfast.config.said_secrets import SHOWN
from holdfast.config.secret_names import holds_secrets, is_secret

_COMMENT = re.compile(r"(?<!\S)#+[ \t]*(?P<said>[^\s][^\n]*)")
# The fields of a kind that hold secrets, as its declaration says.
Fields = Callable[[str], Collection[str]]


class _Block(NamedTuple):
    """What a secret field takes, with what it holds."""

    start: int
    end: int
    column: int  # of its name


def without(text: str, root: Node, fields: Fields) -> str:
    """root: of the document that the text is. Comments beside what is struck out, and between its
    lines, go along: they say what it was."""
    spans: set[tuple[int, int]] = set()
    blocks: set[_Block] = set()
    for key, value in _secrets(root, fields, (), set()):
        spans.update(_span(text, one) for one in _hidden(key, value))
        start, end = key.start_mark.index, _end(value)
        if value.start_mark.index < start:  # an alias: its anchor stands before
            blocks.add(_Block(value.start_mark.index, end, key.start_mark.column))
            end = key.end_mark.index
        blocks.add(_Block(start, end, key.start_mark.column))
    values = sorted(span for span in spans if span[0] < span[1])
    cuts = [(start, end, SHOWN) for start, end in values]
    for start, end in _lines_of(text, sorted(blocks)):
        cuts += _comments(text, start, end, values)
    return _cut(text, cuts)


def _cut(text: str, cuts: Iterable[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    reached = 0
    for start, end, instead in sorted(cuts):
        if start >= reached:  # else it stands in one that is gone: an anchor within a secret
            pieces += (text[reached:start], instead)
            reached = end
    return "".join((*pieces, text[reached:]))


def _hidden(key: Node, value: Node) -> Iterable[Node]:
    """Of what is handed to a program, the names may be shown."""
    if isinstance(value, MappingNode) and not is_secret(str(key.value)):
        return [one for _, one in value.value]
    return [value]


def _span(text: str, node: Node) -> tuple[int, int]:
    """What follows a block of several lines begins on a line of its own."""
    start = node.start_mark.index
    return start, start + len(text[start : _end(node)].rstrip())


def _end(node: Node) -> int:
    """Of a collection in lines its last value's: libyaml has it end where the next field begins."""
    seen: set[int] = set()
    while isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
        if last.start_mark.index < node.start_mark.index or id(last) in seen:  # an alias
            break
        seen.add(id(last))
        node = last
    return int(node.end_mark.index)


def _lines_of(text: str, blocks: Iterable[_Block]) -> Iterator[tuple[int, int]]:
    """Of blocks, to the ends of their lines, and with the comments below that belong to them."""
    reached = 0
    for start, end, column in blocks:
        if end >= reached:
            last = len(text[start:end].rstrip()) + start
            stop = _last_comment(text, _lineend(text, last), column)
            yield max(start, reached), stop
            reached = stop


def _last_comment(text: str, end: int, column: int) -> int:
    """The end of the last comment that stands further in than the name above it does, or did before
    its line was commented out."""
    found, at = end, end
    while at < len(text):
        stop = _lineend(text, at + 1)
        line = text[at + 1 : stop]
        said = line.lstrip()
        if said and not said.startswith("#"):
            break
        mark = len(line) - len(said)
        told = len(line) - len(said.lstrip("#").lstrip())
        if said and (mark > column or told > max(column, mark + 2)):
            found = stop
        at = stop
    return found


def _lineend(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _comments(
    text: str, start: int, end: int, values: list[tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    """Those between the values."""
    inside = values[bisect_left(values, (start, 0)) : bisect_left(values, (end, 0))]
    begins = [start, *(stop for _, stop in inside)]
    ends = [*(begin for begin, _ in inside), end]
    for begin, stop in zip(begins, ends, strict=True):
        for found in _COMMENT.finditer(text, begin, stop):
            yield found.start("said"), found.end("said"), SHOWN


def _secrets(
    node: Node, fields: Fields, declared: Collection[str], seen: set[tuple[int, frozenset[str]]]
) -> Iterator[tuple[Node, Node]]:
    """Keys with their values. declared: the secret fields of the kind that the node is part of.
    seen: nodes by what was declared; a dozen lines of aliases can stand for billions."""
    known = (id(node), frozenset(declared))
    if known in seen:
        return
    seen.add(known)
    if isinstance(node, SequenceNode):
        for item in node.value:
            yield from _secrets(item, fields, declared, seen)
    elif isinstance(node, MappingNode):
        kinds = [value.value for key, value in node.value if _is_kind(key, value)]
        within = fields(kinds[0]) if kinds else declared
        for key, value in node.value:
            name = key.value if isinstance(key, ScalarNode) else ""
            if name in within or holds_secrets(name):
                yield key, value
            else:
                yield from _secrets(value, fields, within, seen)


def _is_kind(key: Node, value: Node) -> bool:
    return key.value == "kind" and isinstance(value, ScalarNode)
