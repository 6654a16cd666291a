"""A host in memory, real but simple: it keeps objects, checks what a driver must check, and fails
where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim, Lasting
from holdfast.engine.driver import Failure, Memory, Result, Scope
from holdfast.engine.kinds import KINDS, route
from holdfast.engine.kinds.route import RouteTemplate
from holdfast.engine.observed import BulkSighting, Loss, Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from tests.engine.memory_routes import MemoryRoutes, identity

TAGGED = ("address", "neighbour", "rule")


@dataclass(frozen=True)
class Object:
    """One object; links have an index of their own, others a protocol."""

    fields: Fields
    protocol: int = 0
    group: str = ""


@dataclass(frozen=True)
class Route:
    shared: RouteTemplate
    key: bytes
    protocol: int

    @property
    def identity(self) -> bytes:
        return identity(self.shared, self.key)


@dataclass
class MemoryHost:
    epoch: str = "this boot"
    tag: int = 72  # 0: a kernel without tags
    objects: dict[Key, list[Object]] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    losses: dict[Key, list[Loss]] = field(default_factory=dict)
    failing: dict[Key, str] = field(default_factory=dict)  # what apply says of an artifact
    obstructed: bool = False  # whether it says so because something is in the way
    remembered: dict[Key, Fields] = field(default_factory=dict)  # what apply says of routes
    log: list[str] = field(default_factory=list)
    after_apply: Callable[[], None] = lambda: None
    _index: int = 0

    def put(self, key: Key, fields: Fields, protocol: int = 0, group: str = "") -> None:
        """What another program makes, or what Holdfast does."""
        if key.kind == "link":
            self._index += 1
            fields = {**fields, "ifindex": self._index}
        if key.kind in TAGGED:
            fields = {**fields, "protocol": protocol}
        self.objects.setdefault(key, []).append(Object(fields, protocol, group))

    def observe(self, scope: Scope) -> Observed:
        sightings = {
            key: [self._sighting(key, one) for one in objects]
            for key, objects in self.objects.items()
            if key.kind not in self.unknown
            and _asked(scope, key.kind)
            and self._matters(key, objects, scope)
        }
        unknown: dict[str | Key, str] = {
            kind: why for kind, why in self.unknown.items() if _asked(scope, kind)
        }
        bulk: dict[str, BulkSighting] = {}
        if "route" not in self.unknown and _asked(scope, "route"):
            bulk = {"route": self._routes()}
        return Observed(sightings, bulk, unknown, losses=self.losses)

    def _matters(self, key: Key, objects: Sequence[Object], scope: Scope) -> bool:
        ours = any(self.tag and one.protocol == self.tag for one in objects)
        return ours or key in scope.keys or key in scope.claims

    def _sighting(self, key: Key, one: Object) -> Sighting:
        ours = self.tag and one.protocol == self.tag
        nonce = str(one.fields.get("sha256", "")) if key.kind == "file" else one.group
        return Sighting(
            Artifact(key, one.fields),
            tag=f"protocol {self.tag}" if ours else "",
            holder="" if ours else f"protocol {one.protocol}",
            nonce=nonce,
        )

    def _routes(self) -> MemoryRoutes:
        links = frozenset(key.name for key in self.objects if key.kind == "link")
        return MemoryRoutes.of(
            [(one.shared, one.key) for one in self.routes if one.protocol == self.tag],
            [
                (one.shared, one.key, f"protocol {one.protocol}")
                for one in self.routes
                if one.protocol != self.tag
            ],
            links,
        )

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        results = []
        for operation in operations:
            if operation.kind == "route":
                results.append(self._apply_routes(operation))
            else:
                assert isinstance(operation.subject, Artifact)
                results.append(self._apply_one(operation, operation.subject))
            progress(operation.count)
        self.after_apply()
        return results

    def to_remember(self, *_planned: object) -> Mapping[str, Memory]:
        """What is in memory is seen wherever it is."""
        return {}

    def sweep(self, claims: Iterable[Claim]) -> None:
        """Writes in memory leave nothing beside them."""

    def settle(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self.log.append(f"settle {claim.key}")
            self.objects[claim.key] = [replace(one, group="") for one in self.objects[claim.key]]

    def _apply_one(self, operation: Operation, subject: Artifact) -> Result:
        key = subject.key
        self.log.append(f"{operation.verb} {key}")
        if key in self.failing:
            return Result(
                operation, 0, (Failure(key, self.failing[key], obstructed=self.obstructed),)
            )
        there = self.objects.setdefault(key, [])
        if operation.verb in (Verb.DELETE, Verb.REPLACE):
            seen = operation.observed if isinstance(operation.observed, Artifact) else subject
            before = seen.fields
            gone = next((one for one in there if one.fields == before), None)
            if gone is not None:
                there.remove(gone)
        if operation.verb in (Verb.CREATE, Verb.REPLACE):
            if there and not KINDS[key.kind].coexists:
                return Result(operation, 0, (Failure(key, "File exists (EEXIST)", exists=True),))
            group = "" if KINDS[key.kind].nonce_field else operation.nonce
            self.put(key, subject.fields, self.tag if key.kind in TAGGED else 0, group)
        if operation.verb is Verb.UPDATE:
            changed = {change.field: change.after for change in operation.changes}
            there[0] = replace(there[0], fields={**there[0].fields, **changed})
        if not there:
            self.objects.pop(key, None)
        return Result(operation, 1)

    def _apply_routes(self, operation: Operation) -> Result:
        failures = []
        for shared, key, name in _each(operation):
            self.log.append(f"{operation.verb} {name}")
            if name in self.failing:
                failures.append(Failure(name, self.failing[name]))
                continue
            if operation.verb in (Verb.UPDATE, Verb.DELETE):
                before = operation.observed or operation.subject
                self._remove_route(before, shared, key)
            if operation.verb in (Verb.UPDATE, Verb.CREATE):
                made = Route(shared, key, self.tag)
                taken = any(one.identity == made.identity for one in self.routes)
                if taken and operation.verb is Verb.CREATE:
                    failures.append(Failure(name, "File exists (EEXIST)", exists=True))
                    continue
                self.routes.append(made)
        done = operation.count - len(failures)
        return Result(operation, done, tuple(failures), remember=self.remembered)

    def _remove_route(self, before: Artifact | Batch, shared: RouteTemplate, key: bytes) -> None:
        if isinstance(before, Artifact):
            shared, key = route.template_of(before)
            protocol = int(str(before.fields.get("protocol", self.tag)))
        else:
            shared, protocol = before.template, self.tag
        gone = Route(shared, key, protocol)
        self.routes = [one for one in self.routes if one != gone]


def _asked(scope: Scope, kind: str) -> bool:
    return scope.kinds is None or kind in scope.kinds


def _each(operation: Operation) -> Iterable[tuple[RouteTemplate, bytes, Key]]:
    subject = operation.subject
    if isinstance(subject, Batch):
        for key in subject.keys:
            yield subject.template, key, subject.artifact(key).key
    else:
        yield *route.template_of(subject), subject.key


@dataclass
class MemoryLedger:
    """Claims, and every write of them."""

    held: dict[Key, Claim] = field(default_factory=dict)
    writes: list[tuple[tuple[Claim, ...], tuple[Key, ...]]] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    lasting: Lasting = Lasting.FOR_GOOD

    def claims(self) -> dict[Key, Claim]:
        return dict(self.held)

    def remembered(self) -> dict[str, Memory]:
        return dict(self.memories)

    def remember(self, driver: str, memory: Memory) -> None:
        self.memories[driver] = memory

    def write_claims(self, put: Iterable[Claim], remove: Iterable[Key] = ()) -> None:
        written, removed = tuple(put), tuple(remove)
        self.writes.append((written, removed))
        for key in removed:
            self.held.pop(key, None)
        self.held.update((claim.key, claim) for claim in written)


def fields_of(host: MemoryHost) -> Mapping[Key, Sequence[Fields]]:
    return {key: [one.fields for one in objects] for key, objects in host.objects.items()}
