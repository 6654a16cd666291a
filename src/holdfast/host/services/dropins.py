"""The driver of configuration files that units of others' read.

Whether a unit has read a file is not to be seen from outside. So it is written down: before the
file changes, that it was not read; after the restart, which content was. A unit that runs and of
which nothing is written down was started by a boot, which came after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Result
from holdfast.engine.kinds.dropin import DROPIN, parts
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import contents, rooted, steps
from holdfast.host.contents import InFiles
from holdfast.host.services.backend import systemd_runs
from holdfast.host.services.folder import Folder
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.host.services.systemd_units import SystemdUnits

_MODE = 0o644


class DropinDriver(InFiles):
    kind = DROPIN

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self._folder = Folder(paths.root)
        self._units: SystemdUnits | None = None

    def close(self) -> None:
        if self._units is not None:
            self._units.close()

    @property
    def _systemd(self) -> SystemdUnits:
        if self._units is None:
            from holdfast.host.services.systemd_units import SystemdUnits  # few passes need it

            self._units = SystemdUnits()
        return self._units

    def look(self, key: Key) -> Sighting | None:
        seen = contents.at(self._root, parts(key)[0])
        return self._sighting(key, seen) if seen is not None else None

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    @property
    def _whole(self) -> bool:
        """Is it the running system? A folder that is none yet has no units to restart."""
        return self._root.resolve() == Path("/")

    def _sighting(self, key: Key, seen: rooted.Seen) -> Sighting:
        unit = parts(key)[1]
        note = self._folder.note(unit)
        read: bool | str = note is None or note == seen.sha256
        if self._whole and systemd_runs() and not self._systemd.state(unit).runs:
            read = f"{unit} does not run"
        artifact = Artifact(key, {"sha256": seen.sha256, "read": read})
        return Sighting(artifact, holder=f"{seen.type} of user {seen.uid}", nonce=seen.sha256)

    def _step(self, operation: Operation, _subject: Artifact) -> None:
        if operation.verb is Verb.DELETE:
            self._delete(operation)
        elif operation.verb in (Verb.CREATE, Verb.UPDATE):
            self._write(operation)
        else:
            raise ValueError(f"a drop-in cannot be the subject of {operation.verb}")

    def _write(self, operation: Operation) -> None:
        desired = operation.subject
        assert isinstance(desired, Artifact)  # noqa: S101 (checked before)
        if hashlib.sha256(desired.payload).hexdigest() != desired.fields.get("sha256"):
            raise ValueError("the plan does not carry the content it declares")
        path, unit = parts(desired.key)
        self._check_unit(unit)
        self._folder.write_note(unit, "")
        with rooted.parent(self._root, path, create=True) as (folder, name):
            rooted.sweep(folder, name)
            if operation.verb is Verb.CREATE:
                rooted.create(folder, name, desired.payload, _MODE)
            else:
                seen = rooted.look(folder, name)
                _still(seen, operation.observed)
                rooted.replace(folder, name, desired.payload, _MODE, seen)
        if self._whole:
            self._systemd.ask("EnableUnitFiles", "asbb", [unit], False, False)
            # Or systemd 257 says of every unit, from then on, that it wants to be loaded again.
            self._systemd.ask("Reload")
            self._systemd.refresh(unit)
            self._systemd.job("RestartUnit", unit)
            state = self._systemd.state(unit)
            if not state.runs:
                raise DriverError(f"{unit} is {state.active}, {self._systemd.why(unit)}")
        self._folder.write_note(unit, str(desired.fields["sha256"]))

    def _delete(self, operation: Operation) -> None:
        path, unit = parts(operation.subject.key)  # type: ignore[union-attr]  # checked before
        with suppress(FileNotFoundError), rooted.parent(self._root, path) as (folder, name):
            rooted.sweep(folder, name)
            seen = rooted.look(folder, name)
            if seen is not None:
                _still(seen, operation.observed)
                self._folder.write_note(unit, "")
                rooted.remove(folder, name)
        if self._whole and systemd_runs():
            self._systemd.refresh(unit)
            self._systemd.job("TryRestartUnit", unit)
        self._folder.forget_note(unit)

    def _check_unit(self, unit: str) -> None:
        if not self._whole:
            return
        if not systemd_runs():
            raise DriverError(f"{unit} needs systemd as PID 1, and something else is")
        state = self._systemd.state(unit)
        if state.load != "loaded":
            package = unit.removesuffix(".service")
            raise DriverError(f"{unit} is {state.load}: install the Debian package {package}")


def _still(seen: rooted.Seen | None, observed: object) -> None:
    """Read again just before: what somebody wrote since the plan is theirs."""
    planned = observed.fields.get("sha256") if isinstance(observed, Artifact) else None
    if seen is None:
        raise ValueError("it is gone since the plan was made")
    if seen.type != "file" or seen.sha256 != planned:
        raise ValueError("it changed since the plan was made")
