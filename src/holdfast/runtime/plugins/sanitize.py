"""What programs of others say, fit to be shown and kept: no control characters, no secrets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from holdfast.config.redaction import SHOWN, is_secret

_LONGEST = 1024
_LEAST = 6


def line(said: str, hidden: Iterable[str] = (), longest: int = _LONGEST) -> str:
    """In one line. hidden: texts that must not be told."""
    return _printable(_struck(said, hidden)).strip()[:longest]


def lines(said: str, hidden: Iterable[str] = ()) -> str:
    """The same line by line."""
    kept = "\n".join(map(_printable, _struck(said, hidden).splitlines()))
    return f"{kept}\n" if said.endswith("\n") else kept


def struck(value: Any, hidden: Collection[str]) -> Any:
    """A JSON value without what must not be told. Short secrets are struck out only where they
    stand alone: others may mean something by the same letters."""
    if isinstance(value, str):
        within = [one for one in hidden if len(one) >= _LEAST]
        return SHOWN if value in hidden else _struck(value, within)
    if isinstance(value, dict):
        return {name: struck(one, hidden) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [struck(one, hidden) for one in value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return SHOWN if number and str(value) in hidden else value


def secrets_of(environment: Mapping[str, str] | None) -> frozenset[str]:
    """What its environment tells a program and it must not tell others: everything, apart from what
    is so short that others say it, too, and names of files, which errors are about, where it is not
    named like a secret."""
    given = (environment or {}).items()
    return frozenset(
        value for name, value in given if value and (is_secret(name) or _may_be_secret(value))
    )


def _may_be_secret(value: str) -> bool:
    return len(value) >= _LEAST and not value.startswith("/")


def _struck(said: str, hidden: Iterable[str]) -> str:
    for secret in sorted(hidden, key=len, reverse=True):
        said = said.replace(secret, SHOWN)
    return said


def _printable(said: str) -> str:
    return "".join(one if one.isprintable() else " " for one in said)
