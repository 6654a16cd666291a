"""The driver of units that another system made, and which of them can be claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Artifact, Key, Value
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.file import digest
from holdfast.engine.kinds.unit import UNIT, place
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import contents, rooted, steps
from holdfast.host.contents import InFiles
from holdfast.host.services.backend import is_systemds
from holdfast.paths import Paths

if TYPE_CHECKING:  # few passes need it
    from holdfast.host.services.systemd_units import State, SystemdUnits

_OVER = ("inactive", "failed")


def claimable(paths: Paths, name: str) -> Artifact:
    """What a claim on this unit has to say, by its file as it is now. ValueError says why there can
    be none."""
    if not is_systemds(paths):
        raise ValueError(
            "a unit is claimed where PID 1 is systemd, and the root and the network are the"
            " machine's: `systemctl disable --now` it before the first apply"
        )
    try:
        seen = contents.at(paths.root, place(name))
    except OSError as error:
        raise ValueError(f"{place(name)} could not be read: {steps.words(error)}") from error
    if seen is None:
        raise ValueError(f"there is no {place(name)}, so that there is nothing to claim")
    if seen.type != "file":
        raise ValueError(f"{place(name)} is a {seen.type}, and only a file can be told again")
    return Artifact(Key(UNIT.name, name), {"sha256": seen.sha256})


class ForeignUnitDriver(InFiles):
    kind = UNIT

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self._paths = paths
        self._opened: SystemdUnits | None = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _systemd(self) -> SystemdUnits:
        if self._opened is None:
            from holdfast.host.services.systemd_units import SystemdUnits

            self._opened = SystemdUnits()
        return self._opened

    def observe(self, scope: Scope) -> Observed:
        if UNIT.name in scope.named_kinds() and not is_systemds(self._paths):
            raise DriverError("units are seen where systemd is PID 1 alone, and it is not here")
        return super().observe(scope)

    def look(self, key: Key) -> Sighting | None:
        seen = contents.at(self._root, place(key.name))
        return _sighting(key, seen, self._systemd.state(key.name)) if seen is not None else None

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _step(self, operation: Operation, subject: Artifact) -> None:
        observed = operation.observed if isinstance(operation.observed, Artifact) else subject
        try:
            match operation.verb:
                case Verb.CREATE:
                    self._create(subject)
                case Verb.UPDATE:
                    self._settle(subject)
                case Verb.DELETE:
                    self._delete(observed)
                case _:
                    raise ValueError(f"a unit cannot be the subject of {operation.verb}")
        except DriverError as error:
            raise ValueError(str(error)) from error

    def _delete(self, expected: Artifact) -> None:
        """Its file goes last: while it is there, what is left to do is found again."""
        name = expected.key.name
        if not self._still(expected):
            return
        state = self._systemd.state(name)
        if state.fragment not in ("", place(name)):
            raise ValueError(f"systemd has it by {state.fragment}, not by {place(name)}")
        if state.active not in _OVER:
            self._systemd.job("StopUnit", name)
        self._systemd.ask("DisableUnitFiles", "asb", [name], False)
        if self._still(expected):  # it may have taken a minute to end
            with rooted.parent(self._paths.root, place(name)) as (folder, file):
                rooted.remove(folder, file)
        self._systemd.ask("Reload")
        self._systemd.refresh(name)

    def _create(self, desired: Artifact) -> None:
        """Brings back what a trial took away."""
        mode = int(str(desired.fields["mode"]), 8)
        if digest(desired.payload, mode) != desired.fields.get("sha256"):
            raise ValueError("the plan does not carry the unit file it declares")
        path = place(desired.key.name)
        with rooted.parent(self._paths.root, path, create=True) as (folder, file):
            rooted.sweep(folder, file)
            rooted.create(folder, file, desired.payload, mode)
        self._settle(desired)

    def _settle(self, desired: Artifact) -> None:
        """It starts at boot, and runs, where it did."""
        name = desired.key.name
        self._still(desired)
        if desired.fields.get("enabled"):
            self._systemd.ask("EnableUnitFiles", "asbb", [name], False, False)
        # After it: systemd 257 says of every unit, from then on, that it wants to be loaded again.
        self._systemd.ask("Reload")
        if desired.fields.get("runs"):
            self._systemd.refresh(name)
            self._systemd.job("StartUnit", name)

    def _still(self, expected: Artifact) -> bool:
        """Read again just before: what somebody wrote since the plan is theirs. False where it is
        gone."""
        seen = contents.at(self._root, place(expected.key.name))
        if seen is None:
            return False
        if seen.type != "file" or seen.sha256 != expected.fields.get("sha256"):
            raise ValueError(f"{place(expected.key.name)} changed since the plan was made")
        return True


def _sighting(key: Key, seen: rooted.Seen, state: State) -> Sighting:
    fields: dict[str, Value] = {
        "sha256": seen.sha256,
        "mode": f"{seen.mode:04o}",
        "enabled": state.enabled,
        "runs": state.active not in _OVER,
    }
    return Sighting(Artifact(key, fields), holder=place(key.name), nonce=seen.sha256)
