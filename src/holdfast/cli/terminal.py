"""The terminal: colour where it is wanted, and one line of progress."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
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

# Faster than this, a progress line would only flicker.
QUIET_S = 1.0
_REDRAW_S = 0.1


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


class ProgressLine:
    """How far a pass is, on one rewritten line, once it has taken more than a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = False
        self._next = time.monotonic() + QUIET_S
        self._enabled = self._stream.isatty()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        self._next = now + _REDRAW_S
        self._shown = True
        share = done * 100 // total if total else 100
        self._stream.write(f"\r\x1b[Kapplying {thousands(done)} of {thousands(total)} ({share} %)")
        self._stream.flush()

    def clear(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def say(lines: Iterable[str], stream: TextIO) -> None:
    """Prints lines for people: places in files below the working directory by relative names."""
    folder = f"{Path.cwd()}/"
    for line in lines:
        print(_relative_places(line, folder), file=stream)


def relative_places(text: str) -> str:
    """`/home/me/router.yaml:3:5` as `router.yaml:3:5` in /home/me; other paths stay as they are."""
    return _relative_places(text, f"{Path.cwd()}/")


def _relative_places(text: str, folder: str) -> str:
    if folder == "//" or folder not in text:
        return text
    return re.sub(re.escape(folder) + r"(?=[^\s:]*:\d)", "", text)


def thousands(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 route`, `100 000 routes`."""
    return f"{thousands(number)} {singular if number == 1 else plural or singular + 's'}"
