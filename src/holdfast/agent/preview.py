"""A look without touching: no lock, no write, and no ledger needed."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agent import holding
from holdfast.agent.holding import Standing
from holdfast.agent.load import Loaded
from holdfast.dataclass import dataclass, replace
from holdfast.engine import planner, reconcile
from holdfast.engine.artifact import Batch, Key
from holdfast.engine.claim import Claim
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Plan
from holdfast.host.host import LinuxHost, read_epoch
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class View:
    """What is claimed, what is there, and what an apply would do about it."""

    claims: Mapping[Key, Claim]
    observed: Observed
    plan: Plan
    epoch: str
    standing: Standing


def look(
    paths: Paths,
    loaded: Loaded,
    *,
    allow_mass_delete: bool = False,
    allow_side_effects: bool = False,
    keys: frozenset[Key] = frozenset(),
    batches: tuple[Batch, ...] = (),
) -> View:
    """`keys` and `batches`: identities to look at beside those that are declared or claimed."""
    tag = loaded.router.ownership.tag
    with Ledger.read(paths) as ledger:
        claims = ledger.claims()
        standing = holding.look(paths, ledger, tag, read_epoch())
    with LinuxHost(paths, tag, former=standing.former) as host:
        scope = reconcile.scope(loaded.desired, claims)
        wider = replace(scope, keys=scope.keys | keys, batches=(*scope.batches, *batches))
        observed = host.observe(wider)
        policy = loaded.policy(
            host.epoch,
            allow_mass_delete=allow_mass_delete,
            allow_side_effects=allow_side_effects,
        )
        made = planner.plan(loaded.desired, observed, claims, standing.policy(policy))
        return View(claims, observed, made, host.epoch, standing)
