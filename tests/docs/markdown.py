"""What the tests need of a Markdown page: fenced blocks, links and anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = Path("docs") / "examples"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$")
_LINK = re.compile(r"!?\[(?:[^\]]*)\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")
_SOURCE = re.compile(r"\b(?:src|href)=\"(?P<target>[^\"]+)\"")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    lines: tuple[str, ...]
    line: int  # of its first line in the page, from 0


@dataclass(frozen=True, slots=True)
class Link:
    target: str
    line: int  # from 1


def pages() -> list[Path]:
    """Every Markdown file of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(text: str) -> Iterator[Block]:
    for number, language, lines in _parts(text):
        if language is not None:
            yield Block(language, tuple(lines), number)


def links(text: str) -> Iterator[Link]:
    for number, language, lines in _parts(text):
        if language is None:
            for offset, line in enumerate(lines):
                prose = _CODE.sub("", line)
                for found in (*_LINK.finditer(prose), *_SOURCE.finditer(prose)):
                    yield Link(found["target"], number + offset + 1)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as forges make them."""
    found: set[str] = set()
    for _, language, lines in _parts(text):
        for line in lines if language is None else ():
            heading = _HEADING.match(line)
            if heading:
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"])
                slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
                again = sum(1 for one in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", one))
                found.add(f"{slug}-{again}" if again else slug)
    return found


def _parts(text: str) -> Iterator[tuple[int, str | None, list[str]]]:
    """The page in parts: the number of the first line, the language (None of prose), the lines."""
    start, language, lines = 0, None, list[str]()
    for number, line in enumerate(text.splitlines()):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
            continue
        yield start, language, lines
        start, lines = number + 1, []
        language = fence["language"] if language is None else None
    if language is not None:
        raise ValueError(f"the block from line {start} on is never closed")
    yield start, language, lines
