"""Tokens of a source as the startup file declares them: by their digests, or by a variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.resources.spec.shape import Shape

PREFIX = "sha256:"
# The one in use and the next one, while programs change over.
MOST = 2
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

OfToken = Callable[[str], bytes | None]


def as_declared(digest: bytes) -> str:
    return f"{PREFIX}{digest.hex()}"


def _read(value: Any) -> str:
    """What is wrong is said without the text: somebody may have written the token itself."""
    if not isinstance(value, str) or not (_DIGEST.fullmatch(value) or _VARIABLE.fullmatch(value)):
        raise ValueError(
            "must be `sha256:` and 64 lower-case hexadecimal digits, as `holdfast dynamic token`"
            " prints them, or ${NAME} of a variable of the daemon with the digest or the token"
        )
    return value


def shape() -> Shape:
    pattern = rf"^({_DIGEST.pattern}|{_VARIABLE.pattern})$"
    return Shape(_read, {"type": "string", "pattern": pattern}, "`sha256:HEX` or `${NAME}`")


def digest(declared: str, environment: Mapping[str, str], of_token: OfToken) -> bytes:
    """Of the token that was declared so. of_token: its digest; None for what can be none. Raises
    ValueError, without any of it in the words."""
    variable = _VARIABLE.fullmatch(declared)
    said = environment.get(variable[1], "") if variable else declared
    if _DIGEST.fullmatch(said):
        return bytes.fromhex(said.removeprefix(PREFIX))
    if variable is None:
        raise ValueError("is not `sha256:` and 64 lower-case hexadecimal digits")
    if not said:
        raise ValueError(f"names {declared}, which the daemon's environment does not have")
    found = None if said.startswith(PREFIX) else of_token(said)
    if found is None:
        raise ValueError(
            f"names {declared}, which holds neither a digest nor a token of 16 to 512 printable"
            " characters"
        )
    return found
