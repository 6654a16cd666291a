"""One YAML file as plain values, with the place of every value at hand for errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from yaml.nodes import MappingNode, Node, SequenceNode

from holdfast.config import regular_file, yaml12
from holdfast.config.yaml12 import Construction, Position, Trouble, UnreadableError
from holdfast.dataclass import dataclass, field
from holdfast.errors import ConfigError, Problem

Location = tuple[str | int, ...]  # ("spec", "resources", 3, "spec", "address")


class Place(NamedTuple):
    """A spot in a file; lines and columns from 1. What stands in no file has line 0, and `path`
    says it all."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file exactly as it was read."""

    path: str  # as the user named it
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    file: SourceFile
    root: Node
    data: Any
    troubles: tuple[Trouble, ...]  # duplicate keys and the like; the rest can still be checked

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        """Where a value starts, or its key; for what is not there, the nearest thing around it."""
        node, key = self.root, self.root
        for step in location:
            found = _step(node, step)
            if found is None:
                key = node
                break
            key, node = found
        return self.place_at(yaml12.start(key if of_key else node))

    def place_at(self, position: Position) -> Place:
        return Place(self.file.path, *position)


def _step(node: Node, step: str | int) -> tuple[Node, Node] | None:
    if isinstance(node, MappingNode):
        # From the end: of two equal keys the later one is what was read.
        for key, value in reversed(node.value):
            if key.value == step:
                return key, value
    elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def read_file(path: Path, *, handed: bool = False) -> SourceFile:
    """A regular file; handed: what the command was started with (`/dev/stdin`) may be a pipe.
    Raises ConfigError in the system's own words."""
    read = regular_file.read_handed if handed else regular_file.read
    try:
        return SourceFile(str(path), read(path))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ConfigError([Problem(str(path), "", message)]) from None


def decode(file: SourceFile) -> str:
    """The text of a file, without its byte order mark."""
    content = file.content
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problem = Problem(f"{file.path}:1:1", "", "the file is UTF-16; save it as UTF-8")
        raise ConfigError([problem])
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        place = str(Place(file.path, before.count(b"\n") + 1, column))
        byte = content[error.start]
        remedy = "; is this a text file?" if b"\0" in content else "; save the file as UTF-8"
        problem = Problem(place, "", f"not UTF-8: byte 0x{byte:02x} ({error.reason}){remedy}")
        raise ConfigError([problem]) from None


# YAML takes a second for each two megabytes, in which a router that is small may run out of memory;
# 200 000 resources are about as large. Lists of routes are read as text, and may be larger.
LARGEST = 32 << 20


def parse(file: SourceFile, expected: str = "a Router document") -> Document:
    if len(file.content) > LARGEST:
        message = f"it is larger than {LARGEST >> 20} MiB; many routes belong in a RouteList's file"
        raise ConfigError([Problem(file.path, "", message)])
    text = decode(file)
    construction = Construction()
    try:
        node = yaml12.compose(text)
        if node is None:
            message = f"the file is empty: {expected} is expected"
            raise UnreadableError(Trouble(Position(1, 1), message))
        data = construction.build(node)
    except UnreadableError as error:
        place = str(Place(file.path, *error.trouble.position))
        raise ConfigError([Problem(place, "", error.trouble.message)]) from None
    return Document(file, node, data, tuple(construction.troubles))


def read_document(path: Path) -> Document:
    return parse(read_file(path))
