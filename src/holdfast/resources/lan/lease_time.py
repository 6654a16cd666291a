"""How long DHCP clients may keep what they were given."""

from __future__ import annotations

from typing import Any

from holdfast.resources.spec.durations import parse_duration
from holdfast.resources.spec.shape import Shape

INFINITE = 0xFFFFFFFF  # what DHCP says for ever with, in both families
DEFAULT = 12 * 3600
# dnsmasq raises anything shorter to this by itself.
_LEAST = 120
_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


def parse_lease_time(value: Any) -> int:
    """Seconds."""
    if value == "infinite":
        return INFINITE
    seconds = parse_duration(value)
    if not _LEAST <= seconds < INFINITE:
        raise ValueError(f"must be at least 2m, or `infinite`, not {value}")
    if seconds != int(seconds):
        raise ValueError(f"must be whole seconds, not {value}")
    return int(seconds)


def lease_time() -> Shape:
    pattern = r"^(infinite|(\d+(\.\d+)?(ms|s|m|h|d))+)$"
    shown = "length of time, 2m or more, or `infinite`"
    return Shape(parse_lease_time, {"type": "string", "pattern": pattern}, shown)


def shown(seconds: int) -> str:
    """As dnsmasq reads it: one number and one unit."""
    if seconds == INFINITE:
        return "infinite"
    return next(
        (f"{seconds // size}{unit}" for unit, size in _UNITS if not seconds % size), ""
    ) or (f"{seconds}s")
