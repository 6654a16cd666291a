"""The driver of services."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine import difference
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.difference import Difference
from holdfast.engine.driver import Driver, Failure, Result, Scope
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import SERVICE, unit_of
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.programs import PACKAGES
from holdfast.host.services import backend as backends
from holdfast.host.services import reads
from holdfast.host.services.backend import Backend, Seen
from holdfast.host.services.declared import definition_of
from holdfast.host.services.folder import Definition
from holdfast.paths import Paths

# A program that dislikes its configuration says so and ends within this time.
SETTLE_S = 0.3


# What differs where no setting does, by the field that tells.
_NOTES = {
    "unit": "its settings stay; the files that it reads when it starts differ",
    "reload": "its settings stay; the files that it reads again differ",
}


@dataclass(slots=True)
class _Started:
    index: int  # of its result
    pidfd: int


class ServiceDriver(Driver):
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._chosen: Backend | None = None

    @property
    def _backend(self) -> Backend:
        if self._chosen is None:
            self._chosen = backends.choose(self._paths)
        return self._chosen

    def close(self) -> None:
        if self._chosen is not None:
            self._chosen.close()

    def observe(self, scope: Scope) -> Observed:
        wanted = {key.name for key in (*scope.keys, *scope.claims) if key.kind == SERVICE.name}
        if not wanted:
            return Observed()
        try:
            seen = self._backend.look(sorted(wanted))
        except OSError as error:
            raise DriverError(f"services cannot be observed: {steps.words(error)}") from error
        sightings = {Key(SERVICE.name, name): (_sighting(name, one),) for name, one in seen.items()}
        return Observed(sightings=sightings)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        results: list[Result] = []
        started: list[_Started] = []
        for operation in operations:
            result, pid = self._carry_out(operation)
            if pid:
                try:
                    started.append(_Started(len(results), os.pidfd_open(pid)))
                except ProcessLookupError:
                    result = self._fallen(operation)
            results.append(result)
            progress(operation.count)
        for fallen in _wait(started):
            results[fallen] = self._fallen(results[fallen].operation)
        return results

    def difference(self, operation: Operation) -> Difference:
        """Between what it is defined by and what is declared, setting by setting."""
        from holdfast.host.services import unit_file

        subject, observed = operation.subject, operation.observed
        if not isinstance(subject, Artifact):
            raise TypeError("services come one by one")
        before: list[str] = []
        after: list[str] = []
        if isinstance(observed, Artifact):
            before = unit_file.settings(self._backend.definition(subject.key.name))
        if operation.verb is not Verb.DELETE:
            after = unit_file.settings(unit_file.render(definition_of(subject, "plan")))
        hunks = difference.parts(before, after, lambda _line: "")
        fields = {change.field for change in operation.changes}
        note = "" if hunks or not fields else _NOTES.get(max(fields - {"active"}, default=""), "")
        return difference.of(hunks, note)

    def sweep(self, key: Key) -> None:
        with suppress(OSError, ValueError):
            self._backend.sweep(key.name)

    def _carry_out(self, operation: Operation) -> tuple[Result, int]:
        subject = operation.subject
        if not isinstance(subject, Artifact):
            raise TypeError("services come one by one")
        pid = 0
        try:
            match operation.verb:
                case Verb.CREATE:
                    pid = self._backend.create(self._definition(operation, operation.nonce))
                case Verb.UPDATE:
                    pid = self._backend.change(self._definition(operation, _mark(operation)))
                case Verb.DELETE:
                    self._backend.remove(subject.key.name, _mark(operation))
                case _:
                    raise ValueError(f"a service cannot be the subject of {operation.verb}")
        except FileExistsError as error:
            exists = operation.verb is Verb.CREATE
            failure = Failure(subject.key, steps.words(error), exists=exists)
            return Result(operation, 0, (failure,)), 0
        except (OSError, ValueError, DriverError) as error:
            failure = Failure(subject.key, steps.words(error) + lacking(subject))
            return Result(operation, 0, (failure,)), 0
        return Result(operation, 1), pid

    def _definition(self, operation: Operation, mark: str) -> Definition:
        """With what is in its files now: they are in place by the time it is its turn."""
        assert isinstance(operation.subject, Artifact)  # noqa: S101 (checked before)
        files = tuple(key.name for key in operation.requires if key.kind == FILE.name)
        read = reads.digest(self._paths.root, files)
        return definition_of(operation.subject, mark, files, read)

    def _fallen(self, operation: Operation) -> Result:
        """It was started, and is over already. It will be tried again, but this is not success."""
        assert isinstance(operation.subject, Artifact)  # noqa: S101 (checked before it was started)
        key = operation.subject.key
        said = self._backend.last_words(key.name)
        words = f"it ended as soon as it was started{': ' + said if said else ''}"
        return Result(operation, 0, (Failure(key, words + lacking(operation.subject)),))


def lacking(subject: Artifact) -> str:
    """What to install, where a program that we know is not there. It may be run by a shell that
    moves folders first."""
    for word in unit_of(subject).argv if subject.payload else ():
        if word in PACKAGES and not Path(word).exists():
            return f": install the Debian package {PACKAGES[word]}"
    return ""


def _wait(started: Sequence[_Started]) -> list[int]:
    """Which of these end within the time in which a bad configuration shows."""
    poll = select.poll()
    by_descriptor = {one.pidfd: one for one in started}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + SETTLE_S
    fallen: list[int] = []
    while len(fallen) < len(by_descriptor) and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            fallen.append(by_descriptor[descriptor].index)
    for descriptor in by_descriptor:
        os.close(descriptor)
    return fallen


def _sighting(name: str, seen: Seen) -> Sighting:
    fields = {"unit": seen.unit, "active": seen.active, "reload": seen.reload, "mark": seen.mark}
    artifact = Artifact(Key(SERVICE.name, name), fields)
    return Sighting(artifact, holder=seen.holder, nonce=seen.mark)


def _mark(operation: Operation) -> str:
    """Of the service that the plan was made for."""
    if not isinstance(operation.observed, Artifact) or not operation.observed.fields.get("mark"):
        raise ValueError("the plan does not say which one it is for")
    return str(operation.observed.fields["mark"])
