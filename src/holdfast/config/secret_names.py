"""Which names speak of secrets: of fields, variables, labels."""

from __future__ import annotations

import re

# What is handed to a program as its environment: any of its values may be a secret, whatever the
# user called it.
ENVIRONMENT = "env"
# Fields that hold a secret themselves. Those that name a file with one end in `File`.
WORDS = (
    "password",
    "passwd",
    "passwort",
    "kennwort",
    "passphrase",
    "passcode",
    "authorization",
    "bearer",
    "secret",
    "token",
    "privatekey",
    "presharedkey",
    "psk",
    "credential",
    "authkey",
    "apikey",
)
_SECRET = re.compile("|".join(WORDS), re.IGNORECASE | re.ASCII)
# Within other words these say something else: bypass, passive.
_ALONE = frozenset(("pass", "pwd"))
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ELSEWHERE = ("File", "_file", "FILE", "Encoding")


def speaks_of_secret(name: str) -> bool:
    """Also of one that stands elsewhere. Words may be set apart, as in `API_KEY`."""
    if _SECRET.search(_joined(name)):
        return True
    return not _ALONE.isdisjoint(part.lower() for part in _PART.findall(name))


def is_secret(name: str) -> bool:
    return speaks_of_secret(name) and not name.endswith(_ELSEWHERE)


def holds_secrets(name: str) -> bool:
    """One, or several."""
    return is_secret(name) or name == ENVIRONMENT


def ends_like_secret(word: str) -> bool:
    """Of a word in a sentence: `password` does, `passwords` are spoken of."""
    return _joined(word).lower().endswith(WORDS)


def _joined(name: str) -> str:
    return name.replace("_", "").replace("-", "")
