"""Operations on single artifacts of a daemon: checked, told, and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.frr.daemon import Daemon
from holdfast.frr.lines import Step
from holdfast.frr.running_config import RunningConfig

# What is there under a key.
See = Callable[[Key, RunningConfig], Artifact | None]
# What is told for an operation: on what is declared, and what is there now, which may be nothing.
Tell = Callable[[Operation, Artifact, Artifact | None, RunningConfig], Sequence[Step]]


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


@dataclass(frozen=True, slots=True)
class Singles:
    """How a daemon's artifacts are seen and told."""

    see: See
    tell: Tell
    # What of another kind has the name already; empty where nothing has.
    in_the_way: Callable[[Key, RunningConfig], str] = lambda _key, _config: ""
    # What of others would go with it.
    others_lost: Callable[[Key, RunningConfig], Sequence[str]] = lambda _key, _config: ()

    def apply(
        self, daemon: Daemon, operations: Sequence[Operation], config: RunningConfig
    ) -> list[Result]:
        jobs = [self._job(operation, config) for operation in operations]
        steps = [(job, step) for job in jobs for step in job.steps]
        answers = daemon.tell([step for _, step in steps])
        for (job, _), answer in zip(steps, answers, strict=True):
            if answer.failed:
                job.said.append(f"{answer.line}: {answer.words}")
        now = daemon.read()
        for job in jobs:
            if job.failure is None:
                job.failure = self._unlike(job, now)
        return [job.result() for job in jobs]

    def _job(self, operation: Operation, config: RunningConfig) -> _Job:
        subject = operation.subject
        assert isinstance(subject, Artifact)  # noqa: S101 (networks alone come in batches)
        there = self.see(subject.key, config)
        refused = self._refusal(operation, subject, there, config)
        if refused is not None:
            return _Job(operation, failure=refused)
        try:
            return _Job(operation, self.tell(operation, subject, there, config))
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
            other = self.in_the_way(key, config)
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
            lost = self.others_lost(key, config)
            unsaid = [said for said in lost if said not in operation.losses]
            if unsaid:
                return Failure(key, f"would take what others made: {'; '.join(unsaid)}")
        return None

    def _unlike(self, job: _Job, now: RunningConfig) -> Failure | None:
        """What of an operation is not so, by what FRR shows afterwards."""
        operation, subject = job.operation, job.operation.subject
        assert isinstance(subject, Artifact)  # noqa: S101 (as above)
        seen = self.see(subject.key, now)
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


def failed(operation: Operation, why: str) -> Result:
    subject = operation.subject
    if isinstance(subject, Artifact):
        return Result(operation, 0, (Failure(subject.key, why),))
    return Result(
        operation, 0, tuple(Failure(subject.artifact(key).key, why) for key in subject.keys)
    )
