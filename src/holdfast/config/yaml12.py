"""YAML 1.2 core scalars over libyaml's composer.

YAML 1.1, which PyYAML speaks, reads the MAC 12:34:56:10:20:30 as a number, `no` as false and
010 as eight, merges `<<` and keeps the last of two equal keys. None of that happens here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_STR, _INT, _FLOAT, _BOOL, _NULL, _SEQ, _MAP = (
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")
)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), _NULL),
    **dict.fromkeys(("true", "True", "TRUE", "false", "False", "FALSE"), _BOOL),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOATING = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)"
)
_NUMBER_STARTS = frozenset("+-.0123456789")

# A router file nests about ten deep. libyaml's composer recurses on the C stack and ends the
# process with a segmentation fault at some 50 000, so the depth is bounded while composing.
MAX_DEPTH = 64
# How many nodes aliases may add: a dozen lines of nested aliases can stand for billions.
MAX_ALIASED = 100_000
# Of one mapping, how many keys that are there twice are named.
_REPEATED_SHOWN = 50
# What libyaml says, by how it begins, is about its grammar; what most likely led to it is not.
_QUOTES = (
    "a text with : , { } [ or ] in it, or that begins with a sign such as * & @ %, needs quotes"
)
_INDENT = "is the line indented like those beside it, and a text with a quote or ': ' in it quoted?"
_LIKELY = {
    "mapping values are not allowed": _INDENT,
    "did not find expected key": _INDENT,
    "did not find expected '-'": _INDENT,
    "could not find expected ':'": "a field is written `name: value`, an item of a list `- value`",
    "did not find expected ','": _QUOTES,
    "did not find expected node content": _QUOTES,
    "did not find expected alphabetic": _QUOTES,
    "found character that cannot start": _QUOTES,
    "found undefined alias": _QUOTES,
    "found unknown escape": "in double quotes \\ begins an escape; use single ones",
}


class Position(NamedTuple):
    """Line and column, both from 1."""

    line: int
    column: int


class Trouble(NamedTuple):
    position: Position
    message: str


class UnreadableError(Exception):
    """The text is not one YAML document."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def start(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _scalar_tag(text: str) -> str:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_STARTS:
        if _INTEGER.fullmatch(text):
            return _INT
        if _FLOATING.fullmatch(text):
            return _FLOAT
    return _STR


class _TooDeepError(yaml.YAMLError):
    pass


