"""What changed of a bulk kind between two configurations, or outside: the few that differ among
very many, planned as a full pass would plan them. Pure.

A list of keys that is the same object is the same list: whoever loads a configuration again keeps
the lists that did not change. For the others, comparing lists from both ends costs next to nothing
where few differ, as their keys are the same objects too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import guard, ownership
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key
from holdfast.engine.bulk_keys import Keys, Without, few_of
from holdfast.engine.intent import BulkIntent, Desired, Intent, Waiting
from holdfast.engine.order import order
from holdfast.engine.partial_pass import FullPassNeeded
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.engine.policy import Policy

Identities = Mapping[bytes, Set[bytes]]  # scope -> keys


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is declared otherwise than before, each at one identity alone: scope and key."""

    before: dict[bytes, BulkIntent] = field(default_factory=dict)
    now: dict[bytes, BulkIntent] = field(default_factory=dict)

    def goes(self, identity: bytes, intent: BulkIntent) -> None:
        if self.now.pop(identity, None) is None:
            self.before[identity] = intent

    def comes(self, identity: bytes, intent: BulkIntent) -> None:
        self.now[identity] = intent

    def touched(self, kind: ArtifactKind) -> dict[bytes, set[bytes]]:
        return joined(
            *(_at(kind, intent.batch) for intent in (*self.before.values(), *self.now.values()))
        )


# Shorter lists are compared as sets, all together: a resource for each route has a list for each.
_SHORT = 64


def differing(before: Iterable[Batch], after: Iterable[Batch]) -> dict[bytes, set[bytes]]:
    """The identities that are not known to be wanted alike. A few that are may be among them."""
    old, new = _by_template(before), _by_template(after)
    found: dict[bytes, set[bytes]] = defaultdict(set)
    for template in dict.fromkeys((*old, *new)):
        batches = (*old.get(template, ()), *new.get(template, ()))
        keys = _apart(
            [batch.keys for batch in old.get(template, ())],
            [batch.keys for batch in new.get(template, ())],
        )
        if keys:
            found[batches[0].scope] |= keys
    return dict(found)


def _by_template(batches: Iterable[Batch]) -> dict[Any, list[Batch]]:
    found: dict[Any, list[Batch]] = defaultdict(list)
    for batch in batches:
        found[batch.template].append(batch)
    return found


def _apart(old: list[Sequence[bytes]], new: list[Sequence[bytes]]) -> set[bytes]:
    """What is in lists of one side and not of the other; of what is in several, perhaps some."""
    shared = {id(keys) for keys in old} & {id(keys) for keys in new}
    few_old, many_old = _by_length(keys for keys in old if id(keys) not in shared)
    few_new, many_new = _by_length(keys for keys in new if id(keys) not in shared)
    found = few_old ^ few_new
    # Whatever the pairs are, what differs on the whole differs within one of them.
    for number in range(max(len(many_old), len(many_new))):
        first = many_old[number] if number < len(many_old) else ()
        second = many_new[number] if number < len(many_new) else ()
        found |= _between(first, second)
    return found


def _by_length(lists: Iterable[Sequence[bytes]]) -> tuple[set[bytes], list[Sequence[bytes]]]:
    few: set[bytes] = set()
    many = []
    for keys in lists:
        if len(keys) < _SHORT:
            few.update(keys)
        else:
            many.append(keys)
    return few, many


def _between(old: Sequence[bytes], new: Sequence[bytes]) -> Set[bytes]:
    known = old.differing(new) if isinstance(old, Keys) and isinstance(new, Keys) else None
    if known is not None:
        return known
    start = _common(old, new, min(len(old), len(new)))
    left = min(len(old), len(new)) - start
    end = _common_end(old, new, left)
    return set(old[start : len(old) - end]).symmetric_difference(new[start : len(new) - end])


