"""Lengths of time as they are written in YAML: 500ms, 90s, 1m30s, 12h."""

from __future__ import annotations

import re
from typing import Any

from holdfast.resources.spec.shape import Shape, no_networks

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_WHOLE = rf"(?:{_PART})+"


def parse_duration(value: Any) -> float:
    """Seconds."""
    if not isinstance(value, str) or not re.fullmatch(_WHOLE, value):
        raise ValueError(f"{value!r} is not a length of time such as 30s, 1m30s or 12h")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))


def duration(low: float, high: float) -> Shape:
    """Seconds as a float, from `low` to `high`."""

    def read(value: Any) -> float:
        seconds = parse_duration(value)
        if not low <= seconds <= high:
            limits = f"from {format_duration(low)} to {format_duration(high)}"
            raise ValueError(f"must be {limits}, not {value}")
        return seconds

    shown = f"length of time, {format_duration(low)} to {format_duration(high)}"
    pattern = r"^(\d+(\.\d+)?(ms|s|m|h|d))+$"
    return Shape(read, {"type": "string", "pattern": pattern}, shown, reach=no_networks)


def format_duration(seconds: float) -> str:
    """The shortest way to write it: 90 is 1m30s."""
    milliseconds = round(seconds * 1000)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
