"""Services under the supervisor of our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import DriverError
from holdfast.host.services import log, processes, unit_file
from holdfast.host.services.backend import Seen
from holdfast.host.services.client import Client
from holdfast.host.services.folder import CHANGED, PLACE, Definition, Folder, Running

UNSUPERVISED = "runs, without a supervisor"
ELSEWHERE = "runs in another network namespace"


class OwnSupervisor:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = Folder(root)
        self._client = Client(root)
        self._log_sizes: dict[str, int] = {}

    def look(self, names: Iterable[str]) -> dict[str, Seen]:
        found = {}
        wanted = [name for name in self._folder.names() if name in set(names)]
        supervised = self._client.there() if wanted else False
        for name in wanted:
            try:
                definition = self._folder.definition(name)
                running = self._folder.running(name)
            except ValueError as error:
                found[name] = Seen("", "", False, "", holder=str(error))
                continue
            seen = _seen(definition, running, supervised)
            if seen is not None:
                found[name] = seen
        return found

    def create(self, definition: Definition) -> int:
        self._folder.create(definition)
        return self._ensure(definition)

    def change(self, definition: Definition) -> int:
        self._check(definition.name, definition.mark)
        self._folder.define(definition)
        return self._ensure(definition)

    def remove(self, name: str, mark: str) -> None:
        definition = self._check(name, mark)
        self._client.remove(name, definition.stop_timeout if definition else 10)

    def sweep(self, name: str) -> None:
        self._folder.sweep(name)

    def close(self) -> None:
        """Every question has a connection of its own."""

    def definition(self, name: str) -> bytes:
        definition = self._folder.definition(name)
        if definition is None:
            raise ValueError("its definition is gone")
        return unit_file.render(definition)

    def last_words(self, name: str, lines: int = 4) -> str:
        return log.last_lines(self._root, name, self._log_sizes.get(name, 0), lines)

    def ended(self, name: str) -> str:
        return self._folder.ended(name)

    def _ensure(self, definition: Definition) -> int:
        self._log_sizes[definition.name] = log.size(self._root, definition.name)
        return self._client.ensure(definition.name, definition.stop_timeout)

    def _check(self, name: str, mark: str) -> Definition | None:
        """Read again just before: another's is not touched."""
        definition = self._folder.definition(name)
        if definition is not None and definition.mark != mark:
            raise ValueError(f"{PLACE}/{name}.json is another one since the plan was made")
        return definition


def _seen(definition: Definition | None, running: Running | None, supervised: bool) -> Seen | None:
    here = True
    if running is not None:
        try:
            here = processes.network(running.process.pid) == processes.network()
        except (FileNotFoundError, ProcessLookupError):
            running = None
        except OSError as error:
            raise DriverError(f"process {running.process.pid}: {error}") from error
    # Asked last, for the number may be another's by now.
    if running is not None and not processes.alive(running.process):
        running = None
    if definition is None:
        if running is None:
            return None
        return Seen(running.mark, f"{running.unit} (its definition is gone)", True, running.reload)
    unit = definition.unit
    if not definition.intact:
        unit = f"{unit} {CHANGED}"
    elif running is not None:
        unit = running.unit
    if running is None:
        return Seen(definition.mark, unit, False, definition.reload)
    active: bool | str = True if supervised else UNSUPERVISED
    return Seen(definition.mark, unit, active if here else ELSEWHERE, running.reload)
