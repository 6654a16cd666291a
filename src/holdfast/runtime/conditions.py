"""What a plan does not tell of resources: verdicts, runs of plugins, sessions, which candidate is
active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.service import SERVICE
from holdfast.engine.plan import Plan, Verb
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.dynamic.source_name import plugin_of, plugin_source
from holdfast.resources.facts import Facts, Verdict
from holdfast.resources.resource import Resource
from holdfast.runtime import active_candidates, sessions
from holdfast.runtime.barriers import barred
from holdfast.runtime.log import Level, Line
from holdfast.runtime.phases import NO_VERDICT, ActiveCandidate, Phase, ResourceStatus
from holdfast.runtime.status import Status
from holdfast.state.ledger import Ledger
from holdfast.state.plugin_runs import FAILED


@dataclass(frozen=True, slots=True)
class Conditions:
    """By resource."""

    verdicts: Mapping[str, Verdict | None] = field(default_factory=dict)
    # Plugins and sources of theirs; log sinks; services that others' chains are in the way of.
    failing: Mapping[str, str] = field(default_factory=dict)
    active: Mapping[str, ActiveCandidate] = field(default_factory=dict)
    # Why a program of theirs does not run, or had to be started again.
    services: Mapping[str, str] = field(default_factory=dict)
    # Of peers: since when a session is established, and what it has told.
    sessions: Mapping[str, str] = field(default_factory=dict)

    def of(self, resource_status: ResourceStatus) -> ResourceStatus:
        """A phase that the plan gave it stays. A check whose verdict is bad is Pending by that."""
        fallen = "" if resource_status.well else self.services.get(resource_status.resource, "")
        if fallen:
            resource_status = replace(
                resource_status,
                reason=f"{resource_status.reason}; {fallen}" if resource_status.reason else fallen,
            )
        active = self.active.get(resource_status.resource)
        if active is not None:
            reason = (
                f"{resource_status.reason}; {active}" if resource_status.reason else str(active)
            )
            return replace(resource_status, reason=reason, active=active)
        if resource_status.phase is not Phase.HEALTHY:
            return resource_status
        if resource_status.resource in self.failing:
            return replace(
                resource_status, phase=Phase.DEGRADED, reason=self.failing[resource_status.resource]
            )
        if resource_status.resource in self.sessions:
            return replace(resource_status, reason=self.sessions[resource_status.resource])
        if resource_status.resource not in self.verdicts:
            return resource_status
        verdict = self.verdicts[resource_status.resource]
        if verdict is None:
            return replace(resource_status, phase=Phase.UNKNOWN, reason=NO_VERDICT)
        return replace(resource_status, reason=verdict.reason)

    def told(self, status: Status) -> Status:
        """A target that was not asked yet is no fault: the router is as declared all the same."""
        resources = [self.of(resource) for resource in status.resources]
        return replace(status, resources=resources, healthy=status.healthy and not self.failing)


def conditions(paths: Paths, resources: Sequence[Resource], facts: Facts, plan: Plan) -> Conditions:
    with Ledger.read(paths) as ledger:
        active = active_candidates.active(ledger, resources, facts)
        failing = _failing(ledger, resources) | _failing_sinks(paths, ledger, resources)
    failing |= barred(resources, facts)
    probed = registry.having(resources, lambda kind: kind.has_verdict)
    checks = {resource.id: facts.verdicts.get(resource.name) for resource in probed}
    peers = sessions.sessions(paths, plan)
    failing |= peers.down
    return Conditions(checks, failing, active, _fallen(paths, plan), peers.up)


def _fallen(paths: Paths, plan: Plan) -> dict[str, str]:
    """By resource, of those that something is left to do or to wait for. Looked at now, as the plan
    was: what an apply was told may be over."""
    services = [op for op in plan.operations if op.kind == SERVICE.name]
    unwell = {held.owner for held in (*plan.pending, *plan.blocked)}
    unwell.update(owner for op in services if op.verb is not Verb.KEEP for owner in op.owners)
    asked = [op for op in services if unwell.intersection(op.owners)]
    if not asked:
        return {}
    from holdfast.host.services import ended  # most of the time all is well

    said = ended.why(paths, [op.subject for op in asked if isinstance(op.subject, Artifact)])
    found: dict[str, list[str]] = {}
    for op in asked:
        name = op.subject.key.name if isinstance(op.subject, Artifact) else ""
        for owner in op.owners if name in said else ():
            found.setdefault(owner, []).append(said[name])
    return {owner: "; ".join(each) for owner, each in found.items()}


def troubles(paths: Paths, resources: Sequence[Resource], facts: Facts) -> list[str]:
    """For the log and the count of what is in the way: a source is told of by its plugin."""
    failing = barred(resources, facts)
    # A ledger that cannot be read is told of by the pass, which goes on without it.
    with suppress(LedgerError):
        if registry.having(resources, lambda kind: kind.program):
            with Ledger.read(paths) as ledger:
                runs = _failing(ledger, resources)
                failing |= _failing_sinks(paths, ledger, resources)
            failing |= {name: why for name, why in runs.items() if plugin_of(name)}
    return [
        Line(f"degraded: {name}: {reason}", Level.WARNING, of_resource=True)
        for name, reason in failing.items()
    ]


def _failing_sinks(paths: Paths, ledger: Ledger, resources: Sequence[Resource]) -> dict[str, str]:
    if not registry.having(resources, lambda kind: kind.receives_events):
        return {}
    from holdfast.runtime import log_sinks

    return log_sinks.failing(paths, ledger, resources)


def _failing(ledger: Ledger, resources: Sequence[Resource]) -> dict[str, str]:
    plugins = {
        resource.name: resource
        for resource in registry.having(resources, lambda kind: kind.proposes_parts)
    }
    if not plugins:
        return {}
    found: dict[str, str] = {}
    seen: set[str] = set()
    for run in ledger.runs():  # the newest first
        if run.plugin in plugins and run.plugin not in seen and run.outcome == FAILED:
            path = plugins[run.plugin].spec.executable
            where = "" if path in run.reason else f" ({path})"
            found[plugin_source(run.plugin)] = f"its last run failed{where}: {run.reason}"
        seen.add(run.plugin)
    for resource in registry.having(resources, lambda kind: kind.admits_parts):
        plugin = resource.spec.contributor
        if plugin in found:
            found[resource.id] = f"{plugin}: {found[plugin]}"
    return found
