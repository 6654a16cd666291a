"""/run/holdfast/services below the root: what shall run, and what does.

    NAME.json      the definition, written by the driver
    NAME.process   the process that runs: number, start, and what it was started and reloaded with
    NAME.started   under systemd: what was in its files when it was last started
    NAME.ended     under our own supervisor: how it ended by itself when it last did
    UNIT.read      what a unit of others' has read of the files we gave it
    .lock .socket  the supervisor's

A process is on record before its program begins, so that whoever comes after a crash finds it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.host import rooted
from holdfast.host.services import reads
from holdfast.host.services.processes import Process

PLACE = "/run/holdfast/services"
LOGS = "/var/log/holdfast"
CHANGED = "(its definition was changed by hand)"
LOCK, SOCKET = ".lock", ".socket"


@dataclass(frozen=True, slots=True)
class Definition:
    """What the supervisor has to know of a unit."""

    name: str
    description: str
    mark: str  # given when it was created: the proof that it is the one claimed
    unit: str  # digest of what a start depends on
    reload: str  # digest of what SIGHUP makes it read again
    argv: tuple[str, ...]
    environment: dict[str, str]
    folders: tuple[str, ...]
    stop_timeout: int
    files: tuple[str, ...] = ()  # what it needs in place, by paths before the root
    read: str = ""  # digest of what was in them when this was written
    intact: bool = True  # False: somebody changed it by hand

    @property
    def started_as(self) -> str:
        """What a process that is started by it is known by."""
        return self.unit if self.intact else f"{self.unit} {CHANGED}"


@dataclass(frozen=True, slots=True)
class Running:
    """A process, and what it was started and last reloaded with."""

    process: Process
    mark: str
    unit: str
    reload: str


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def definition(self, name: str) -> Definition | None:
        """None where there is none; ValueError where it is not one."""
        said = self._read(f"{name}.json")
        if said is None:
            return None
        digest = said.pop("digest", "")
        intact = digest == _digest(said)
        try:
            lists = {key: tuple(map(str, said[key])) for key in ("argv", "folders", "files")}
            return Definition(**said | lists | {"intact": intact})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{PLACE}/{name}.json is not a definition: {error}") from error

    def running(self, name: str) -> Running | None:
        """Who is on record, dead or alive."""
        said = self._read(f"{name}.process")
        if said is None:
            return None
        try:
            return Running(**said | {"process": Process(*said["process"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{PLACE}/{name}.process is not a record: {error}") from error

    def create(self, definition: Definition) -> None:
        """FileExistsError where there is one."""
        with self._opened(create=True) as folder:
            name = f"{definition.name}.json"
            rooted.sweep(folder, name)
            rooted.create(folder, name, _json(_written(definition)), 0o600)

    def define(self, definition: Definition) -> None:
        self._write(f"{definition.name}.json", _written(definition))

    def sweep(self, name: str) -> None:
        """Of the definition alone: the supervisor may be writing the record just now."""
        with suppress(FileNotFoundError), self._opened() as folder:
            rooted.sweep(folder, f"{name}.json")

    def record(self, name: str, running: Running) -> None:
        self._write(f"{name}.process", asdict(running) | {"process": list(running.process)})

    def forget_process(self, name: str) -> None:
        self._remove(f"{name}.process")

    def started_with(self, name: str) -> str | None:
        """The digest of what was in its files when systemd last started it; None where nobody
        noted that."""
        try:
            with self._opened() as folder:
                return reads.of_lines(rooted.read(folder, f"{name}.started"))
        except FileNotFoundError:
            return None

    def forget_start(self, name: str) -> None:
        self._remove(f"{name}.started")

    def ended(self, name: str) -> str:
        """How it ended by itself, in words that follow its name; "" where it did not."""
        said = self._read(f"{name}.ended")
        return "" if said is None else str(said.get("how", ""))

    def record_end(self, name: str, how: str) -> None:
        self._write(f"{name}.ended", {"how": how})

    def forget_end(self, name: str) -> None:
        self._remove(f"{name}.ended")

    def forget(self, name: str) -> None:
        self.forget_end(name)
        self._remove(f"{name}.process")
        self._remove(f"{name}.json")

    def note(self, unit: str) -> str | None:
        """The digest of what a unit of others' has read; None where nothing is known."""
        said = self._read(f"{unit}.read")
        return None if said is None else str(said.get("sha256", ""))

    def write_note(self, unit: str, sha256: str) -> None:
        self._write(f"{unit}.read", {"sha256": sha256})

    def forget_note(self, unit: str) -> None:
        self._remove(f"{unit}.read")

    def names(self) -> list[str]:
        """Of everything that is defined or on record."""
        try:
            with self._opened() as folder:
                files = os.listdir(folder)  # noqa: PTH208 (of a descriptor)
        except FileNotFoundError:
            return []
        found = set()
        for file in files:
            name, _, suffix = file.rpartition(".")
            if suffix in ("json", "process") and name and not file.startswith("."):
                found.add(name)
        return sorted(found)

    @contextmanager
    def opened(self, *, create: bool = False) -> Iterator[int]:
        with self._opened(create=create) as folder:
            yield folder

    @contextmanager
    def _opened(self, *, create: bool = False) -> Iterator[int]:
        # The name after it stands for any file in it.
        with rooted.parent(self.root, f"{PLACE}/any", create=create) as (folder, _):
            if create:
                os.fchmod(folder, 0o700)
            yield folder

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            with self._opened() as folder:
                said = json.loads(rooted.read(folder, name))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{PLACE}/{name} cannot be read: {error}") from error
        if not isinstance(said, dict):
            raise ValueError(f"{PLACE}/{name} cannot be read: it is not an object")
        return said

    def _write(self, name: str, said: dict[str, Any]) -> None:
        with self._opened(create=True) as folder:
            rooted.sweep(folder, name)
            rooted.replace(folder, name, _json(said), 0o600, None)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._opened() as folder:
            rooted.sweep(folder, name)
            rooted.remove(folder, name)


def _written(definition: Definition) -> dict[str, Any]:
    said = asdict(definition)
    del said["intact"]
    return said | {"digest": _digest(said)}


def _digest(said: dict[str, Any]) -> str:
    return hashlib.sha256(_json(said)).hexdigest()[:32]


def _json(said: dict[str, Any]) -> bytes:
    return json.dumps(said, sort_keys=True).encode() + b"\n"
