"""Tokens by which programs speak for a source. Only their digests are kept anywhere."""

from __future__ import annotations

import hashlib
import re
import secrets

_TOKEN = re.compile(r"[!-~]{16,512}")


def fresh() -> str:
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def digest_of(token: str) -> bytes:
    """A token is random and long: there is nothing to slow down."""
    return hashlib.sha256(token.encode("ascii")).digest()