class _Composer(CParser):
    """The hooks libyaml's composer calls for tags and at every level."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.tags: dict[str, str] = {}

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        if kind is ScalarNode:
            if not implicit[0]:
                return _STR
            tag = self.tags.get(value)
            if tag is None:
                tag = self.tags[value] = _scalar_tag(value)
            return tag
        return _SEQ if kind is SequenceNode else _MAP

    def descend_resolver(self, parent: Node | None, _index: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeepError(parent)

    def ascend_resolver(self) -> None:
        self.depth -= 1


def compose(text: str) -> Node | None:
    """The one document in the text as nodes, None if there is nothing in it."""
    try:
        node: Node | None = _Composer(text).get_single_node()
    except _TooDeepError as error:
        where = start(error.args[0])
        raise UnreadableError(Trouble(where, f"nested more than {MAX_DEPTH} levels deep")) from None
    except yaml.MarkedYAMLError as error:
        raise UnreadableError(_explain(error, text)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        where = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise UnreadableError(Trouble(where, f"not valid YAML: {error.reason}")) from None
    return node


def _explain(error: yaml.MarkedYAMLError, text: str) -> Trouble:
    mark = error.problem_mark or error.context_mark
    where = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
    words = error.problem or "cannot be read"
    if words == "but found another document":
        return Trouble(where, "a second document starts here; a file holds one Router document")
    lines = text.split("\n")
    line = lines[where.line - 1] if where.line <= len(lines) else ""
    if line[where.column - 1 : where.column] == "\t":
        return Trouble(where, "a tab cannot indent YAML; use spaces")
    if error.context:
        words += f" {error.context}"
        if error.context_mark and error.context_mark.line + 1 != where.line:
            words += f" that starts on line {error.context_mark.line + 1}"
    likely = next((hint for said, hint in _LIKELY.items() if words.startswith(said)), "")
    if "end of stream" in words or not "".join(lines[where.line - 1 :]).strip():
        likely = "the file may be cut short"
    if likely:
        words += f"; {likely}"
    return Trouble(where, f"not valid YAML: {words}")


class Construction:
    """Plain Python values off nodes, with everything wrong on the way collected."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []
        self._weights: dict[int, int] = {}  # nodes below each collection that was built
        self._open: set[int] = set()
        self._count = 0
        self._aliased = 0

    def build(self, node: Node) -> Any:
        if type(node) is ScalarNode:
            self._count += 1
            if node.tag == _STR:
                return node.value
            return self._scalar(node)
        return self._collection(node)

    def _scalar(self, node: ScalarNode) -> Any:
        read = _READERS.get(node.tag)
        if read is None:
            self._tag(node)
            return None
        try:
            return read(node.value)
        except ValueError:
            # Of what has a tag of its own, or a number of 5 000 digits, which int() refuses.
            kind = node.tag.rpartition(":")[2]
            self.troubles.append(Trouble(start(node), f"cannot be read as {_KINDS[kind]}"))
            return None

    def _collection(self, node: Node) -> Any:
        if id(node) in self._open:
            self.troubles.append(Trouble(start(node), "this alias contains itself"))
            return None
        if id(node) in self._weights:
            self._aliased += self._weights[id(node)]
            if self._aliased > MAX_ALIASED:
                where = Trouble(start(node), f"aliases expand to more than {MAX_ALIASED} values")
                raise UnreadableError(where)
        before = self._count
        self._count += 1
        self._open.add(id(node))
        value: Any
        if isinstance(node, MappingNode):
            value = self._mapping(node)
        else:
            value = [self.build(item) for item in node.value]
        if node.tag not in (_MAP, _SEQ):
            self._tag(node)
        self._open.discard(id(node))
        self._weights[id(node)] = self._count - before
        return value

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        value: dict[str, Any] = {}
        repeated: list[ScalarNode] = []
        for key, item in node.value:
            if type(key) is not ScalarNode or key.tag != _STR:
                self.troubles.append(Trouble(start(key), "a field name must be text"))
                continue
            if key.value == "<<" and not key.style:
                message = "merge keys (<<) are no part of YAML 1.2; write the fields out"
                self.troubles.append(Trouble(start(key), message))
                continue
            if key.value in value:
                repeated.append(key)
            value[key.value] = self.build(item)
        if repeated:
            self._repeated(node, repeated)
        return value

    def _repeated(self, node: MappingNode, repeated: list[ScalarNode]) -> None:
        firsts: dict[str, Position] = {}
        for key, _ in node.value:
            if type(key) is ScalarNode:
                firsts.setdefault(key.value, start(key))
        for key in repeated[:_REPEATED_SHOWN]:
            first = firsts[key.value]
            message = (
                f"{key.value!r} is given twice, first on line {first.line}, column {first.column}"
            )
            self.troubles.append(Trouble(start(key), message))
        for key in repeated[_REPEATED_SHOWN : _REPEATED_SHOWN + 1]:
            more = f"and {len(repeated) - _REPEATED_SHOWN} more that are given twice"
            self.troubles.append(Trouble(start(key), more))

    def _tag(self, node: Node) -> None:
        self.troubles.append(Trouble(start(node), f"the tag {node.tag!r} means nothing here"))


_KINDS = {"int": "a number", "float": "a number", "bool": "true or false", "null": "null"}


def _integer(text: str) -> int:
    # Not int(text, 0): that refuses 010, which YAML 1.2 reads as ten.
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _word(tag: str, text: str) -> bool | None:
    """One of the few words of a tag, which may have been put on anything: `!!bool yes`."""
    if _WORDS.get(text) != tag:
        raise ValueError(text)
    return text in ("true", "True", "TRUE") if tag == _BOOL else None


_READERS: dict[str, Callable[[str], Any]] = {
    _STR: str,
    _INT: _integer,
    _FLOAT: lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    _BOOL: partial(_word, _BOOL),
    _NULL: partial(_word, _NULL),
}
