"""What a batch of increments changes, where it can be told without merging and compiling the rest.

A kind says of its resources which ones can be checked and compiled by themselves (`Kind.alone`).
For a batch of those, the effective config and what it declares are made of those before, with the
answer that a merge of everything would give. Wherever that cannot be told, the answer is None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from holdfast.config import merge as merging
from holdfast.config.part import RECORD, Amendment, Part
from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import Batch
from holdfast.engine.bulk_changes import Declaration
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.resources import registry
from holdfast.resources.dynamic import effective as effectives
from holdfast.resources.dynamic import source_policy
from holdfast.resources.dynamic.contribution import FIRST
from holdfast.resources.dynamic.dynamic_override_policy import (
    DynamicOverridePolicy,
    settings_not_allowed,
)
from holdfast.resources.dynamic.effective import Effective, RecordOfIncrements
from holdfast.resources.facts import Facts
from holdfast.resources.resource import Resource
from holdfast.resources.site import site_of
from holdfast.resources.spec.shape import references
from holdfast.runtime.increments import Merged

# More are merged and looked at together.
MOST = 256


@dataclass(frozen=True, slots=True)
class _Proposal:
    effective: Effective
    resources: dict[str, Resource]
    gone: tuple[Resource, ...]
    come: tuple[tuple[Resource, BulkIntent], ...]


class Amender:
    """Of one effective config and what it declares; belongs to the thread of passes."""

    def __init__(
        self,
        effective: Effective,
        desired: Desired,
        facts: Facts,
        root: str,
        clock: Callable[[], float],
    ) -> None:
        self.effective, self.desired, self.facts = effective, desired, facts
        self._clock = clock
        self._declaration = Declaration()
        self._proposed: _Proposal | None = None
        before, resources = effective, effective.router.resources
        self._site = site_of(resources, facts, root)
        self._resources = {resource.id: resource for resource in resources}
        self._numbered = {
            resource.index - FIRST: resource for resource in resources if resource.index >= FIRST
        }
        alone = {
            resource.id
            for resource in self._numbered.values()
            if registry.kind(resource.kind).alone
        }
        self._mine: dict[str, BulkIntent] = {}
        rest: list[Intent | BulkIntent] = []
        for intent in desired.intents:
            if intent.owner in alone and isinstance(intent, BulkIntent):
                self._mine[intent.owner] = intent
            else:
                rest.append(intent)
        self._rest = tuple(rest)
        self._holders: dict[bytes, set[str]] = defaultdict(set)  # by identity
        self._lists: list[Batch] = []
        for intent in desired.intents:
            if isinstance(intent, BulkIntent):
                self._note(intent)
        self._warned = {warning.place for warning in before.router.warnings}
        self._startup = {resource.id for resource in before.startup.resources}
        self._files = len(before.router.resources) - len(before.added)
        self._count = Counter(resource.part for resource in before.added)
        self._names: dict[str, set[str]] = defaultdict(set)
        for resource in resources:
            for asked in registry.referred_as(resource.kind):
                if getattr(resource.spec, "state", "") != "absent":
                    self._names[asked].add(resource.name)
        links = source_policy.Links.of(resources)
        admitted = registry.having(before.startup.resources, lambda kind: kind.admits_parts)
        self._links = links
        self._admitted = {resource.spec.contributor: resource for resource in admitted}
        self._judges = {
            source: source_policy.judge(resource, links)
            for source, resource in self._admitted.items()
        }
        self._policies = [
            resource
            for resource in before.startup.resources
            if isinstance(resource.spec, DynamicOverridePolicy)
        ]
        self._lone = set(chain.from_iterable(map(_lone_gateways, resources)))
        self._reach = any(registry.kind(name).goes_by_reach for name in self._site.by_kind)

    @property
    def usable(self) -> bool:
        """What was refused may be admitted once something else goes."""
        known = self.effective
        return not (known.rejected or known.refused or self._reach)

    def _note(self, intent: BulkIntent) -> None:
        batch = intent.batch
        if len(batch) == 1:
            self._holders[batch.scope + batch.keys[0]].add(intent.owner)
        else:
            self._lists.append(batch)

    def amended(
        self, known: Merged, part: Part, amendment: Amendment, given: Sequence[Resource]
    ) -> Effective | None:
        before = self.effective
        if known.effective is not before or not self.usable:
            return None
        if before.next_change is not None and self._clock() >= before.next_change:
            return None
        if len(given) + len(amendment.withdrawn) > MOST or not part.resources:
            return None
        if all(one.source != part.source for one in before.active):
            return None
        gone = [self._numbered[number] for number in amendment.withdrawn]
        if not all(self._is_apart(resource) for resource in gone):
            return None
        come = list(self._admissible(part.source, given, {resource.id for resource in gone}))
        if len(come) != len(given):
            return None
        replaced = [
            self._resources[resource.id] for resource, _ in come if resource.id in self._resources
        ]
        fresh = len(come) - len(replaced) - len(gone)
        most = self._judges[part.source].allow.max_resources
        if fresh > 0 and self._count[part.ref] + fresh > most:
            return None
        resources = dict(self._resources)
        for resource in gone:
            del resources[resource.id]
        resources.update((resource.id, resource) for resource, _ in come)
        effective = self._with(part, tuple(resources.values()))
        self._proposed = _Proposal(effective, resources, (*gone, *replaced), tuple(come))
        return effective

    def _admissible(
        self, source: str, given: Sequence[Resource], gone: set[str]
    ) -> Iterator[tuple[Resource, BulkIntent]]:
        """Those with nothing to say against them, each with what it asks for."""
        taken: set[bytes] = set()
        for resource in given:
            old = self._resources.get(resource.id)
            if old is None and resource.id in self._startup:
                return
            if old is not None and (old.index != resource.index or not self._is_apart(old)):
                return
            intent = self._intent(source, resource)
            if intent is None:
                return
            identity = intent.batch.scope + intent.batch.keys[0]
            if identity in taken or not self._is_held_by(intent, {resource.id, *gone}):
                return
            taken.add(identity)
            yield resource, intent

    def _is_apart(self, resource: Resource) -> bool:
        """Whether it can go without anything else being looked at."""
        if resource.id not in self._mine or resource.place in self._warned:
            return False
        return self._is_held_by(self._mine[resource.id], {resource.id})

    def _is_held_by(self, intent: BulkIntent, ids: set[str]) -> bool:
        """Whether nobody else declares its route: the same may be declared more than once."""
        batch = intent.batch
        key = batch.keys[0]
        if not self._holders.get(batch.scope + key, set()) <= ids:
            return False
        return not any(many.scope == batch.scope and key in many.keys for many in self._lists)

    def _intent(self, source: str, resource: Resource) -> BulkIntent | None:
        kind, site = registry.kind(resource.kind), self._site
        if kind.alone is None or not kind.alone(resource, site):
            return None
        if not all(gateway in self._lone for gateway in _lone_gateways(resource)):
            return None  # the kernel has to be asked of it
        if any(name not in self._names[asked] for _, asked, name in references(resource.spec)):
            return None
        if any(self._judges[source].refusals(resource)):
            return None
        if any(settings_not_allowed(self._policies, source, (resource,), self._links.called)):
            return None
        found = list(kind.intents(resource, site))
        if len(found) != 1 or not isinstance(found[0], BulkIntent):
            return None
        return found[0] if len(found[0].batch) == 1 and not found[0].lacks else None

    def _with(self, part: Part, every: tuple[Resource, ...]) -> Effective:
        before = self.effective
        policy = self._admitted[part.source]
        part = effectives.bounded(part, {part.source: policy})
        part = merging.capped(part, policy.spec.ttl)
        path = f"{RECORD}{part.source}"
        files = (
            RecordOfIncrements(part) if file.path == path else file for file in before.router.files
        )
        active = tuple(part if one.source == part.source else one for one in before.active)
        return replace(
            before,
            router=replace(before.router, resources=every, files=tuple(files)),
            added=every[self._files :],
            active=active,
            next_change=merging.next_change(active),
        )

    def take(self, effective: Effective) -> None:
        """It was proposed, and is in force from here on."""
        proposed, self._proposed = self._proposed, None
        assert proposed is not None  # noqa: S101
        for resource in proposed.gone:
            del self._numbered[resource.index - FIRST]
            self._count[resource.part] -= 1
            intent = self._mine[resource.id]
            identity = intent.batch.scope + intent.batch.keys[0]
            self._declaration.goes(identity, intent)
            self._holders[identity].discard(resource.id)
            if not self._holders[identity]:
                del self._holders[identity]
        for resource, intent in proposed.come:
            self._numbered[resource.index - FIRST] = resource
            self._count[resource.part] += 1
            self._holders[intent.batch.scope + intent.batch.keys[0]].add(resource.id)
            self._declaration.comes(intent.batch.scope + intent.batch.keys[0], intent)
            self._mine[resource.id] = intent
        come = {resource.id for resource, _ in proposed.come}
        for resource in proposed.gone:
            if resource.id not in come:
                del self._mine[resource.id]
        self._resources, self.effective = proposed.resources, effective

    def declared(self) -> tuple[Desired, Declaration]:
        """What the effective config asks for now, and what of that changed since this was asked
        last."""
        declaration, self._declaration = self._declaration, Declaration()
        self.desired = Desired((*self._rest, *self._mine.values()), self.desired.waiting)
        return self.desired, declaration


def _lone_gateways(resource: Resource) -> Iterator[tuple[int, bytes]]:
    asked = registry.kind(resource.kind).lone_gateways
    if asked is not None:
        yield from asked(resource)
