"""A daemon whose API cannot be reached, as commands beside it learn of it."""

from __future__ import annotations

import os

from holdfast.dataclass import dataclass
from holdfast.host import namespace_presence
from holdfast.host.namespace_holder import place_of
from holdfast.paths import Paths

_PURPOSE = "unserved"


@dataclass(slots=True)
class Unserved:
    """Said by a name of the network namespace: there may be no room for a file."""

    paths: Paths
    _said: int | None = None

    def say(self) -> None:
        if self._said is None:
            self._said = namespace_presence.say(_PURPOSE, place_of(self.paths.root))

    def close(self) -> None:
        if self._said is not None:
            os.close(self._said)
            self._said = None


def told(paths: Paths) -> str:
    """For people to read; "" where there is no such daemon."""
    process = namespace_presence.holder_of(_PURPOSE, place_of(paths.root))
    if not process:
        return ""
    return (
        f"a daemon (process {process}) is at work here and cannot be asked: it could not make its"
        " sockets, as its log says. What it knows and could not write is not known to this command"
    )
