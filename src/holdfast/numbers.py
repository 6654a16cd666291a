"""Numbers as people read them."""

from __future__ import annotations


def thousands(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 route`, `100 000 routes`."""
    return f"{thousands(number)} {singular if number == 1 else plural or singular + 's'}"
