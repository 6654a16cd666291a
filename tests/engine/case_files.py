"""Planner cases as folders: desired, observed and claims in, the plan out. A new one needs no code.

Every file may be left out where it would be empty. Artifacts are named as people name them
(`address 192.0.2.1/24 dev lan0`); routes are written per template with a list of destinations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent, Waiting
from holdfast.engine.kinds import route
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from holdfast.engine.observed import Loss, Observed, Sighting
from holdfast.engine.plan import Candidate, Change, Conflict, Held, Operation, Orphan, Plan
from holdfast.engine.policy import Policy
from tests.engine.memory_routes import MemoryRoutes, pack_prefix

CASES = Path(__file__).parent / "cases"
EPOCH = "this boot"

YAML = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    desired: Desired
    observed: Observed
    claims: Mapping[Key, Claim]
    policy: Policy
    plan: YAML


def names() -> list[str]:
    return sorted(path.parent.name for path in CASES.glob("*/plan.yaml"))


def load(name: str) -> Case:
    folder = CASES / name
    desired, observed = _read(folder / "desired.yaml"), _read(folder / "observed.yaml")
    policy = Policy(**{"epoch": EPOCH, **desired.get("policy", {})})
    claims = [_claim(one) for one in _read(folder / "claims.yaml").get("claims", [])]
    return Case(
        _desired(desired),
        _observed(observed),
        {claim.key: claim for claim in claims},
        policy,
        _read(folder / "plan.yaml"),
    )


def _read(path: Path) -> YAML:
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def _key(text: str) -> Key:
    kind, _, name = text.partition(" ")
    return Key(kind, name)


def _fields(fields: YAML) -> Fields:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


def _artifact(one: YAML) -> Artifact:
    return Artifact(_key(one["artifact"]), _fields(one.get("fields", {})))


def _requires(one: YAML) -> tuple[Key, ...]:
    return tuple(_key(text) for text in one.get("requires", ()))


def _template(one: YAML) -> RouteTemplate:
    legs = tuple(Nexthop(**leg) for leg in one.get("nexthops", ()))
    given = {name: one[name] for name in ("table", "metric", "prefsrc", "mtu") if name in one}
    family = 6 if ":" in one["destinations"][0] else 4
    return route.template(family, kind=one.get("type", "unicast"), nexthops=legs, **given)


def _keys(one: YAML) -> list[bytes]:
    return [pack_prefix(prefix) for prefix in one["destinations"]]


def _desired(found: YAML) -> Desired:
    intents: list[Intent | BulkIntent] = [
        Intent(
            one["owner"],
            _artifact(one),
            one.get("origin", ""),
            Action(one.get("action", "ensure")),
            _requires(one),
            one.get("creates", True),
            one.get("revert", False),
        )
        for one in found.get("intents", ())
    ]
    intents += [
        BulkIntent(
            one["owner"],
            route.batch(_template(one), _keys(one)),
            one.get("origin", ""),
            _requires(one),
            one.get("lacks", ""),
        )
        for one in found.get("routes", ())
    ]
    waiting = [
        Waiting(
            one["owner"],
            one.get("origin", ""),
            one["reason"],
            one.get("keeps", True),
            frozenset(map(route.in_table, one.get("tables", ()))),
            groups_only=one.get("routes_only", False),
        )
        for one in found.get("waiting", ())
    ]
    return Desired(tuple(intents), tuple(waiting))


def _observed(found: YAML) -> Observed:
    sightings: dict[Key, list[Sighting]] = {}
    for one in found.get("sightings", ()):
        artifact = _artifact(one)
        said = {name: one[name] for name in ("tag", "holder", "nonce", "transient") if name in one}
        sightings.setdefault(artifact.key, []).append(Sighting(artifact, **said))
    losses = {
        _key(one["artifact"]): [Loss(what, one.get("field", "")) for what in one["others_lose"]]
        for one in found.get("losses", ())
    }
    # A kind, or one artifact of it.
    unknown = {_key(x) if " " in x else x: why for x, why in found.get("unknown", {}).items()}
    routes = found.get("routes", {})
    links = frozenset(routes["links"]) if "links" in routes else None
    bulk = MemoryRoutes.of(
        [(_template(one), key) for one in routes.get("own", ()) for key in _keys(one)],
        [
            (_template(one), key, one["holder"])
            for one in routes.get("foreign", ())
            for key in _keys(one)
        ],
        links,
    )
    seen = {} if "route" in unknown else {"route": bulk}
    return Observed(sightings, seen, unknown, losses=losses)


def _claim(one: YAML) -> Claim:
    return Claim(
        _key(one["artifact"]),
        tuple(one.get("owners", ())),
        Provenance(one.get("provenance", "created")),
        ClaimState(one.get("state", "owned")),
        _fields(one.get("fields", {})),
        one.get("origin", ""),
        one.get("generation", 1),
        one.get("epoch", EPOCH),
        one.get("nonce", ""),
        _fields(one["original"]) if "original" in one else None,
        one.get("revert", False),
    )


def render(plan: Plan) -> YAML:
    """A plan as a case writes it; what is empty is left out."""
    parts = {
        "operations": [_operation(one) for one in plan.operations],
        "orphans": [_orphan(one) for one in plan.orphans],
        "conflicts": [{**_held_by(one), "remedy": one.remedy} for one in plan.conflicts],
        "candidates": [_held_by(one) for one in plan.candidates],
        "pending": [_held(one) for one in plan.pending],
        "blocked": [_held(one) for one in plan.blocked],
        "unknown": dict(plan.unknown),
        "refusal": plan.refusal,
    }
    return _filled(parts)


def _filled(parts: YAML) -> YAML:
    return {name: value for name, value in parts.items() if value not in ("", [], {}, ())}


def _subject(subject: Artifact | Batch) -> str | list[str]:
    if isinstance(subject, Artifact):
        return str(subject.key)
    return [str(subject.artifact(key).key) for key in subject.keys]


def _changes(changes: tuple[Change, ...]) -> YAML:
    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    return {one.field: [plain(one.before), plain(one.after)] for one in changes}


def _operation(one: Operation) -> YAML:
    return _filled(
        {
            one.verb.value: _subject(one.subject),
            "owners": list(one.owners),
            "reason": one.reason,
            "proof": one.proof,
            "risk": "" if one.risk == "none" else one.risk.value,
            "changes": _changes(one.changes),
            "others_lose": list(one.losses),
        }
    )


def _orphan(one: Orphan) -> YAML:
    return _filled(
        {
            "orphan": _subject(one.subject),
            "removed": one.removed,
            "owners": list(one.owners),
            "reason": one.reason,
            "proof": one.proof,
            "others_would_lose": list(one.losses),
        }
    )


def _held_by(one: Conflict | Candidate) -> YAML:
    return _filled(
        {
            "artifact": str(one.desired.key),
            "owners": list(one.owners),
            "holder": one.holder,
            "changes": _changes(one.changes),
        }
    )


def _held(one: Held) -> YAML:
    return _filled(
        {
            "owner": one.owner,
            "artifact": str(one.key or ""),
            "reason": one.reason,
            "others_would_lose": list(one.losses),
        }
    )