def _common(old: Sequence[bytes], new: Sequence[bytes], most: int) -> int:
    """How many are the same from the start. Equal objects are compared without being looked at."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: Sequence[bytes], new: Sequence[bytes], most: int) -> int:
    low, high = 0, most
    one, other = len(old), len(new)
    while low < high:
        middle = (low + high + 1) // 2
        if old[one - middle : one - low] == new[other - middle : other - low]:
            low = middle
        else:
            high = middle - 1
    return low


def joined(*parts: Identities) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = defaultdict(set)
    for part in parts:
        for scope, keys in part.items():
            found[scope] |= keys
    return dict(found)


def common(identities: Identities, other: Identities) -> Identities:
    return {scope: keys & other[scope] for scope, keys in identities.items() if scope in other}


def meet(identities: Identities, other: Identities) -> bool:
    return any(common(identities, other).values())


def only(batches: Iterable[Batch], identities: Identities) -> list[Batch]:
    """Those of the batches that are at certain identities."""
    found = []
    for batch in batches:
        wanted = identities.get(batch.scope)
        here = few_of(wanted, batch.keys) if wanted else []
        if here:
            found.append(replace(batch, keys=sorted(here)))
    return found


def intents_at(desired: Desired, identities: Identities) -> list[BulkIntent]:
    found = []
    for intent in bulk_intents(desired):
        for batch in only([intent.batch], identities):
            found.append(replace(intent, batch=batch))
    return found


def bulk_intents(desired: Desired) -> list[BulkIntent]:
    return [intent for intent in desired.intents if isinstance(intent, BulkIntent)]


def differs_elsewhere(before: Desired, after: Desired) -> str:
    """What else than bulk kinds is declared otherwise, an example of it; empty where nothing is.

    Where a resource stands in its file is nothing that is outside.
    """
    if list(map(_awaited, before.waiting)) != list(map(_awaited, after.waiting)):
        return "other resources wait for facts"
    old, new = _others(before), _others(after)
    for intent, other in zip(old, new, strict=False):
        if intent is not other and _compared(intent) != _compared(other):
            return f"{other.artifact.key} is declared otherwise"
    if len(old) != len(new):
        longer = max(old, new, key=len)
        return f"{longer[min(len(old), len(new))].artifact.key} is declared otherwise"
    return ""


def _others(desired: Desired) -> list[Intent]:
    return [intent for intent in desired.intents if not isinstance(intent, BulkIntent)]


def _compared(intent: Intent) -> tuple[object, ...]:
    return (
        intent.owner,
        intent.artifact,
        intent.action,
        intent.requires,
        intent.creates,
        intent.revert,
    )


def _awaited(waiting: Waiting) -> tuple[object, ...]:
    return (
        waiting.owner,
        waiting.reason,
        waiting.keeps,
        waiting.groups,
        waiting.required,
        waiting.groups_only,
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """What the last look left of a bulk kind: where it is exactly as declared, and where not."""

    kind: ArtifactKind
    proof: str  # that artifacts are ours, by the tag they carry
    desired: Desired
    plan: Plan  # what was left to do
    standing: Set[Key]  # what artifacts require, and is there
    batches: tuple[Batch, ...] | None  # seen, ours, as declared; None: as the plan keeps them
    # Declared and not there so, or there and not declared: pending, held by others, kept for now.
    unsettled: Identities
    # What the plan keeps, once it was asked for identity by identity.
    kept: list[_Kept] = field(default_factory=list, compare=False, repr=False)

    def changed(self, desired: Desired) -> dict[bytes, set[bytes]]:
        """Where another configuration may want something else."""
        return differing(
            (bulk_intent.batch for bulk_intent in bulk_intents(self.desired)),
            (bulk_intent.batch for bulk_intent in bulk_intents(desired)),
        )

    def after(self, desired: Desired, touched: Identities, left: Plan) -> Settled:
        """Once what was touched is as another configuration has it, but for what a plan of that
        still has to do."""
        undone = [op for op in left.changes if op.kind == self.kind.name]
        unsettled = joined(
            {scope: keys - touched.get(scope, set()) for scope, keys in self.unsettled.items()},
            *(_at(self.kind, op.subject) for op in undone),
        )
        unsettled = {scope: keys for scope, keys in unsettled.items() if keys}
        base = replace(self, unsettled=unsettled)
        kept = _kept(base, desired, {})
        rest = [
            op
            for op in self.plan.operations
            if op.verb is not Verb.FORGET
            and (op.kind != self.kind.name or op.verb.changes_host)
            and not meet(_at(self.kind, op.subject), touched)
        ]
        batches = tuple(op.subject for op in kept if isinstance(op.subject, Batch))
        plan = self._without(touched)
        plan = replace(
            plan,
            operations=order([*rest, *undone, *kept]),
            orphans=(*plan.orphans, *left.orphans),
            refusal="",
        )
        return replace(base, desired=desired, plan=plan, batches=batches, kept=[])

    def amended(self, desired: Desired, declaration: Declaration) -> Settled:
        """Once a declaration is carried out, with nothing of it left to do."""
        if not self.kept:
            self.kept.append(_Kept.of(self.kind, self.plan))
        kept = self.kept[0]
        for identity in declaration.before:
            kept.single.pop(identity, None)
        for identity, intent in declaration.now.items():
            kept.single[identity] = _keep(self, intent, intent.batch)
        touched = declaration.touched(self.kind)
        unsettled = {
            scope: keys - touched.get(scope, set()) for scope, keys in self.unsettled.items()
        }
        plan = self._without(touched).with_operations(
            self.plan.changes, (*kept.others, *kept.single.values())
        )
        left = {scope: keys for scope, keys in unsettled.items() if keys}
        return replace(self, desired=desired, plan=plan, unsettled=left, batches=None)

    def plan_of(
        self, declaration: Declaration, desired: Desired, made: Plan, policy: Policy
    ) -> Plan:
        """As `planned`, where nothing else is declared otherwise."""
        involved = is_involved(made, desired)
        if involved:
            raise FullPassNeeded(involved)
        if not self.kept:
            self.kept.append(_Kept.of(self.kind, self.plan))
        kept = self.kept[0]
        going = declaration.before
        stays = tuple(op for identity, op in kept.single.items() if identity not in going)
        plan = self.plan.with_operations(made.changes, (*kept.others, *stays))
        refusal = guard.refusal(plan.operations, desired, (), policy)
        return replace(plan, orphans=(*self.plan.orphans, *made.orphans), refusal=refusal)

    def known_at(self, declaration: Declaration) -> list[Batch]:
        """What is there of what was declared at its identities before."""
        return [
            intent.batch
            for intent in declaration.before.values()
            if intent.batch.keys[0] not in self.unsettled.get(intent.batch.scope, ())
        ]

    @property
    def seen(self) -> tuple[Batch, ...]:
        """There, ours and as declared."""
        if self.batches is not None:
            return self.batches
        found = (op for op in self.plan.operations if op.verb is Verb.KEEP)
        return tuple(op.subject for op in found if isinstance(op.subject, Batch))

    def _without(self, touched: Identities) -> Plan:
        """What was left, without what it said of others at identities that were touched."""

        def apart(subject: Artifact | Batch) -> bool:
            return not meet(_at(self.kind, subject), touched)

        plan = self.plan
        return replace(
            plan,
            orphans=tuple(orphan for orphan in plan.orphans if apart(orphan.subject)),
            conflicts=tuple(conflict for conflict in plan.conflicts if apart(conflict.desired)),
            candidates=tuple(
                candidate for candidate in plan.candidates if apart(candidate.desired)
            ),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a plan. It is changed as things come and go."""

    others: tuple[Operation, ...]
    single: dict[bytes, Operation]  # by identity, those that are about one alone

    @classmethod
    def of(cls, kind: ArtifactKind, plan: Plan) -> _Kept:
        others: list[Operation] = []
        single: dict[bytes, Operation] = {}
        for op in plan.operations:
            if op.verb.changes_host or op.verb is Verb.FORGET:
                continue
            subject = op.subject
            one = isinstance(subject, Batch) and subject.kind is kind and len(subject) == 1
            identity = (
                subject.scope + subject.keys[0] if one and isinstance(subject, Batch) else b""
            )
            if identity and identity not in single:
                single[identity] = op
            else:
                others.append(op)
        return cls(tuple(others), single)


