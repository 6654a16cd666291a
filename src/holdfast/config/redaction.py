"""Configuration as it may be shown to others: without the secrets that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from holdfast.config import yaml12
from holdfast.config.yaml12 import UnreadableError

SHOWN = "(not shown)"
# Fields that hold a secret themselves. Those that name a file with one end in `File`.
_SECRET = re.compile(
    r"password|passphrase|secret|token|privatekey|presharedkey|psk|credential|authkey|apikey",
    re.IGNORECASE | re.ASCII,
)
_FIELD = re.compile(r"(?P<key>[\"']?(?P<name>\w+)[\"']?\s*:\s*)(?P<value>[^\s#][^#\n]*)", re.ASCII)


_ELSEWHERE = re.compile(r"(?:File|_file|FILE|Encoding)$")


def speaks_of_secret(name: str) -> bool:
    """Also of one that stands elsewhere. Words may be set apart, as in `API_KEY`."""
    return bool(_SECRET.search(name.replace("_", "").replace("-", "")))


def is_secret(name: str) -> bool:
    return speaks_of_secret(name) and not _ELSEWHERE.search(name)


def redact(text: str) -> str:
    """A YAML or JSON text with the values of secret fields struck out. What is no such text is
    gone through line by line."""
    try:
        root = yaml12.compose(text.removeprefix("\ufeff"))
    except UnreadableError:
        return _line_by_line(text)
    if root is None:
        return text
    shown = text.removeprefix("\ufeff")
    for start, end in sorted(_spans(root), reverse=True):
        # What follows a block of several lines begins on a line of its own.
        tail = "\n" if shown[start:end].endswith("\n") else ""
        shown = f"{shown[:start]}{SHOWN}{tail}{shown[end:]}"
    return shown


def _spans(node: Node) -> Iterator[tuple[int, int]]:
    if isinstance(node, SequenceNode):
        for item in node.value:
            yield from _spans(item)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode) and is_secret(key.value):
                yield value.start_mark.index, value.end_mark.index
            else:
                yield from _spans(value)


def _line_by_line(text: str) -> str:
    def shown(found: re.Match[str]) -> str:
        return f"{found['key']}{SHOWN}" if is_secret(found["name"]) else found[0]

    return _FIELD.sub(shown, text)
