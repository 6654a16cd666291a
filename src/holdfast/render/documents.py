"""Documents: written piece by piece, so that their size is no matter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.characters import escaped_json

Members = Iterable[tuple[str, Any]]


def json_text(members: Members) -> Iterator[str]:
    """One line per member, and one per item of a list: to be read by people and grep as well.

    A member whose value is an iterator is a list."""
    separator = "{\n"
    for name, value in members:
        yield f"{separator}  {json.dumps(name)}: "
        separator = ",\n"
        if not isinstance(value, Iterator):
            yield _dumped(value)
            continue
        opening = "[\n"
        for item in value:
            yield f"{opening}    {_dumped(item)}"
            opening = ",\n"
        yield "[]" if opening == "[\n" else "\n  ]"
    yield "{}\n" if separator == "{\n" else "\n}\n"


def _dumped(value: Any) -> str:
    return escaped_json(json.dumps(value, ensure_ascii=False))