def _keep(base: Settled, intent: BulkIntent, batch: Batch) -> Operation:
    return Operation(
        Verb.KEEP,
        batch,
        (intent.owner,),
        reason="as declared",
        origin=intent.origin,
        proof=base.proof,
    )


def settled(
    kind: ArtifactKind, tag_text: str, desired: Desired, left: Plan, standing: Set[Key]
) -> Settled:
    """What a pass left. Raises FullPassNeeded where that cannot be built upon."""
    if left.unknown:
        raise FullPassNeeded(f"{left.unknown[0][0]} could not be observed")
    kept = [
        op.subject
        for op in left.operations
        if op.kind == kind.name and op.verb is Verb.KEEP and isinstance(op.subject, Batch)
    ]
    unsettled = joined(
        differing(kept, (bulk_intent.batch for bulk_intent in bulk_intents(desired))),
        *(_at(kind, orphan.subject) for orphan in left.orphans),
        *(_at(kind, op.subject) for op in left.changes),
    )
    there = {
        op.subject.key
        for op in left.operations
        if op.verb is Verb.KEEP and isinstance(op.subject, Artifact)
    }
    lacking = {held.key for held in (*left.pending, *left.blocked)}
    standing = standing | (there - lacking)
    proof = ownership.by_tag(tag_text)
    return Settled(kind, proof, desired, left, standing, tuple(kept), unsettled)


