"""JSON as the ledger stores it, and its way back into field values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.engine.artifact import Fields, Value

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]

_SCALARS = frozenset((str, int, bool, type(None)))
_decode = json.JSONDecoder().raw_decode


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
