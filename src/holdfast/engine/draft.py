"""A plan in the making."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import absent_links, along, ownership
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.guard import refusal
from holdfast.engine.intent import BulkIntent, Desired, Intent, Waiting
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.order import order
from holdfast.engine.plan import (
    AWAITED,
    Candidate,
    Conflict,
    Held,
    Marked,
    Operation,
    Orphan,
    Plan,
    Verb,
)
from holdfast.engine.policy import Policy


@dataclass(slots=True)
class Draft:
    observed: Observed
    claims: Mapping[Key, Claim]
    policy: Policy
    waiting: Sequence[Waiting] = ()
    elsewhere: Sequence[Claim] = ()  # of another network namespace of this boot
    recoverable: Sequence[Marked] = ()
    operations: list[Operation] = field(default_factory=list)
    orphans: list[Orphan] = field(default_factory=list)
    awaited: list[Artifact | Batch] = field(default_factory=list)  # kept for now
    conflicts: list[Conflict] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    pending: list[Held] = field(default_factory=list)
    blocked: list[Held] = field(default_factory=list)
    missing: dict[Key, str] = field(default_factory=dict)  # what others may wait for, and why
    created: set[Key] = field(default_factory=set)  # what this plan makes
    unfit: dict[Key, str] = field(default_factory=dict)  # why nothing can be made on it, if so
    _foreign: dict[str, list[Sighting]] = field(default_factory=dict)
    _keeping: dict[str, Waiting] = field(default_factory=dict)  # by owner

    def foreign(self, kind: ArtifactKind) -> list[Sighting]:
        """All that was seen of a kind and is not ours."""
        if kind.name not in self._foreign:
            self._foreign[kind.name] = [
                other
                for key, sightings in self.observed.sightings.items()
                if key.kind == kind.name
                for other in ownership.split(
                    kind, sightings, self.claims.get(key), self.policy.epoch
                )[1]
            ]
        return self._foreign[kind.name]

    def __post_init__(self) -> None:
        for waiting in self.waiting:
            if waiting.keeps and not waiting.groups_only:
                self._keeping.setdefault(waiting.owner, waiting)

    def keepers(self, owners: Iterable[str]) -> list[Waiting]:
        """Which of these owners wait for a fact, and keep what they have until it is known."""
        return [self._keeping[owner] for owner in owners if owner in self._keeping]

    def keepers_of_group(self, kind: ArtifactKind, scope: bytes) -> list[Waiting]:
        """Who waits for a fact and keeps the group of a bulk kind that a scope is in."""
        group = kind.name, kind.packing.group(scope)
        return [waiting for waiting in self.waiting if waiting.keeps and group in waiting.groups]

    def keep(
        self,
        subject: Artifact | Batch,
        owners: tuple[str, ...],
        keepers: Sequence[Waiting],
        proof: str,
    ) -> None:
        """Nothing declares it now, and whether anything will is not known."""
        reason = f"kept: {'; '.join(map(str, keepers))}"
        self.orphans.append(Orphan(subject, owners, False, reason, proof))

    def await_successor(
        self, subject: Artifact | Batch, owners: tuple[str, ...], proof: str
    ) -> None:
        """What shall take its place cannot be made now."""
        self.awaited.append(subject)
        self.orphans.append(Orphan(subject, owners, False, AWAITED, proof))

    def waits_for(self, requires: Sequence[Key]) -> str:
        """Why an artifact with these requirements cannot be made now; empty if it can.

        A requirement that nobody declares (a link named literally) must simply be there.
        """
        for key in requires:
            if key in self.missing:
                return f"waits for {key}: {self.missing[key]}"
            there = (
                self.observed.sightings.get(key)
                or key in self.created
                or key in self.observed.standing
            )
            if not there and not self.observed.why_unknown(key):
                return f"waits for {key}: it is not there yet"
        return ""

    def lost(self, key: Key, fields: Iterable[str] | None = None) -> tuple[str, ...]:
        """What others would lose by a change of an artifact, or by that of some of its fields."""
        counting = None if fields is None else {"", *fields}
        found = (
            loss.what
            for loss in self.observed.losses.get(key, ())
            if counting is None or loss.field in counting
        )
        return tuple(dict.fromkeys(found))

    def hold(
        self,
        intent: Intent | BulkIntent,
        reason: str,
        *,
        blocked: bool = False,
        losses: tuple[str, ...] = (),
        unknown: bool = False,
    ) -> None:
        key = intent.artifact.key if isinstance(intent, Intent) else None
        held = Held(intent.owner, intent.origin, reason, key, losses=losses, unknown=unknown)
        (self.blocked if blocked else self.pending).append(held)
        if key is not None:
            self.missing[key] = reason

    def block(self, intent: Intent, reason: str, losses: tuple[str, ...]) -> None:
        """A part of it must wait for somebody; it is there, and others go on with it."""
        key = intent.artifact.key
        self.blocked.append(Held(intent.owner, intent.origin, reason, key, losses=losses))

    def finish(self, desired: Desired) -> Plan:
        operations = self.operations
        why = self._why_nothing_is_deleted()
        if why:
            operations = [
                op for op in operations if not op.cleans_up and op.verb is not Verb.FORGET
            ]
            self.orphans = [
                replace(orphan, removed=False, reason=why) if orphan.removed else orphan
                for orphan in self.orphans
            ]
        return Plan(
            operations=order(along.told(operations, desired, self.observed, self.missing)),
            orphans=tuple(self.orphans),
            conflicts=tuple(self.conflicts),
            candidates=tuple(self.candidates),
            pending=tuple(self.pending),
            blocked=tuple(self.blocked),
            unknown=_kinds(self.observed.unknown),
            recoverable=tuple(self.recoverable),
            refusal=refusal(
                operations,
                desired,
                self.elsewhere,
                self.policy,
                absent_links.refusal(
                    operations, desired, self.observed, self.created, self.policy.moved
                ),
            ),
        )

    def _why_nothing_is_deleted(self) -> str:
        """In this pass; empty where it may be."""
        if self.observed.unknown:
            return "kept: not everything could be observed, so nothing is deleted in this pass"
        faults = [waiting.owner for waiting in self.waiting if waiting.fault]
        if faults:
            return f"kept: what {', '.join(faults)} would declare cannot be told"
        if self.policy.unloaded:
            *first, last = self.policy.unloaded
            names = f"{', '.join(first)} and {last}" if first else last
            return f"kept: waits until {names} {'have' if first else 'has'} loaded"
        return ""


def _kinds(unknown: Mapping[str | Key, str]) -> tuple[tuple[str, str], ...]:
    found: dict[str, list[str]] = {}
    for what, why in unknown.items():
        found.setdefault(what.kind if isinstance(what, Key) else what, []).append(why)
    return tuple((kind, "; ".join(found[kind])) for kind in sorted(found))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What all resources together want of one artifact."""

    intent: Intent
    owners: tuple[str, ...]