def _at(kind: ArtifactKind, subject: Artifact | Batch) -> Identities:
    """The identities of a subject, as far as it is of this kind."""
    if isinstance(subject, Batch):
        return {subject.scope: set(subject.keys)} if subject.kind is kind else {}
    if subject.key.kind != kind.name:
        return {}
    scope, key = kind.packing.identify(subject.fields)
    return {scope: {key}}


def planned(base: Settled, desired: Desired, made: Plan, policy: Policy) -> Plan:
    """The plan of a full pass, while nothing but what is touched differs from what the base knows.
    Raises FullPassNeeded where only a full pass can make it.

    made: the plan of what is declared at the touched identities (`intents_at`), and is there.
    """
    involved = is_involved(made, desired)
    if involved:
        raise FullPassNeeded(involved)
    missing = joined(
        *(_at(base.kind, op.subject) for op in made.changes if op.verb is not Verb.DELETE)
    )
    others = [op for op in base.plan.operations if op.kind != base.kind.name and _stays(op)]
    operations = [*made.changes, *others, *_kept(base, desired, missing)]
    return replace(
        base.plan,
        operations=order(operations),
        orphans=(*base.plan.orphans, *made.orphans),
        refusal=guard.refusal(operations, desired, (), policy),
    )


def is_involved(made: Plan, desired: Desired) -> str:
    """Why a plan of a few is not simply what is to be made, changed and deleted; empty if it is."""
    for conflict in made.conflicts:
        return f"{conflict.desired.key} is held by {conflict.holder}"
    for candidate in made.candidates:
        return f"{candidate.desired.key} is held by {candidate.holder}"
    if made.unknown:
        return f"{made.unknown[0][0]}: {made.unknown[0][1]}"
    if made.blocked:
        return made.blocked[0].reason
    if len(made.pending) > len(desired.waiting):
        return made.pending[-1].reason
    kept = [orphan.reason for orphan in made.orphans if not orphan.removed]
    return kept[0] if kept else ""


def _stays(operation: Operation) -> bool:
    return operation.verb is Verb.KEEP


def _kept(base: Settled, desired: Desired, missing: Identities) -> list[Operation]:
    """All that is as declared already, of the kind the base is about."""
    away = joined(base.unsettled, missing)
    found = [
        op
        for op in base.plan.operations
        if op.kind == base.kind.name and _stays(op) and isinstance(op.subject, Artifact)
    ]
    for intent in bulk_intents(desired):
        batch = intent.batch
        absent = away.get(batch.scope)
        here = few_of(absent, batch.keys) if absent else []
        if here:
            batch = replace(batch, keys=Without(batch.keys, frozenset(here)))
        if len(batch):
            found.append(_keep(base, intent, batch))
    return found
