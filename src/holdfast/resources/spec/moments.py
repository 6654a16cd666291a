"""Points in time as documents write them (RFC 3339), in seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from holdfast.resources.spec.shape import Shape, parsed

_MOMENT = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:(\d\d))"
_LAST = 253_402_300_799  # the last second of the year 9999


def parse_moment(text: str) -> float:
    found = re.fullmatch(_MOMENT, text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is not a point in time such as 2026-05-29T12:00:00Z")
    try:
        told = datetime.fromisoformat(text.upper())
    except ValueError:
        told = None
    # An offset of 22:60 is 23:00 to Python.
    if told is None or int(found[1] or 0) > 59 or told.year < 1970 or told.timestamp() > _LAST:
        raise ValueError(f"{text!r} is no point in time that ever was or will be")
    return told.timestamp()


def format_moment(seconds: float) -> str:
    """In UTC, to the millisecond where there are any. Years end with 9999."""
    whole, millis = divmod(round(seconds * 1000), 1000)
    part = f".{millis:03}" if millis else ""
    told = datetime.fromtimestamp(min(whole, _LAST), UTC)
    return f"{told:%Y-%m-%dT%H:%M:%S}{part}Z"


def moment() -> Shape:
    return parsed(parse_moment, "point in time, as 2026-05-29T12:00:00Z", {"format": "date-time"})
