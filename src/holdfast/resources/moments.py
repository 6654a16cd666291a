"""Points in time as documents write them (RFC 3339), in seconds since 1970."""

from __future__ import annotations

import re
from calendar import monthrange, timegm

from holdfast.resources.shape import Shape, parsed

_MOMENT = r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:[Zz]|([+-])(\d\d):(\d\d))"


def parse_moment(text: str) -> float:
    found = re.fullmatch(_MOMENT, text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is not a point in time such as 2026-05-29T12:00:00Z")
    year, month, day, hour, minute, second = (int(found[number]) for number in range(1, 7))
    possible = (
        year >= 1970
        and 1 <= month <= 12
        and 1 <= day <= monthrange(year, month)[1]
        and hour <= 23
        and minute <= 59
        and second <= 59
        and int(found[9] or 0) <= 23
        and int(found[10] or 0) <= 59
    )
    if not possible:
        raise ValueError(f"{text!r} is no point in time that ever was or will be")
    seconds = timegm((year, month, day, hour, minute, second)) + float(found[7] or 0)
    if found[8]:
        offset = int(found[9]) * 3600 + int(found[10]) * 60
        seconds += offset if found[8] == "-" else -offset
    return seconds


def format_moment(seconds: float) -> str:
    """In UTC, to the millisecond where there are any."""
    whole, millis = divmod(round(seconds * 1000), 1000)
    days, rest = divmod(whole, 86_400)
    year = 1970 + days // 366
    while timegm((year + 1, 1, 1, 0, 0, 0)) <= whole:
        year += 1
    days -= timegm((year, 1, 1, 0, 0, 0)) // 86_400
    month = 1
    while days >= monthrange(year, month)[1]:
        days -= monthrange(year, month)[1]
        month += 1
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    part = f".{millis:03}" if millis else ""
    return f"{year:04}-{month:02}-{days + 1:02}T{clock}{part}Z"


def moment() -> Shape:
    return parsed(parse_moment, "point in time, as 2026-05-29T12:00:00Z", {"format": "date-time"})
