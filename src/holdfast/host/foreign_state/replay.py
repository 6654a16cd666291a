"""Indexes of links as they were when the record was taken, and as they are now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from holdfast.dataclass import dataclass
from holdfast.host.netlink import attributes


class Unmapped(Exception):  # noqa: N818 (no error: the link is gone for good)
    """A link that something stood on is not there."""


@dataclass(frozen=True, slots=True)
class Indexes:
    before: Mapping[int, str]  # names
    today: Mapping[str, int]

    @property
    def names(self) -> dict[int, str]:
        """Of now."""
        return {index: name for name, index in self.today.items()}

    def now(self, packed: bytes) -> bytes:
        """The index of the link that has the name now. Raises Unmapped."""
        index = attributes.to_int(packed)
        if index == 0:
            return packed
        name = self.before.get(index)
        if name is None or name not in self.today:
            raise Unmapped(f"link {name or index} is not there")
        return self.today[name].to_bytes(4, sys.byteorder)


# What makes a message of what was told, in the indexes of now. Raises Unmapped.
Again = Callable[[bytes, Indexes], bytes]
