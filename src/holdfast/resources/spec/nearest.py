"""The known word nearest to one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 200  # no word of ours is longer, and comparing takes time


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, empty where nothing is near."""
    if len(word) > _LONGEST:
        return ""
    lower = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""
