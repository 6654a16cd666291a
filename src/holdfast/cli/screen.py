"""A terminal that one command has to itself: drawn over and over, and left as it was."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.characters import escaped
from holdfast.cli.terminal import Style
from holdfast.dataclass import dataclass, field

# What is said, and how it looks.
Cell = tuple[str, str]
Row = Sequence[Cell]

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def text(row: Row, width: int, style: Style) -> str:
    """One line, no wider than the terminal: a longer one ends in …"""
    said, left = [], width
    for words, look in row:
        if left <= 0:
            break
        words = escaped(words)
        shown = words if len(words) <= left else f"{words[: left - 1]}…"
        said.append(style(shown, look) if look else shown)
        left -= len(shown)
    return "".join(said)


@dataclass(slots=True)
class Screen:
    style: Style
    _wake: int = field(default=-1)  # readable once the terminal has another size

    @property
    def size(self) -> tuple[int, int]:
        try:
            columns, lines = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        # A terminal that does not know its size says 0.
        return columns or 80, lines or 24

    def draw(self, rows: Sequence[Row]) -> None:
        width, height = self.size
        # Cleared before it is written: after the last column, a terminal would clear that too.
        lines = [_CLEAR_LINE + text(row, width, self.style) for row in rows[:height]]
        # No newline after the last: it would scroll the first one out.
        sys.stdout.write(_HOME + "\n".join(lines) + _BELOW)
        sys.stdout.flush()

    def key(self, patience: float) -> str:
        """The key that was pressed; empty where none was in time, or the size changed."""
        ready, _, _ = select.select([sys.stdin, self._wake], [], [], patience)
        if self._wake in ready:
            os.read(self._wake, 64)
        if sys.stdin in ready:
            pressed = os.read(sys.stdin.fileno(), 16)
            # The terminal went away: there is nobody left to draw for.
            return pressed.decode(errors="replace") if pressed else "q"
        return ""


@contextmanager
def screen() -> Iterator[Screen]:
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    wake, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    resized = signal.signal(signal.SIGWINCH, lambda *_: os.write(told, b"\0"))
    ended = signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        tty.setcbreak(descriptor)
        sys.stdout.write(_ENTER)
        sys.stdout.flush()
        yield Screen(Style.of(sys.stdout), wake)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, resized)
        signal.signal(signal.SIGTERM, ended)
        os.close(wake)
        os.close(told)


def _raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt
