"""A look without touching: no lock, no write, and no ledger needed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine import planner, reconcile
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.difference import NOT_READ, Differences
from holdfast.engine.drivers import Drivers
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.host.epoch import read_epoch
from holdfast.paths import Paths
from holdfast.runtime import drivers, moves, namespace_ownership
from holdfast.runtime.load import Loaded
from holdfast.runtime.namespace_ownership import Standing
from holdfast.state.ledger import Ledger


class Showing(Enum):
    """How much is shown of what differs in the contents of artifacts."""

    NONE = "none"
    SUMMARY = "summary"
    FULL = "full"

    @classmethod
    def asked(cls, full: bool) -> Showing:
        return cls.FULL if full else cls.SUMMARY

    def read(self, host: Drivers, plan: Plan) -> Differences:
        if self is Showing.NONE:
            return NOT_READ
        in_the_way = (
            Operation(
                Verb.UPDATE,
                conflict.desired,
                conflict.owners,
                "",
                changes=conflict.changes,
                observed=conflict.observed,
            )
            for conflict in plan.conflicts
        )
        from holdfast.host import differences  # few passes are looked at by anybody

        return differences.read(host, (*plan.changes, *in_the_way), full=self is Showing.FULL)


@dataclass(frozen=True, slots=True)
class View:
    """What is claimed, what is there, and what an apply would do about it."""

    claims: Mapping[Key, Claim]
    observed: Observed
    plan: Plan
    epoch: str
    standing: Standing
    differences: Differences = field(default_factory=dict)  # where they were asked for


def look(
    paths: Paths,
    loaded: Loaded,
    *,
    allow_mass_delete: bool = False,
    allow_side_effects: bool = False,
    keys: frozenset[Key] = frozenset(),
    batches: tuple[Batch, ...] = (),
    differences: Showing = Showing.NONE,
) -> View:
    """`keys` and `batches`: identities to look at beside those that are declared or claimed.
    differences: whether contents are read, too."""
    tag = loaded.router.ownership.tag
    with Ledger.read(paths) as ledger:
        claims, remembered = ledger.claims(), ledger.remembered()
        standing = namespace_ownership.look(paths, ledger, tag, read_epoch())
        moved = moves.to_absent_links(paths, ledger, loaded.router)
    with drivers.of_machine(paths, tag, former=standing.former) as host:
        scope = reconcile.scope(loaded.desired, claims, remembered)
        wider = replace(scope, keys=scope.keys | keys, batches=(*scope.batches, *batches))
        observed = host.observe(wider)
        policy = loaded.policy(
            host.epoch,
            allow_mass_delete=allow_mass_delete,
            allow_side_effects=allow_side_effects,
        )
        policy = replace(standing.policy(policy), moved=moved)
        made = planner.plan(loaded.desired, observed, claims, policy)
        found = differences.read(host, made)
        return View(claims, observed, made, host.epoch, standing, found)
