"""The driver of BGP: instances, filters, groups, peers, networks and aggregates in bgpd."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Driver, Failure, Result, Scope
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.bgp_attributes import ours
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, BGP_NETWORK
from holdfast.engine.kinds.bgp_peer import BGP_PEER, BGP_PEER_GROUP
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.frr import bgp_steps, bgp_view, network_steps
from holdfast.frr.commands import line
from holdfast.frr.daemon import SETTLES_S, Daemon
from holdfast.frr.lines import BATCH, Step
from holdfast.frr.networks import NetworkSighting, map_is_whole, see_networks
from holdfast.frr.running_config import RunningConfig

FOLDER = Path("/run/frr")
# Maps that a line below `router bgp` names.
_NAMED = re.compile(r"^ .*route-map (HF-\S+)", re.MULTILINE)


@dataclass(slots=True)
class _Job:
    """One operation on a single artifact, on its way."""

    operation: Operation
    steps: Sequence[Step] = ()
    failure: Failure | None = None
    said: list[str] = field(default_factory=list)  # what FRR did not take

    def result(self) -> Result:
        if self.failure is not None:
            return Result(self.operation, 0, (self.failure,))
        return Result(self.operation, 1)


class BgpDriver(Driver):
    kinds = tuple(
        kind.name
        for kind in (
            BGP_INSTANCE, BGP_FILTER, BGP_PEER_GROUP, BGP_PEER, BGP_NETWORK, BGP_AGGREGATE,
        )
    )  # fmt: skip

    def __init__(self, folder: Path = FOLDER, settles: float = SETTLES_S) -> None:
        self._bgpd = Daemon(folder, "bgpd", settles)
        self._claimed: frozenset[Key] = frozenset()

    def close(self) -> None:
        self._bgpd.close()

    def observe(self, scope: Scope) -> Observed:
        if not self._bgpd.exists and not self._is_concerned(scope):
            return Observed(bulk={BGP_NETWORK.name: NetworkSighting(RunningConfig())})
        config = self._bgpd.read()
        self._claimed = frozenset(scope.claims)
        wanted = network_steps.identities(scope)
        return Observed(
            bgp_view.sightings(scope, config),
            bulk={BGP_NETWORK.name: see_networks(config, wanted)},
            losses=bgp_view.losses(scope, config),
        )

    def _is_concerned(self, scope: Scope) -> bool:
        if any(batch.kind.name == BGP_NETWORK.name for batch in scope.batches):
            return True
        return any(key.kind in self.kinds for key in (*scope.keys, *scope.claims))

    def content(self, seen: Artifact) -> bytes:
        return bgp_steps.password_of(seen.key, self._bgpd.read())

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        try:
            config = self._bgpd.read(anew=False)
            if operations[0].kind == BGP_NETWORK.name:
                results = self._networks(operations, config, progress)
            else:
                results = self._singles(operations, config, progress)
            if any(operation.verb is not Verb.CREATE for operation in operations):
                self._sweep_maps()
        except DriverError as error:
            return [_failed(operation, str(error)) for operation in operations]
        return results

    def _singles(
        self,
        operations: Sequence[Operation],
        config: RunningConfig,
        progress: Callable[[int], None],
    ) -> list[Result]:
        jobs = [self._job(operation, config) for operation in operations]
        steps = [(job, step) for job in jobs for step in job.steps]
        answers = self._bgpd.tell([step for _, step in steps])
        for (job, _), answer in zip(steps, answers, strict=True):
            if answer.failed:
                job.said.append(f"{answer.line}: {answer.words}")
        now = self._bgpd.read()
        for job in jobs:
            if job.failure is None:
                job.failure = _unlike(job, now)
        progress(len(operations))
        return [job.result() for job in jobs]

    def _job(self, operation: Operation, config: RunningConfig) -> _Job:
        subject = operation.subject
        assert isinstance(subject, Artifact)  # noqa: S101 (networks alone come in batches)
        there = bgp_view.artifact(subject.key, config)
        refused = self._refusal(operation, subject, there, config)
        if refused is not None:
            return _Job(operation, failure=refused)
        try:
            return _Job(operation, bgp_steps.steps(operation, subject, there, config))
        except DriverError as error:
            return _Job(operation, failure=Failure(subject.key, str(error)))

    def _refusal(
        self,
        operation: Operation,
        subject: Artifact,
        there: Artifact | None,
        config: RunningConfig,
    ) -> Failure | None:
        """Why an operation must not be carried out on what is there by now."""
        key = subject.key
        if operation.verb is Verb.CREATE:
            if there is not None:
                return Failure(key, "it is there already", exists=True)
            other = bgp_view.in_the_way(key, config)
            return Failure(key, f"{other} has its name", obstructed=True) if other else None
        if there is None:
            return None  # a delete is done then, and all else is made anew
        planned = operation.observed
        if isinstance(planned, Artifact):
            differing = [
                name
                for name in KINDS[key.kind].fields
                if name in planned.fields and there.fields.get(name) != planned.fields[name]
            ]
            if differing:
                changed = ", ".join(differing)
                return Failure(key, f"no longer what was planned for: {changed} differs")
        if operation.verb in (Verb.DELETE, Verb.REPLACE):
            lost = bgp_steps.others_lost(key, config, self._claimed)
            unsaid = [said for said in lost if said not in operation.losses]
            if unsaid:
                return Failure(key, f"would take what others made: {'; '.join(unsaid)}")
        return None

    def _networks(
        self,
        operations: Sequence[Operation],
        config: RunningConfig,
        progress: Callable[[int], None],
    ) -> list[Result]:
        jobs = [network_steps.job(operation, config) for operation in operations]
        network_steps.carry_out(jobs, config, self._bgpd)
        now = self._bgpd.read()
        results = [network_steps.result(job, now) for job in jobs]
        progress(sum(operation.count for operation in operations))
        return results

    def _sweep_maps(self) -> None:
        """Maps of ours, as they were made, that nothing names any more."""
        config = self._bgpd.read(anew=False)
        mine = [
            name
            for name in config.route_maps
            if ours(name) and "-" not in name.removeprefix("HF-") and map_is_whole(name, config)
        ]
        if not mine:
            return
        named = set(_NAMED.findall(self._bgpd.text))
        steps = [Step(BATCH, line(f"no route-map {name}")) for name in mine if name not in named]
        if steps:
            self._bgpd.tell(steps)


def _unlike(job: _Job, now: RunningConfig) -> Failure | None:
    """What of an operation is not so, by what FRR shows afterwards."""
    operation, subject = job.operation, job.operation.subject
    assert isinstance(subject, Artifact)  # noqa: S101 (as above)
    seen = bgp_view.artifact(subject.key, now)
    said = "; ".join(job.said) or "FRR took every line"
    if operation.verb is Verb.DELETE:
        return None if seen is None else Failure(subject.key, f"it is still there ({said})")
    if seen is None:
        return Failure(subject.key, f"it is not there afterwards ({said})")
    kind = KINDS[subject.key.kind]
    wanted: Mapping[str, object] = subject.fields
    differing = [
        f"{name} is {seen.fields.get(name)!r}"
        for name in kind.fields
        if (name in wanted or name in kind.surplus)
        and not kind.matches(name, subject.fields.get(name), seen.fields.get(name))
    ]
    if not differing:
        return None
    return Failure(subject.key, f"{', '.join(differing)} afterwards ({said})")


def _failed(operation: Operation, why: str) -> Result:
    subject = operation.subject
    if isinstance(subject, Artifact):
        return Result(operation, 0, (Failure(subject.key, why),))
    return Result(
        operation, 0, tuple(Failure(subject.artifact(key).key, why) for key in subject.keys)
    )
