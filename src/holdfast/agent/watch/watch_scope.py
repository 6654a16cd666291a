"""What is watched over: declared and claimed artifacts, for telling what matters from the rest."""

from __future__ import annotations

from collections.abc import Container, Iterable

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.bulk_keys import Keys
from holdfast.engine.claim import Claim
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds.neighbour import NEIGHBOUR
from holdfast.engine.kinds.route import ROUTE, identify, split_identity


@dataclass(slots=True)
class WatchScope:
    tag: int
    keys: frozenset[Key] = frozenset()
    batches: tuple[Batch, ...] = ()
    routes: frozenset[bytes] = frozenset()  # identities of those not in a batch
    protocols: frozenset[int] = frozenset()  # ours, and those of adopted routes
    untagged_neighbours: bool = False  # of adopted neighbours nothing tells that they are ours
    kinds: frozenset[str] = frozenset()
    lacking: bool = False  # a fact about routes, as the link of their gateway
    _by_scope: dict[bytes, list[Batch]] | None = None
    _sets: dict[int, frozenset[bytes]] = field(default_factory=dict)

    def holds(self, identity: bytes) -> bool:
        """Is it that of a route of ours? Sets are made of keys only once this is asked: nobody may
        ever touch what is beside ours."""
        if identity in self.routes:
            return True
        if self._by_scope is None:
            self._by_scope = {}
            for batch in self.batches:
                self._by_scope.setdefault(batch.scope, []).append(batch)
        scope, key = split_identity(identity)
        return any(key in self._keys(batch) for batch in self._by_scope.get(scope, ()))

    def take_over(self, before: WatchScope) -> None:
        """What was made of batches that are still declared."""
        kept = {id(batch) for batch in before.batches} & {id(batch) for batch in self.batches}
        self._sets.update((one, before._sets[one]) for one in kept & before._sets.keys())

    def _keys(self, batch: Batch) -> Container[bytes]:
        if isinstance(batch.keys, Keys):  # it has a set of its own
            return batch.keys
        found = self._sets.get(id(batch))
        if found is None:
            found = self._sets[id(batch)] = frozenset(batch.keys)
        return found


def watch_scope(desired: Desired, claims: Iterable[Claim], tag: int) -> WatchScope:
    keys: set[Key] = set()
    batches: list[Batch] = []
    routes: set[bytes] = set()
    for intent in desired.intents:
        keys.update(intent.requires)
        if isinstance(intent, BulkIntent):
            batches.append(intent.batch)
        else:
            keys.add(intent.artifact.key)
            if intent.artifact.key.kind == ROUTE.name:
                routes.add(b"".join(identify(intent.artifact.fields)))
    protocols: set[int] = set()
    untagged = False
    for claim in claims:
        keys.add(claim.key)
        protocol = claim.fields.get("protocol")
        if claim.key.kind == ROUTE.name:
            routes.add(b"".join(identify(claim.fields)))
            if isinstance(protocol, int):
                protocols.add(protocol)
        elif claim.key.kind == NEIGHBOUR.name and protocol != tag:
            untagged = True
    return WatchScope(
        tag,
        frozenset(keys),
        tuple(batches),
        frozenset(routes),
        frozenset(protocols | {tag}),
        untagged,
        frozenset(key.kind for key in keys) | frozenset(batch.kind.name for batch in batches),
        any(isinstance(intent, BulkIntent) and intent.lacks for intent in desired.intents),
    )
