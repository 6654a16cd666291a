"""Which fields of each kind hold secrets, as the kinds declare them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from holdfast.resources import registry
from holdfast.resources.spec.shape import Spec


@cache
def of_kind(name: str) -> frozenset[str]:
    """Their names; none of a kind that there is not."""
    kind = registry.find(name)
    return frozenset(_secret(kind.spec)) if kind is not None else frozenset()


def _secret(spec: type[Spec]) -> Iterator[str]:
    for entry in spec.entries:
        if entry.secret:
            yield entry.name
        elif entry.shape.nested is not None:
            yield from _secret(entry.shape.nested)
