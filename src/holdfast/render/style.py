"""Text for people: colour where it is wanted, and numbers that can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

from holdfast.characters import escaped_lines

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}

# All that a line may hold of what moves or colours: what `Style` puts there itself.
_KNOWN = "|".join(_CODES.values())
_OWN = re.compile(f"(\x1b\\[(?:0|(?:{_KNOWN})(?:;(?:{_KNOWN}))*)m)")


def fit(line: str, *, colour: bool) -> str:
    """A line as it may reach a terminal: other programs' words may hold what moves the cursor."""
    if not colour or "\x1b" not in line:
        return escaped_lines(line)
    pieces = _OWN.split(line)  # every other one is of ours
    pieces[::2] = map(escaped_lines, pieces[::2])
    return "".join(pieces)


def wants_colour(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """NO_COLOR beats CLICOLOR_FORCE beats what the stream is."""
    env = os.environ if environment is None else environment
    if env.get("NO_COLOR"):
        return False
    if env.get("CLICOLOR_FORCE", "") not in ("", "0"):
        return True
    return stream.isatty() and env.get("TERM") != "dumb"


class Style:
    """Colours text, or leaves it as it is."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        return cls(wants_colour(stream))

    def __call__(self, text: str, *looks: str) -> str:
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_CODES[look] for look in looks)}m{text}\x1b[0m"
