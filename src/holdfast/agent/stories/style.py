"""Text for people: colour where it is wanted, and numbers that can be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}


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


def thousands(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 route`, `100 000 routes`."""
    return f"{thousands(number)} {singular if number == 1 else plural or singular + 's'}"
