"""What of ours the kernel takes along with an operation, said in the plan.

Another round of the same pass puts back what is still declared, as a create of its own; whoever
reads the plan is told of it beforehand. It is no part of what makes a plan the same as another:
nothing is done but what was declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from holdfast.dataclass import replace
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Action, BulkIntent, Desired
from holdfast.engine.kinds import KINDS, route
from holdfast.engine.observed import Along, Observed
from holdfast.engine.plan import Operation, Verb


def told(
    operations: Sequence[Operation], desired: Desired, observed: Observed, missing: Collection[Key]
) -> list[Operation]:
    """The operations, each with what goes along. missing: what cannot be made now."""
    taking = {
        number: found
        for number, op in enumerate(operations)
        if (found := _taken(op, observed)) and op.verb.changes_host
    }
    if not taking:
        return list(operations)
    stays = _Declared(desired, operations)
    result = list(operations)
    for number, found in taking.items():
        kept = (one for one in found if stays.holds(one.key))
        told_ = (replace(one, put_back=one.put_back and one.key not in missing) for one in kept)
        result[number] = replace(result[number], along=tuple(dict.fromkeys(told_)))
    return result


def _taken(operation: Operation, observed: Observed) -> list[Along]:
    if not isinstance(operation.subject, Artifact):
        return []
    ends = operation.verb in (Verb.DELETE, Verb.REPLACE)
    fields = {change.field for change in operation.changes} | {""}
    found = observed.along.get(operation.subject.key, ())
    return [one for one in found if ends or one.field in fields]


class _Declared:
    """What is declared, and not made or deleted by the plan anyway."""

    def __init__(self, desired: Desired, operations: Iterable[Operation]) -> None:
        self._keys: set[Key] = set()
        self._routes: dict[bytes, set[bytes]] = defaultdict(set)
        for intent in desired.intents:
            if isinstance(intent, BulkIntent):
                self._routes[intent.batch.scope].update(intent.batch.keys)
            elif intent.action is Action.ENSURE:
                self._keys.add(intent.artifact.key)
        for op in operations:
            if isinstance(op.subject, Artifact) and op.verb in (Verb.CREATE, Verb.REPLACE):
                self._keys.discard(op.subject.key)

    def holds(self, key: Key) -> bool:
        if not KINDS[key.kind].bulk:
            return key in self._keys
        scope, packed = route.split_identity(route.identity(key))
        return packed in self._routes.get(scope, ()) or key in self._keys
