"""The terminal: lines for people, and one line of progress."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from holdfast.errors import Refused
from holdfast.numbers import counted, thousands
from holdfast.render.style import Style, fit, wants_colour

__all__ = [
    "ProgressLine",
    "Style",
    "counted",
    "refuse_unasked",
    "relative_places",
    "say",
    "thousands",
    "wants_colour",
]

# Faster than this, a progress line would only flicker.
QUIET_S = 1.0
_REDRAW_S = 0.1


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
        self._write(f"\r\x1b[Kapplying {thousands(done)} of {thousands(total)} ({share} %)")

    def clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that is gone
            self._stream.write(text)
            self._stream.flush()


def say(lines: Iterable[str], stream: TextIO) -> None:
    """Prints lines for people: places in files below the working directory by relative names."""
    folder = _folder()
    colour = wants_colour(stream)
    shown = "".join(f"{fit(_relative_places(line, folder), colour=colour)}\n" for line in lines)
    if stream is sys.stderr:
        _talk(shown)
    else:
        stream.write(shown)


def _talk(text: str) -> None:
    """On stderr, while work goes on: a pass is not left half done because nobody listens (a pipe
    whose reader is gone) or because there is no room for what it says."""
    # What was printed before stands before, where both go to one file or pipe. Where that fails,
    # it fails once more when all is done, and is told then.
    with suppress(OSError):
        sys.stdout.flush()
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # What could not be written would be tried again at the next line, and when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def relative_places(text: str) -> str:
    """`/home/me/router.yaml:3:5` as `router.yaml:3:5` in /home/me; other paths stay as they are."""
    return _relative_places(text, _folder())


def _folder() -> str:
    """The working directory; that of a shell may have been removed."""
    try:
        return f"{Path.cwd()}/"
    except FileNotFoundError:
        return "//"


def _relative_places(text: str, folder: str) -> str:
    if folder == "//" or folder not in text:
        return text
    return re.sub(re.escape(folder) + r"(?=[^\s:]{0,4096}:\d)", "", text)  # PATH_MAX


def refuse_unasked() -> None:
    """Where there is something to do, and nobody to ask about it."""
    if not sys.stdin.isatty():
        raise Refused(
            "this would change the host, and nobody is there to be asked: add --yes, or look at"
            " it first with `holdfast plan`"
        )
