"""The BGP driver as the pass uses it: plans made of what it saw, carried out, and seen again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.engine import reconcile
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.engine.kinds.bgp_attributes import NO_ATTRIBUTES, Attributes
from holdfast.engine.kinds.bgp_network import NetworkTemplate, batch
from holdfast.engine.kinds.route import pack_key
from holdfast.engine.observed import Observed
from holdfast.engine.order import stages
from holdfast.engine.plan import Plan
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.frr.driver import BgpDriver
from tests.frr.ground import Frr


def driver_of(instance: Frr) -> BgpDriver:
    """One that takes a daemon of just now for one that has read its configuration."""
    return BgpDriver(instance.folder, settles=0.0)


def networks(
    *prefixes: str, attributes: Attributes = NO_ATTRIBUTES, vrf: str = "default"
) -> list[Batch]:
    from ipaddress import ip_network

    found: dict[int, list[bytes]] = {}
    for prefix in prefixes:
        parsed = ip_network(prefix)
        key = pack_key(parsed.network_address.packed, parsed.prefixlen)
        found.setdefault(parsed.version, []).append(key)
    return [batch(NetworkTemplate(family, vrf, attributes), keys) for family, keys in found.items()]


class Drive:
    """Claims are kept here as the ledger would keep them."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.claims: dict[Key, Claim] = {}

    def look(self, *declared: Artifact | Batch) -> tuple[Observed, Plan]:
        desired = _desired(declared)
        wanted: Scope = reconcile.scope(desired, self.claims)
        observed = self.driver.observe(wanted)
        return observed, plan(desired, observed, self.claims, Policy())

    def plan(self, *declared: Artifact | Batch) -> Plan:
        return self.look(*declared)[1]

    def apply(self, *declared: Artifact | Batch) -> list[Result]:
        """Results of what was changed."""
        results: list[Result] = []
        made = self.plan(*declared)
        for stage in stages(made.changes):
            results += self.driver.apply(stage, lambda _count: None)
        for result in results:
            subject = result.operation.subject
            if isinstance(subject, Artifact) and result.ok:
                if result.operation.verb == "delete":
                    self.claims.pop(subject.key, None)
                else:
                    self.claims[subject.key] = claim(subject)
        return results

    def settle(self, *declared: Artifact | Batch) -> None:
        """Declared, carried out, and as declared afterwards."""
        for result in self.apply(*declared):
            assert result.ok, [failure.error for failure in result.failures]
        left = self.plan(*declared)
        assert not left.changes, left.changes
        assert not left.conflicts
        assert not left.blocked
        assert not left.unknown


def claim(subject: Artifact, fields: Mapping[str, object] | None = None) -> Claim:
    return Claim(
        subject.key,
        ("test",),
        Provenance.CREATED,
        ClaimState.OWNED,
        subject.fields if fields is None else fields,  # type: ignore[arg-type]  # as a test has it
        "test",
        1,
        epoch="",
        nonce="",
    )


def _desired(declared: Sequence[Artifact | Batch]) -> Desired:
    return Desired(
        tuple(
            BulkIntent("test", each, "test")
            if isinstance(each, Batch)
            else Intent("test", each, "test")
            for each in declared
        )
    )
