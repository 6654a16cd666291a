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


def moment() -> Shape:
    return parsed(parse_moment, "point in time, as 2026-05-29T12:00:00Z", {"format": "date-time"})
