"""Items that stand in a list more than once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from holdfast.config.document import Location
from holdfast.resources.resource import Fault


def repeated(items: Iterable[Hashable], location: Location) -> Iterator[Fault]:
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if item in seen:
            yield Fault((*location, index), f"{item} is listed twice")
        seen.add(item)
