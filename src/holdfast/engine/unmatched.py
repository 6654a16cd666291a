"""Own artifacts of a bulk kind that nothing wants exactly so, by identity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holdfast.engine.artifact import ArtifactKind, Batch

Unpack = Callable[[bytes], tuple[Any, bytes]]


class Unmatched:
    """Nearly every identity is held once, and then costs one entry of a dictionary: a change of
    gateway makes an extra of each of 100 000 routes."""

    def __init__(self, kind: ArtifactKind, bodies: Iterable[bytes], unpack: Unpack) -> None:
        self._kind = kind
        self._only: dict[bytes, dict[bytes, Any]] = defaultdict(dict)  # scope -> key -> template
        self._copies: dict[bytes, list[Any]] = {}  # scope + key -> templates
        scope, last = b"", None
        for body in bodies:
            shared, key = unpack(body)
            if shared is not last:
                scope, last = kind.packing.scope(shared), shared
            self._add(scope, key, shared)

    def _add(self, scope: bytes, key: bytes, shared: Any) -> None:
        here = self._only[scope]
        if self._copies and scope + key in self._copies:
            self._copies[scope + key].append(shared)
        elif key in here:
            self._copies[scope + key] = [here.pop(key), shared]
        else:
            here[key] = shared

    def only(self, scope: bytes) -> dict[bytes, Any]:
        """The templates at the keys of a scope that are held once. Whoever deals with one takes
        it out."""
        return self._only[scope]

    @property
    def copies(self) -> dict[bytes, list[Any]]:
        """The templates at identities (scope + key) that are held more than once."""
        return self._copies

    def take(self, scope: bytes, key: bytes) -> list[Any]:
        """All that is at an identity, which is then dealt with."""
        if scope + key in self._copies:
            # Bodies come from a set; a plan must not depend on the order in which it gives them up.
            return sorted(self._copies.pop(scope + key), key=str)
        here = self._only[scope]
        return [here.pop(key)] if key in here else []

    def batches(self) -> list[Batch]:
        """What is left, in an order that depends on nothing but itself."""
        groups: dict[Any, list[bytes]] = defaultdict(list)
        for shared, key in self._left():
            groups[shared].append(key)
        found = [Batch(self._kind, shared, sorted(keys)) for shared, keys in groups.items()]
        return sorted(found, key=lambda batch: (batch.scope, batch.keys[0], str(batch.template)))

    def _left(self) -> Iterator[tuple[Any, bytes]]:
        for here in self._only.values():
            for key, shared in here.items():
                yield shared, key
        for identity, several in self._copies.items():
            for shared in several:
                yield shared, identity[len(self._kind.packing.scope(shared)) :]
