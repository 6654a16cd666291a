"""JSON as the ledger stores it, and its way back into field values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.engine.artifact import Fields, Value

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]

# A part may nest 32 deep, and stands a few levels inside of an export.
_MOST_DEPTH = 48
_SCALARS = frozenset((str, int, bool, type(None)))
_decode = json.JSONDecoder().raw_decode


def unstorable(value: Any) -> Iterator[tuple[str, str]]:
    """What of a value read from JSON could not be stored and given back: where, and why."""
    left: list[tuple[str, Any, int]] = [("", value, 0)]
    while left:  # no recursion: it may be as deep as whoever wrote it likes
        path, one, depth = left.pop()
        if isinstance(one, str):
            if not _whole(one):
                yield path, "holds half of a character (a surrogate)"
        elif isinstance(one, float) and not math.isfinite(one):
            yield path, f"{one} is no number"
        elif isinstance(one, dict | list) and depth >= _MOST_DEPTH:
            yield path, f"is nested more than {_MOST_DEPTH} levels deep"
        elif isinstance(one, dict):
            if not all(map(_whole, one)):
                yield path, "a name in it holds half of a character (a surrogate)"
            inner = [(f"{path}.{name}".lstrip("."), item, depth + 1) for name, item in one.items()]
            left += reversed(inner)
        elif isinstance(one, list):
            items = [(f"{path}[{at}]", item, depth + 1) for at, item in enumerate(one)]
            left += reversed(items)


def _whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def dump(value: object) -> str:
    """The text whose digest is a claim's fingerprint: the same form as `artifact.fingerprint`."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def load(text: str) -> JSON:
    decoded: JSON = json.loads(text)
    return decoded


def dump_fields(fields: Fields) -> str:
    return dump(dict(fields))


def fields_from(decoded: Any) -> dict[str, Value]:
    """Checks what JSON made of stored fields and turns lists back into tuples; ValueError."""
    if not isinstance(decoded, dict):
        raise ValueError("fields are not a JSON object")
    if _SCALARS.issuperset(map(type, decoded.values())):
        return decoded
    for name, value in decoded.items():
        if type(value) in _SCALARS:
            continue
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"field {name!r} holds {value!r}, which no artifact has")
        decoded[name] = tuple(value)
    return decoded


def load_fields(text: str) -> dict[str, Value]:
    # raw_decode skips the search for white space, half of what a short text costs.
    decoded, end = _decode(text)
    if end != len(text):
        raise ValueError(f"more than one value in {text!r}")
    return fields_from(decoded)


def load_names(text: str) -> tuple[str, ...]:
    decoded = json.loads(text)
    if not isinstance(decoded, list) or not all(isinstance(item, str) for item in decoded):
        raise ValueError("not a JSON list of names")
    return tuple(decoded)


def load_mapping(text: str) -> Mapping[str, JSON]:
    decoded = json.loads(text)
    if not isinstance(decoded, dict):
        raise ValueError("not a JSON object")
    return decoded
