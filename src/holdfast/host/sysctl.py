"""The driver of kernel settings under /proc/sys."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.sysctl import SYSCTL, UNSET, sysctl
from holdfast.engine.observed import Loss, Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.steps import takes_more, words

# What others would lose if a setting (a path below /proc/sys) got a value, by the claims there are.
Losses = Callable[[Path, str, Mapping[Key, Claim]], list[str]]


class SysctlDriver(Driver):
    def __init__(self, proc: Path = Path("/proc/sys"), lost: Losses = lambda *_change: []) -> None:
        self._proc = proc
        self._lost = lost
        self._claims: Mapping[Key, Claim] = {}  # by the last observation

    def observe(self, scope: Scope) -> Observed:
        self._claims = scope.claims
        sightings = {}
        unknown: dict[str | Key, str] = {}
        losses: dict[Key, Sequence[Loss]] = {}
        for key in sorted({*scope.keys, *scope.claims}):
            if key.kind != SYSCTL.name:
                continue
            try:
                value = self._read(key.name)
            except (FileNotFoundError, NotADirectoryError):
                # A link that is not there, or a module not loaded; but not a missing /proc.
                if not self._proc.is_dir():
                    raise DriverError(f"{key}: there is no {self._proc}; mount proc") from None
                continue
            except (OSError, ValueError) as error:
                unknown[key] = f"{key}: could not be read: {words(error)}"
                continue
            seen = sysctl(key.name, value)
            sightings[key] = (Sighting(seen),)
            lost = [
                Loss(each, change.field)
                for change in scope.coming(seen).changes
                for each in self._lost(setting_path(key.name), str(change.after), scope.claims)
            ]
            if lost:
                losses[key] = lost
        return Observed(sightings=sightings, unknown=unknown, losses=losses)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _step(self, operation: Operation, subject: Artifact) -> None:
        if operation.verb is not Verb.UPDATE:
            raise ValueError(f"a kernel setting cannot be the subject of {operation.verb}")
        value = str(subject.fields["value"])
        lost = self._lost(setting_path(subject.key.name), value, self._claims)
        more = takes_more(frozenset(operation.losses), lost)
        if more:
            raise ValueError(more)
        self._write(subject.key.name, value)

    def _read(self, name: str) -> str:
        try:
            text = (self._proc / setting_path(name)).read_bytes().decode(errors="surrogateescape")
        except OSError as error:
            if error.errno == errno.EIO:
                return UNSET  # so the kernel says of stable_secret
            raise
        return text.removesuffix("\n")

    def _write(self, name: str, value: str) -> None:
        path = self._proc / setting_path(name)
        # One write for the whole value: the kernel takes each as a new one, from the start.
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode(errors="surrogateescape"))
        except OSError as error:
            raise OSError(error.errno, f"writing {value!r}: {error.strerror}") from error
        finally:
            os.close(descriptor)
        kept = self._read(name)
        if not SYSCTL.matches("value", value, kept):
            raise ValueError(f"wrote {value!r}, and the kernel kept {kept!r}")


def setting_path(key: str) -> Path:
    """The file of a setting below /proc/sys; ValueError for what cannot be one.

    As in sysctl(8): the first separator decides. After a dot, dots separate and a slash stands
    for a dot within a name (`net.ipv4.conf.eth0/10.rp_filter`); after a slash it is a plain path.
    """
    dot, slash = key.find("."), key.find("/")
    if slash < 0 or 0 <= dot < slash:
        key_path = key.translate({ord("."): "/", ord("/"): "."})
    else:
        key_path = key
    parts = key_path.split("/")
    if "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{key!r} is not the name of a kernel setting")
    return Path(*parts)
