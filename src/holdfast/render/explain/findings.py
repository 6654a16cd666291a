"""Everything Holdfast knows about the artifacts that somebody asks about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.dataclass import dataclass, field
from holdfast.engine import ownership, unrecovered
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Scope
from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.route import pack_key
from holdfast.engine.observed import BulkSighting, Observed, Sighting
from holdfast.engine.plan import Operation
from holdfast.paths import Paths
from holdfast.render.explain.history import Past, last_declared
from holdfast.render.explain.on_behalf import made_for
from holdfast.render.explain.selector import Selector
from holdfast.resources.compile import compile_router
from holdfast.resources.locate import Declaration, declarations
from holdfast.runtime import drivers
from holdfast.runtime.load import Loaded
from holdfast.runtime.preview import View, look

# Where the kernel keeps a route of its own for each address; who asks for an address means that.
_LOCAL_TABLE = 255


@dataclass(frozen=True, slots=True)
class Finding:
    key: Key
    sightings: tuple[Sighting, ...]
    declared: tuple[Declaration, ...]
    past: Past | None  # where nothing declares it now: what did last
    claim: Claim | None
    proof: str  # why it is ours; empty where it is not
    unknown: str  # why it could not be observed
    identity: tuple[bytes, bytes] | None = field(default=None, repr=False)  # of a route
    masked: tuple[str, ...] = ()  # who would declare it, and who masks that
    made_for: str = ""  # where it is not ours and there because of us: who made it, and for what

    def concerns(self, operation: Operation) -> bool:
        subject = operation.subject
        if not isinstance(subject, Batch):
            return subject.key == self.key
        if self.identity is None or subject.kind.name != self.key.kind:
            return False
        scope, packed = self.identity
        return subject.scope == scope and packed in subject.keys


@dataclass(slots=True)
class _Found:
    sightings: list[Sighting] = field(default_factory=list)
    identity: tuple[bytes, bytes] | None = None


def find(paths: Paths, loaded: Loaded, selector: Selector) -> tuple[View, list[Finding]]:
    """The view that was taken, and a finding for each artifact meant, most telling first."""
    view = look(paths, loaded)
    found = _declared(loaded.desired.intents, selector)
    for key, entry in _declared(_masked_intents(loaded), selector).items():
        found.setdefault(key, entry)
    for key, claim in view.claims.items():
        if selector.matches(key):
            entry = found.setdefault(key, _Found())
            if bulk := KINDS[key.kind].bulk:
                entry.identity = bulk.identify(claim.fields)
    around = _look_around(paths, loaded, selector, view)
    _seen(around, selector, found)
    findings = [
        finding
        for key, entry in found.items()
        for finding in _findings(paths, loaded, view, key, entry)
    ]
    findings.sort(
        key=lambda f: (not f.declared, not f.proof, not f.sightings, f.key, not f.made_for)
    )
    return view, findings


def _masked_intents(loaded: Loaded) -> Iterator[Intent | BulkIntent]:
    """Of resources of the startup file that masks keep out of the effective config."""
    masked = {suppressed.resource.id for suppressed in loaded.suppressed}
    if loaded.effective is not None and masked:
        whole = compile_router(loaded.effective.startup, loaded.facts, loaded.root)
        yield from (intent for intent in whole.intents if intent.owner in masked)


def _declared(intents: Iterable[Intent | BulkIntent], selector: Selector) -> dict[Key, _Found]:
    found: dict[Key, _Found] = {}
    packed = list(_packed(selector))
    for intent in intents:
        if not isinstance(intent, BulkIntent):
            if selector.matches(intent.artifact.key):
                found[intent.artifact.key] = _Found()
            continue
        for key in packed:
            if key in intent.batch.keys:
                artifact = intent.batch.artifact(key)
                if selector.matches(artifact.key):
                    found[artifact.key] = _Found(identity=(intent.batch.scope, key))
    return found


class _Meant(frozenset[Key]):
    """Every key of some kinds, known beforehand or not: what is ours and not in would be an orphan,
    and a driver would find out what others lose by its end, which is dear beside many routes.
    Members are those that can be named outright."""

    kinds: frozenset[str]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key) and key.kind in self.kinds


def _look_around(paths: Paths, loaded: Loaded, selector: Selector, view: View) -> Observed:
    said = " ".join(selector.words)
    asked = [KINDS[name] for name in selector.kinds]
    meant = _Meant(
        Key(kind.name, kind.naming.sole or said)
        for kind in asked
        if kind.naming.sole or kind.seen_by_name
    )
    meant.kinds = selector.kinds
    scope = Scope(keys=meant, bulk_keys=frozenset(_packed(selector)), kinds=selector.kinds)
    tag = loaded.router.ownership.tag
    with drivers.of_machine(paths, tag, former=view.standing.former) as host:
        observed = host.observe(scope)
    return unrecovered.without_tags(observed) if view.plan.recoverable else observed


def _packed(selector: Selector) -> Iterator[bytes]:
    for network in selector.destinations:
        yield pack_key(network.network_address.packed, network.prefixlen)


def _seen(observed: Observed, selector: Selector, found: dict[Key, _Found]) -> None:
    for key, sightings in observed.sightings.items():
        if selector.matches(key):
            found.setdefault(key, _Found()).sightings += sightings
    if not selector.destinations:
        return
    for name, routes in observed.bulk.items():
        for sighting in (
            *_own(routes),
            *(s for all_ in routes.foreign.values() for s in all_),
        ):
            key = sighting.artifact.key
            is_local = sighting.artifact.fields.get("table") == _LOCAL_TABLE
            if selector.matches(key) and (not is_local or selector.option("table")):
                entry = found.setdefault(key, _Found())
                entry.sightings.append(sighting)
                entry.identity = KINDS[name].packing.identify(sighting.artifact.fields)


def _own(routes: BulkSighting) -> Iterator[Sighting]:
    for body in routes.own:
        yield routes.single(*routes.unpack(body))


def _findings(
    paths: Paths, loaded: Loaded, view: View, key: Key, found: _Found
) -> Iterator[Finding]:
    """One; of what is not ours, one for each reason that it is there for."""
    kind = KINDS[key.kind]
    claim = view.claims.get(key)
    ours, _ = ownership.split(kind, found.sightings, claim, view.epoch)
    now = declarations(loaded.router, key, loaded.facts, loaded.root)
    proof = ours[0][1] if ours else ""
    past = last_declared(paths, key) if not now and (proof or claim is not None) else None
    foreign = bool(found.sightings) and not (now or proof or claim is not None)
    reasons = {"": found.sightings}
    if foreign:
        reasons = made_for(paths, loaded, key, found.sightings)
    for reason in sorted(reasons, reverse=True):  # those with one first
        yield Finding(
            key,
            tuple(reasons[reason]),
            now,
            past,
            claim,
            proof,
            view.observed.why_unknown(key),
            found.identity,
            tuple(_masked(loaded, key)),
            reason,
        )


def _masked(loaded: Loaded, key: Key) -> Iterator[str]:
    masked = {suppressed.resource.id: suppressed for suppressed in loaded.suppressed}
    if loaded.effective is None or not masked:
        return
    startup = loaded.effective.startup
    for each in declarations(startup, key, loaded.facts, loaded.root):
        if each.owner in masked:
            by = ", ".join(masked[each.owner].masked_by)
            yield f"{each.owner} at {each.place}, which {by} masks"
