"""The story of a resource: where it stands, how it is doing, what it owns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.dataclass import dataclass, replace
from holdfast.engine import document
from holdfast.engine.claim import Claim
from holdfast.engine.plan import Plan, Verb
from holdfast.errors import HoldfastError
from holdfast.numbers import thousands
from holdfast.paths import Paths
from holdfast.render import artifact_words, groups, plan_text
from holdfast.render import claim as claim_story
from holdfast.render.explain.history import Past, last_resource
from holdfast.render.style import Style
from holdfast.runtime.conditions import conditions
from holdfast.runtime.load import Loaded
from holdfast.runtime.phases import LOOKS, ResourceStatus, phases
from holdfast.runtime.preview import look


@dataclass(frozen=True, slots=True)
class ResourceStory:
    resource: str
    status: ResourceStatus | None  # None where it is not declared
    past: Past | None
    claims: tuple[Claim, ...]
    plan: Plan  # the part of it that is about this resource

    def members(self) -> Iterator[tuple[str, Any]]:
        status, past = self.status, self.past
        yield "format_version", document.FORMAT_VERSION
        yield "resource", self.resource
        yield "declared", None if status is None else status.place
        yield (
            "declared_until",
            past and {"generation": past.generation, "owner": past.owner, "place": past.place},
        )
        yield "phase", None if status is None else status.phase.value
        yield "reason", "" if status is None else status.reason
        if status is not None:
            yield from status.notes().items()
        if status is not None and status.active is not None:
            yield "active", status.active.entry()
        yield "claims", map(claim_story.entry, self.claims)
        yield "operations", document.operations(self.plan.operations)
        yield "orphans", document.orphans(self.plan.orphans)
        yield "conflicts", map(document.conflict, self.plan.conflicts)
        yield "adoption_candidates", map(document.candidate, self.plan.candidates)
        yield "pending", map(document.held, self.plan.pending)
        yield "blocked", map(document.held, self.plan.blocked)

    def lines(self, style: Style) -> Iterator[str]:
        yield f"{style(self.resource, 'bold')}: {self._where(style)}"
        kept = [op for op in self.plan.operations if op.verb is Verb.KEEP]
        if kept:
            yield ""
            yield style("As declared:", "bold")
            for group in groups.operations(kept):
                for artifact in group.shown:
                    name = document.name(artifact.key)
                    yield f"  {artifact_words.artifact(name, artifact.fields)}"
                if group.more:
                    yield style(f"  … and {thousands(group.more)} more", "dim")
                yield style(f"      proof: {group.first.proof}", "dim")
        changing = tuple(op for op in self.plan.operations if op.verb is not Verb.KEEP)
        coming = list(plan_text.plan(replace(self.plan, operations=changing), style, close=False))
        if coming:
            yield ""
            yield from coming[:-1]  # the last line parts it from what a plan says next

    def _where(self, style: Style) -> str:
        status, past = self.status, self.past
        if status is not None:
            phase = style(status.phase.value, LOOKS[status.phase])
            reason = f" ({status.reason})" if status.reason else ""
            return f"declared at {status.place}; {phase}{reason}"
        if past is not None:
            return f"no longer declared; until generation {past.generation} at {past.place}"
        return "no longer declared"


def tell(paths: Paths, loaded: Loaded, resource: str) -> ResourceStory:
    view = look(paths, loaded)
    told = conditions(paths, loaded.router.resources, loaded.facts, view.plan)
    found = phases(view.plan, loaded.router.resources, loaded.suppressed)
    statuses = [told.of(status) for status in found]
    status = next((status for status in statuses if status.resource == resource), None)
    claims = tuple(claim for claim in view.claims.values() if resource in claim.owners)
    past = last_resource(paths, resource) if status is None else None
    if status is None and past is None and not claims:
        from holdfast.resources.spec.nearest import nearest  # only mistakes need it

        known = [status.resource for status in statuses]
        hint = nearest(resource, known) or f"; declared are {', '.join(known[:10]) or 'none'}"
        raise HoldfastError(
            f"{resource}: no such resource, now or in the generations the ledger keeps{hint}"
        )
    return ResourceStory(resource, status, past, claims, _part(view.plan, resource))


def _part(plan: Plan, resource: str) -> Plan:
    return Plan(
        operations=tuple(op for op in plan.operations if resource in op.owners),
        orphans=tuple(orphan for orphan in plan.orphans if resource in orphan.owners),
        conflicts=tuple(each for each in plan.conflicts if resource in each.owners),
        candidates=tuple(each for each in plan.candidates if resource in each.owners),
        pending=tuple(held for held in plan.pending if held.owner == resource),
        blocked=tuple(held for held in plan.blocked if held.owner == resource),
    )
