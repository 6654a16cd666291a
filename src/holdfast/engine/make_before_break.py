"""Make before break, for routes: one that shall go stays while none of those that are declared to
its destination could be made. Who mistypes a gateway keeps the way there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from holdfast.dataclass import replace
from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.bulk_keys import few_of
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds import route
from holdfast.engine.plan import Operation, Verb

# Family and table of a route stand first in its identity, metric and the rest follow.
_PLACE, _SCOPE = 5, 10
_IN_PLACE = (Verb.KEEP, Verb.CREATE, Verb.UPDATE, Verb.REPLACE)

Destinations = Mapping[bytes, set[bytes]]  # family and table -> keys
Identities = Mapping[bytes, Set[bytes]]  # scope -> keys


def spare(
    stage: Sequence[Operation], planned: Iterable[Operation], results: Iterable[Result]
) -> tuple[list[Operation], list[Result]]:
    """A stage without the deletes that have to wait, and what is said of those.

    planned: all that is to be there, what was not tried among it. results: of this round.
    """
    leaving = [op for op in stage if op.verb is Verb.DELETE and op.kind == route.ROUTE.name]
    if not leaving:
        return list(stage), []
    held = _unserved(_destinations(leaving), planned, results)
    if not any(held.values()):
        return list(stage), []
    ready: list[Operation] = []
    waiting: list[Result] = []
    for op in stage:
        going, staying = _split(op, held)
        ready += [going] if going is not None else []
        waiting += [staying] if staying is not None else []
    return ready, waiting


def awaited(
    leaving: Batch, waiting: Iterable[tuple[bytes, Sequence[bytes]]], planned: Iterable[Operation]
) -> set[bytes]:
    """Of routes that nothing declares, those to destinations that others are declared to, which
    wait, and that nothing else leads to. waiting: scopes and keys."""
    place = leaving.scope[:_PLACE]
    lists = [keys for scope, keys in waiting if scope[:_PLACE] == place]
    if not lists:
        return set()
    going = set(leaving.keys)
    found = {key for keys in lists for key in few_of(going, keys)}
    for op in planned if found else ():
        if op.kind == route.ROUTE.name and op.verb in _IN_PLACE:
            where, keys = _contents(op.subject)
            found.difference_update(few_of(found, keys) if where == place else ())
    return found


def concerned(touched: Identities, unsettled: Identities) -> bool:
    """Shall others that are not as declared lead where some of those do that were touched? Then
    these cannot be dealt with alone."""
    return any(
        scope != other and scope[:_PLACE] == other[:_PLACE] and not keys.isdisjoint(others)
        for scope, keys in touched.items()
        for other, others in unsettled.items()
    )


def _destinations(operations: Iterable[Operation]) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = {}
    for op in operations:
        place, keys = _contents(op.subject)
        found.setdefault(place, set()).update(keys)
    return found


def _unserved(
    leaving: Destinations, planned: Iterable[Operation], results: Iterable[Result]
) -> Destinations:
    """Of the destinations of what shall go, those that something is declared to, and nothing of
    that is there."""
    told = {id(result.operation): result for result in results}
    lacking: dict[bytes, set[bytes]] = {place: set() for place in leaving}
    served: dict[bytes, set[bytes]] = {place: set() for place in leaving}
    for op in planned:
        if op.kind != route.ROUTE.name or op.verb not in _IN_PLACE:
            continue
        place, keys = _contents(op.subject)
        here = set(few_of(leaving[place], keys)) if place in leaving else set()
        if here:
            failed = here & _failed(here, told.get(id(op))) if op.verb is not Verb.KEEP else set()
            lacking[place] |= failed
            served[place] |= here - failed
    return {place: keys - served[place] for place, keys in lacking.items()}


def _failed(keys: set[bytes], result: Result | None) -> set[bytes]:
    if result is None or not result.done:
        return keys
    return {route.identity(failure.key)[_SCOPE:] for failure in result.failures}


def _contents(subject: Artifact | Batch) -> tuple[bytes, Sequence[bytes]]:
    if isinstance(subject, Batch):
        return subject.scope[:_PLACE], subject.keys
    scope, key = route.identify(subject.fields)
    return scope[:_PLACE], [key]


def _split(op: Operation, held: Destinations) -> tuple[Operation | None, Result | None]:
    place, keys = _contents(op.subject)
    stays = set(few_of(held.get(place, set()), keys)) if op.verb is Verb.DELETE else set()
    if not stays:
        return op, None
    if isinstance(op.subject, Artifact):
        return None, _kept(op, [op.subject])
    batch = op.subject
    going = [key for key in keys if key not in stays]
    kept = replace(op, subject=replace(batch, keys=sorted(stays)))
    left = replace(op, subject=replace(batch, keys=going)) if going else None
    return left, _kept(kept, [batch.artifact(key) for key in sorted(stays)])


def _kept(op: Operation, artifacts: Iterable[Artifact]) -> Result:
    why = "not tried, because what is declared to that destination could not be made"
    return Result(op, 0, tuple(Failure(artifact.key, why) for artifact in artifacts))
