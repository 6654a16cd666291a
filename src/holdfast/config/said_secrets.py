"""What one line says of secrets, whoever wrote it: a comment, a file of another program, a log.

Lines come from others, and may be as long as they like. So each is gone through once from its left
to its right: no pattern here begins anew at every character of a long word, and none looks back
further than to the separator before. (`re` holds the interpreter: while it searches, the daemon
repairs nothing.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.config.secret_names import ends_like_secret, is_secret

SHOWN = "(not shown)"
# Characters of a line that is searched. Nobody reads a longer one.
LONGEST = 1 << 16

# Whether a field of that name holds a secret, or several.
Holds = Callable[[str], bool]

# Without any of these, a line says no secret. Of base64 the end: = .
_HINTS = (
    *("pass", "pwd", "kennwort", "secret", "token", "key", "psk", "credential", "authorization"),
    *("bearer", "env", "*", "=", "://"),
)
_SEPARATOR = re.compile(r"[:=]")
_IN_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_WORD = re.compile(r"\S+")
_AROUND_WORDS = "\"'`.,;()[]{}"
# `password hunter2`, as pppd and others have it: one more word, and no sentence, unless that says
# what it is, or the word has digits.
_VALUE = re.compile(
    r"\s+(?:(?:is|was|are|were|ist|war|to|->)\s+(?=\S)|(?=\S*[0-9])"
    r"|(?=(?:\"[^\"]*\"|'[^']*'|\S+)\s*(?:$|\#)))",
    re.IGNORECASE,
)
# Who somebody is, in a URL. A password may hold what ends the name of a host; a port is none.
_USERINFO = re.compile(
    r"://(?:[^\s/?#:\"<>@]*:(?![0-9]{1,5}(?:[/?#\s]|$))[^\s\"<>]{0,256}|[^\s/?#\"<>]*)@"
)
# A line of pap-secrets or chap-secrets: who, with which server, and the secret.
_PPP = re.compile(r"\s*(?:\"[^\"]*\"|\S+)\s+(?:\*|\"\*\")\s+(?P<value>\"[^\"]*\"|\S+)")
# 32 bytes in base64, as WireGuard has its keys; of those that are public the line says so.
_KEY = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{43}=(?![A-Za-z0-9+/=])")


class Field(NamedTuple):
    """A secret one in a line."""

    column: int  # of its name
    value: int  # where it begins, with the blanks before it


def may_say_one(line: str) -> bool:
    """Whether it is worth a close look: of 100 000 routes none is."""
    lowered = line.lower()
    return any(hint in lowered for hint in _HINTS)


def counted(line: str) -> str:
    """What is told of a line that is too long to be searched."""
    return f"({len(line)} characters, not shown)"


def field(text: str, holds: Holds) -> Field | None:
    """The first that holds a secret; what it holds may stand on the lines below."""
    start = 0
    for found in _SEPARATOR.finditer(text):
        before = text[start : found.start()].rstrip()
        quoted = before.endswith(('"', "'"))
        before = before[:-1] if quoted else before
        column = len(before.rstrip(_IN_NAMES))
        if holds(before[column:]):
            return Field(start + column - quoted, found.end())
        start = found.end()
    return None


def struck(text: str, holds: Holds) -> str:
    """A line without what it says of secrets."""
    secret = field(text, holds)
    at = min(secret.value if secret else len(text), _said(text))
    value = text[at:].strip()
    if value:
        begin = text.index(value, at)
        shown = f"{text[:begin]}{SHOWN}{text[begin + len(value) :]}"
    else:
        shown = _without_ppp(text)
    shown = without_userinfo(shown)
    return shown if "public" in shown.lower() else _KEY.sub(SHOWN, shown)


def without_userinfo(text: str) -> str:
    return _USERINFO.sub(f"://{SHOWN}@", text) if "://" in text else text


def redact_notes(notes: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations, by the rule for fields."""
    return {
        name: SHOWN if is_secret(name) else without_userinfo(value) for name, value in notes.items()
    }


def _said(text: str) -> int:
    """Where it begins in `password hunter2`; the end of the text where nothing is said."""
    for word in _WORD.finditer(text):
        if ends_like_secret(word[0].strip(_AROUND_WORDS)):
            value = _VALUE.match(text, word.end())
            if value is not None:
                return value.end()
    return len(text)


def _without_ppp(text: str) -> str:
    found = _PPP.match(text)
    if found is None:
        return text
    return f"{text[: found.start('value')]}{SHOWN}{text[found.end('value') :]}"
