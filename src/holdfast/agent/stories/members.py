"""Documents: written piece by piece, so that their size is no matter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Members = Iterable[tuple[str, Any]]


def json_text(members: Members) -> Iterator[str]:
    """One line per member, and one per item of a list: to be read by people and grep as well.

    A member whose value is an iterator is a list."""
    separator = "{\n"
    for name, value in members:
        yield f"{separator}  {json.dumps(name)}: "
        separator = ",\n"
        if not isinstance(value, Iterator):
            yield json.dumps(value, ensure_ascii=False)
            continue
        opening = "[\n"
        for item in value:
            yield f"{opening}    {json.dumps(item, ensure_ascii=False)}"
            opening = ",\n"
        yield "[]" if opening == "[\n" else "\n  ]"
    yield "{}\n" if separator == "{\n" else "\n}\n"
