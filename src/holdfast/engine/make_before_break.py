"""Make before break: what shall go stays while what is declared in its place could not be made.

A route stays while nothing that is declared to its destination is there: who mistypes a gateway
keeps the way there is. Single objects stay while one that is declared for the same purpose is not
there: who renumbers a link keeps its old address until the new one is on it. A link stays while
something stands on it that stays.

What failed because something is in its way is not waited for: that may be what shall go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from holdfast.dataclass import replace
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.bulk_keys import few_of
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds import KINDS, route
from holdfast.engine.kinds.link import LINK
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Verb

# Family and table of a route stand first in its identity, metric and the rest follow.
_PLACE, _SCOPE = 5, 10
_CHANGED = (Verb.UPDATE, Verb.REPLACE)
_IN_PLACE = (Verb.KEEP, Verb.CREATE, Verb.UPDATE, Verb.REPLACE)

Destinations = Mapping[bytes, set[bytes]]  # family and table -> keys
Identities = Mapping[bytes, Set[bytes]]  # scope -> keys


def spare(
    stage: Sequence[Operation], planned: Iterable[Operation], results: Iterable[Result]
) -> tuple[list[Operation], list[Result]]:
    """A stage without the deletes that have to wait, and what is said of those.

    planned: all that is to be there, what was not tried among it. results: of this round.
    """
    leaving = [op for op in stage if op.verb is Verb.DELETE]
    if not leaving:
        return list(stage), []
    if leaving[0].kind == LINK.name:
        return _spare_links(stage, planned, list(results))
    if leaving[0].kind != route.ROUTE.name:
        return _spare_single(stage, planned, list(results))
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


def purposes(artifact: Artifact) -> set[tuple[str, str]]:
    """What an artifact is for, among all kinds."""
    kind = artifact.key.kind
    return {(kind, purpose) for purpose in KINDS[kind].purposes(artifact)}


def carrying(
    staying: Iterable[Artifact | Batch], unchanged: Iterable[Key], observed: Observed
) -> set[Key]:
    """The links that are needed as long as these things stay, and those links stay as they are."""
    upper = {name for subject in staying for name in _stands_on(subject)}
    upper.update(name for key in unchanged for name in _below(_seen(key, observed)))
    found: set[Key] = set()
    while upper:
        links = {Key(LINK.name, name) for name in upper} - found
        upper = {name for key in links for name in _below(_seen(key, observed))}
        found |= links
    return found


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


def _spare_single(
    stage: Sequence[Operation], planned: Iterable[Operation], results: Sequence[Result]
) -> tuple[list[Operation], list[Result]]:
    if not any(_purposes(op) for op in stage if op.verb is Verb.DELETE):
        return list(stage), []
    making = (op for op in planned if op.verb in (Verb.CREATE, Verb.REPLACE))
    lacking = {purpose for op in _failing(making, results) for purpose in _purposes(op)}
    why = "not tried, because what is declared in its place could not be made"
    return _parted(stage, lambda op: not lacking.isdisjoint(_purposes(op)), why)


def _spare_links(
    stage: Sequence[Operation], planned: Iterable[Operation], results: Sequence[Result]
) -> tuple[list[Operation], list[Result]]:
    staying = [
        result.operation
        for result in results
        if result.operation.verb is Verb.DELETE and not result.ok
    ]
    needed = {name for op in staying for name in _stands_on(op.subject)}
    changing = [op for op in planned if op.kind == LINK.name and op.verb in _CHANGED]
    for op in (*staying, *_failing(changing, results)):
        needed.update(_below(op.observed))
    why = "not tried, because something on it could not be moved elsewhere"
    return _parted(stage, lambda op: not needed.isdisjoint(_stands_on(op.subject)), why)


def _parted(
    stage: Sequence[Operation], stays: Callable[[Operation], bool], why: str
) -> tuple[list[Operation], list[Result]]:
    """The operations of a stage without the deletes that wait, and what is said of those."""
    going: list[Operation] = []
    waiting: list[Result] = []
    for op in stage:
        subject = op.subject
        if op.verb is Verb.DELETE and isinstance(subject, Artifact) and stays(op):
            waiting.append(Result(op, 0, (Failure(subject.key, why),)))
        else:
            going.append(op)
    return going, waiting


def _failing(planned: Iterable[Operation], results: Sequence[Result]) -> list[Operation]:
    """The operations on single objects that were not carried out, though nothing is in their
    way."""
    told: dict[Key, Result] = {}
    obstructed: set[Key] = set()
    for result in results:
        subject, requires = result.operation.subject, result.operation.requires
        if isinstance(subject, Artifact):
            told[subject.key] = result
            by_itself = any(failure.obstructed for failure in result.failures)
            if by_itself or (not result.ok and not obstructed.isdisjoint(requires)):
                obstructed.add(subject.key)
    return [
        op
        for op in planned
        if isinstance(op.subject, Artifact)
        and (op.subject.key not in told or not told[op.subject.key].ok)
        and op.subject.key not in obstructed
    ]


def _purposes(operation: Operation) -> set[tuple[str, str]]:
    return purposes(operation.subject) if isinstance(operation.subject, Artifact) else set()


def _stands_on(subject: Artifact | Batch) -> set[str]:
    """The names of links; of a link its own."""
    if isinstance(subject, Batch):
        return {hop.dev for hop in subject.template.nexthops if hop.dev}
    return {KINDS[subject.key.kind].carrying_link(subject.key)} - {""}


def _below(seen: Artifact | Batch | None) -> set[str]:
    """The links that a link is on or a port of, as it was seen."""
    if not isinstance(seen, Artifact) or seen.key.kind != LINK.name:
        return set()
    return {str(seen.fields[name]) for name in ("master", "parent") if seen.fields.get(name)}


def _seen(key: Key, observed: Observed) -> Artifact | None:
    return next((sighting.artifact for sighting in observed.sightings.get(key, ())), None)


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
