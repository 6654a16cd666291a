"""Secrets in lines that are no fields of a document, one after the other: what such a field holds
may take several."""

from __future__ import annotations

import re

from holdfast.config.said_secrets import (
    LONGEST,
    SHOWN,
    Holds,
    counted,
    field,
    may_say_one,
    struck,
    without_userinfo,
)

_COMMENT = re.compile(r"(?<!\S)#+")


class Comments:
    """Of a document whose fields were gone through: what follows #, and URLs."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._column: int | None = None  # of a secret field that goes on below
        self._commented = False  # so is that field

    def all(self, text: str) -> str:
        return "".join(map(self._line, text.splitlines(keepends=True)))

    def _line(self, line: str) -> str:
        text = line.rstrip("\r\n")
        return f"{self._shown(text)}{line[len(text) :]}" if text.strip() else line

    def _shown(self, text: str) -> str:
        found = _COMMENT.search(text) if "#" in text else None
        end = found.start() if found else len(text)
        if text[:end].strip():
            self._column = None
        shown = without_userinfo(text[:end])
        return f"{shown}{found[0]}{self._comment(text[found.end() :])}" if found else shown

    def _comment(self, text: str) -> str:
        return self._searched(text, commented=True)

    def _searched(self, text: str, *, commented: bool) -> str:
        if not text.strip():  # between two paragraphs, maybe
            return text
        if len(text) > LONGEST:
            return counted(text)
        if self._goes_on(text, commented=commented):
            return _blank(text)
        self._column = None
        if not may_say_one(text):
            return text
        secret = field(text, self._holds)
        self._column, self._commented = secret.column if secret else None, commented
        return struck(text, self._holds)

    def _goes_on(self, text: str, *, commented: bool) -> bool:
        if self._column is None or self._commented != commented:
            return False
        said = text.lstrip()
        column = len(text) - len(said)
        # The items of a list may stand right below the name of what they are in.
        return column > self._column or (column == self._column and said.startswith("-"))


class Lines(Comments):
    """Of all other texts: all that stands in them."""

    def _shown(self, text: str) -> str:
        if len(text) > LONGEST:
            return counted(text)
        if self._column is None and not may_say_one(text):
            return text
        found = _COMMENT.search(text)
        code = text[: found.start()] if found else text
        shown = self._searched(code, commented=False)
        if found is None:
            return shown
        comment = text[found.end() :]
        # What is said beside a secret, or between its lines, may be the one before.
        within = self._column is not None and not self._commented
        shown_comment = _blank(comment) if within or shown != code else self._comment(comment)
        return f"{shown}{found[0]}{shown_comment}"


def _blank(text: str) -> str:
    said = text.strip()
    return text.replace(said, SHOWN, 1) if said else text
