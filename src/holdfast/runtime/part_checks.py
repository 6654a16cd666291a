"""What must hold of every part before it is stored, whatever else there is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from holdfast import characters
from holdfast.config.part import Part
from holdfast.config.redaction import is_secret
from holdfast.errors import Problem
from holdfast.resources.dynamic.dynamic_config_part import GENERATION_MAX

# How far ahead the clock of a source may be. One that is further ahead would keep its part in
# force for that much longer than it may.
SKEW_S = 10.0
# What a plugin may write at most in one run; 40 000 lines of routes are about 1 MB.
MOST_BYTES = 4 << 20
MOST_RESOURCES = 10_000
_MOST_DEPTH = 32
_MOST_KEY = 253
_MOST_TEXT = 1024


def problems(part: Part, now: float) -> Iterator[Problem]:
    if not 0 < part.generation <= GENERATION_MAX:
        yield wrong(part, "generation", f"{part.generation} is not from 1 to {GENERATION_MAX}")
    for path, message in (*_times(part, now), *_contents(part)):
        yield wrong(part, path, message)


def wrong(part: Part, path: str, message: str) -> Problem:
    return Problem(part.ref, f"spec.{path}", message)


def _times(part: Part, now: float) -> Iterator[tuple[str, str]]:
    if not math.isfinite(part.observed) or part.observed < 0:
        yield "observedAt", "is no point in time"
        return
    if part.observed > now + SKEW_S:
        ahead = part.observed - now
        yield "observedAt", f"lies {ahead:.0f} s in the future: the clock of the source is wrong"
    if part.expires is None:
        return
    if not math.isfinite(part.expires):
        yield "expiresAt", "is no point in time"
    elif part.expires <= part.observed:
        yield "expiresAt", "is not after observedAt"
    elif part.expired(now):
        yield "expiresAt", f"was {now - part.expires:.0f} s ago: there is nothing to put in force"


def _contents(part: Part) -> Iterator[tuple[str, str]]:
    """One reason at a time: each of them may be true of thousands of resources."""
    if len(part.resources) > MOST_RESOURCES:
        yield "resources", f"are {len(part.resources)}, more than {MOST_RESOURCES}"
        return
    for path, values in (("resources", part.resources), ("actionPlans", part.action_plans)):
        for number, value in enumerate(values):
            trouble = _trouble(value, 0)
            if trouble:
                yield f"{path}[{number}]", trouble
                return
    for number, raw in enumerate(part.resources):
        # By name, and not only where a kind has such a field: what is stored is kept and shown,
        # whether the merge takes it or not.
        secret = _secret(raw, f"resources[{number}]")
        if secret:
            yield secret, "a part cannot hold a secret: the ledger would keep it"
            return
    for number, directive in enumerate(part.directives):
        for name, text in (*directive.target._asdict().items(), ("reason", directive.reason)):
            if characters.trouble(text) or len(text) > _MOST_TEXT:
                yield f"directives[{number}]", f"{name} is too long, or cannot be printed"
                return
    size = len(json.dumps([part.resources, part.action_plans], allow_nan=False))
    if size > MOST_BYTES:
        yield "resources", f"take {size} bytes, more than {MOST_BYTES}"


def trouble_of_resource(raw: Any) -> str:
    """Of one that is declared by itself; empty where nothing is wrong."""
    if not isinstance(raw, dict):
        return "is no document of a resource: apiVersion, kind, metadata, spec"
    trouble, secret = _trouble(raw, 0), _secret(raw, "")
    if not trouble and secret:
        trouble = f"{secret.lstrip('.')}: no source can hand in a secret: the ledger would keep it"
    return trouble


def _trouble(value: Any, depth: int) -> str:
    """What makes a value no plain JSON that can be stored and shown; empty where nothing does."""
    if depth > _MOST_DEPTH:
        return f"is nested more than {_MOST_DEPTH} levels deep"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or characters.trouble(key) or len(key) > _MOST_KEY:
                return f"has a field name that is none: {str(key)[:40]!r}"
        return next(filter(None, (_trouble(one, depth + 1) for one in value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (_trouble(one, depth + 1) for one in value)), "")
    if isinstance(value, float) and not math.isfinite(value):
        return f"holds {value}, which is no number"
    if isinstance(value, str):
        return _unfit(value)
    if value is None or isinstance(value, bool | int | float):
        return ""
    return f"holds a {type(value).__name__}, which JSON has not"


def _secret(value: Any, path: str) -> str:
    """The path to the first field that is named like a secret and holds something."""
    if isinstance(value, dict):
        for name, one in value.items():
            below = f"{path}.{name}"
            found = below if is_secret(name) and one is not None else _secret(one, below)
            if found:
                return found
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            found = _secret(one, f"{path}[{number}]")
            if found:
                return found
    return ""


def _unfit(text: str) -> str:
    said = characters.trouble(text, lines=True)
    return f"holds text that cannot be taken: it {said}" if said else ""
