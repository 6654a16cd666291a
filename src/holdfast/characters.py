"""Characters that no value may hold, and how they are shown where others have put them.

A control character in a name or a description moves the cursor of whoever reads `status`, ends a
line of a file that a program reads, or hides what stands before it. So nothing that is declared may
hold one (`trouble`, where values are read), and what comes from outside unasked (the alias of a
foreign link, the words of another program) is shown with its escape instead (`escaped`, where lines
and documents are written).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# C0, DEL and C1; separators of lines and paragraphs; marks that turn the direction of what follows;
# and halves of characters, which JSON can say and nothing can be encoded from.
_UNFIT = "\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_LINE = re.compile(f"[{_UNFIT}]")
_LINES = re.compile(f"(?![\t\n])[{_UNFIT}]")
# What shows nothing, or something else on each machine: other marks of format (Cf) and characters
# of private use. Prose may hold them, and is shown with their escapes: two texts that look equal
# are. Not those that scripts and emoji join letters by (U+200C, U+200D), nor the signs that Arabic
# and others write before numbers.
_HIDDEN = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\ue000-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
_SHOWN = re.compile(f"[{_UNFIT}{_HIDDEN}]")
_SHOWN_LINES = re.compile(f"(?![\t\n])[{_UNFIT}{_HIDDEN}]")


def trouble(text: str, *, lines: bool = False) -> str:
    """Why a text cannot be taken; empty where it can. lines: it may have tabs and several lines."""
    if text.isprintable():  # which is strict, and quick
        return ""
    found = (_LINES if lines else _LINE).search(text)
    if found is None:
        return ""
    if found[0] == "\0":  # the kernel, a file or a program takes it for the end
        return "cannot hold a NUL character"
    if "\ud800" <= found[0] <= "\udfff":
        return "cannot hold half of a character (a surrogate)"
    if found[0] in "\t\n":
        return "must be one line, without tabs"
    return f"cannot hold the control character U+{ord(found[0]):04X}"


def trouble_within(
    value: Any, *, lines: bool = False
) -> tuple[tuple[str | int, ...], str, bool] | None:
    """The first text or key that cannot be taken in a plain value: where, why, and whether it is a
    key. None where there is none."""
    if isinstance(value, str):
        said = trouble(value, lines=lines)
        return ((), said, False) if said else None
    if isinstance(value, dict):
        for name in value:
            if isinstance(name, str) and trouble(name):
                return (name,), f"its name {trouble(name)}", True
    if isinstance(value, list | tuple) and _all_printable(value):
        return None  # as most lists are, and some are of 100 000 routes
    if isinstance(value, dict | list | tuple):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, one in steps:
            found = trouble_within(one, lines=lines)
            if found is not None:
                return (step, *found[0]), found[1], found[2]
    return None


def _all_printable(values: Iterable[Any]) -> bool:
    try:
        return all(map(str.isprintable, values))
    except TypeError:  # not only texts
        return False


def escaped(text: str) -> str:
    """In one line, as a terminal and a log may have it."""
    return text if text.isprintable() else _SHOWN.sub(_escape, text)


def escaped_lines(text: str) -> str:
    """The same of several lines."""
    return text if text.isprintable() else _SHOWN_LINES.sub(_escape, text)


def escaped_json(text: str) -> str:
    """A JSON or a quoted YAML text that says the same in other characters."""
    return text if text.isprintable() else _LINES.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
