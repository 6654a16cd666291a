"""Services as units of systemd, asked for over D-Bus.

What a process was started with is told by a record of it in /run, and where there is none by the
unit file: so before the file changes, the process that runs by the old one is put on record.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from holdfast.errors import DriverError
from holdfast.host import rooted
from holdfast.host.services import processes, unit_file
from holdfast.host.services.backend import Seen
from holdfast.host.services.dbus import DBusError
from holdfast.host.services.folder import CHANGED, Definition, Folder, Running
from holdfast.host.services.reads import OTHER_FILES
from holdfast.host.services.systemd_units import State, SystemdUnits
from holdfast.host.services.unit_file import Marked, place, unit_name

_ROOT = Path("/")


class Systemd:
    def __init__(self) -> None:
        self._folder = Folder(_ROOT)
        self._units = SystemdUnits()

    def look(self, names: Iterable[str]) -> dict[str, Seen]:
        found = {}
        for name in names:
            seen = self._look(name)
            if seen is not None:
                found[name] = seen
        return found

    def create(self, definition: Definition) -> int:
        state = self._units.state(unit_name(definition.name))
        if state.load != "not-found" and not self._marked(definition.name)[1]:
            # The end of a removal that was cut short: the file went, and systemd was not told.
            self._units.ask("Reload")
            state = self._units.state(unit_name(definition.name))
        if state.load != "not-found" or state.active not in ("inactive", "failed"):
            where = state.fragment or f"a unit that is {state.active}"
            raise FileExistsError(f"{unit_name(definition.name)} is there already: {where}")
        content = unit_file.render(definition)
        with rooted.parent(_ROOT, place(definition.name), create=True) as (folder, name):
            rooted.sweep(folder, name)
            rooted.create(folder, name, content, 0o600)
        return self._run(definition, restart=False)

    def change(self, definition: Definition) -> int:
        seen = self._look(definition.name)
        if seen is not None and seen.mark != definition.mark:
            raise ValueError(f"{place(definition.name)} is another one since the plan was made")
        state = self._units.settled(unit_name(definition.name))
        unit, reload = self._of_process(definition.name, state, self._marked(definition.name)[0])
        if state.runs:
            self._record(definition, state.pid, unit, reload)
        content = unit_file.render(definition)
        with rooted.parent(_ROOT, place(definition.name), create=True) as (folder, name):
            rooted.sweep(folder, name)
            rooted.replace(folder, name, content, 0o600, None)
        return self._run(definition, restart=unit != definition.unit)

    def remove(self, name: str, mark: str) -> None:
        seen = self._look(name)
        if seen is None:
            return
        if seen.mark != mark:
            raise ValueError(f"{place(name)} is another one since the plan was made")
        with suppress(DBusError):  # a unit whose file is gone may not be known any more
            self._units.job("StopUnit", unit_name(name))
        self._units.ask("DisableUnitFiles", "asb", [unit_name(name)], False)
        # The file goes last: while it is there, what is left to do is found again.
        self._folder.forget_process(name)
        self._folder.forget_start(name)
        with (
            suppress(FileNotFoundError),
            rooted.parent(_ROOT, place(name)) as (folder, file),
        ):
            rooted.sweep(folder, file)
            rooted.remove(folder, file)
        self._units.ask("Reload")
        self._units.refresh(unit_name(name))

    def sweep(self, name: str) -> None:
        with suppress(FileNotFoundError), rooted.parent(_ROOT, place(name)) as (folder, file):
            rooted.sweep(folder, file)

    def close(self) -> None:
        self._units.close()

    def definition(self, name: str) -> bytes:
        with rooted.parent(_ROOT, place(name)) as (folder, file):
            return rooted.read(folder, file)

    def last_words(self, name: str, lines: int = 4) -> str:
        return self._units.last_words(unit_name(name), lines)

    def ended(self, name: str) -> str:
        return self._units.ended(unit_name(name))

    # One unit.

    def _look(self, name: str) -> Seen | None:
        marked, there = self._marked(name)
        if there and marked is None:
            return Seen("", "", False, "", holder=f"{place(name)} without our mark")
        state = self._units.state(unit_name(name))
        if marked is None:
            return self._without_file(name, state)
        unit, reload = self._of_process(name, state, marked)
        if not marked.intact:
            unit = f"{marked.unit} {CHANGED}"
        elif not state.enabled:
            unit += " (not enabled: it would not start at boot)"
        return Seen(marked.mark, unit, state.runs, reload)

    def _without_file(self, name: str, state: State) -> Seen | None:
        if state.fragment not in ("", place(name)):
            return Seen("", "", state.runs, "", holder=state.fragment)
        if not state.runs:
            return None
        running = self._folder.running(name)
        mark = running.mark if running is not None else ""
        unit, reload = self._of_process(name, state, None)
        gone = f"{unit} (its definition is gone)" if running is not None else unit
        return Seen(mark, gone, True, reload, holder=f"process {state.pid}")

    def _of_process(self, name: str, state: State, marked: Marked | None) -> tuple[str, str]:
        """What the process that runs was started and reloaded with; where none does, what one
        would be."""
        running = self._folder.running(name) if state.runs else None
        if running is not None and running.process == processes.of(state.pid):
            return running.unit, running.reload
        if marked is None:
            return "(its unit file is gone)", ""
        if not marked.intact:
            return f"{marked.unit} {CHANGED}", marked.reload
        if state.runs and state.stale:
            return "(its unit file was not loaded)", marked.reload
        started_with = self._folder.started_with(name) if state.runs else None
        if started_with not in (None, marked.read):
            return f"{marked.unit} {OTHER_FILES}", marked.reload
        return marked.unit, marked.reload

    def _run(self, definition: Definition, *, restart: bool) -> int:
        """Makes systemd do as the unit file says."""
        name = definition.name
        self._units.ask("EnableUnitFiles", "asbb", [unit_name(name)], False, True)
        # After it: from then on systemd 257 says of every unit that it wants to be loaded again.
        self._units.ask("Reload")
        state = self._units.state(unit_name(name))
        if not state.runs or restart:
            self._units.refresh(unit_name(name))
            self._units.job("RestartUnit", unit_name(name))
        else:
            running = self._folder.running(name)
            if running is None or running.reload != definition.reload:
                self._units.job("ReloadUnit", unit_name(name))
        state = self._units.state(unit_name(name))
        if not state.runs:
            raise DriverError(f"it is {state.active}, {self._units.why(unit_name(name))}")
        self._record(definition, state.pid, definition.unit, definition.reload)
        return state.pid

    def _record(self, definition: Definition, pid: int, unit: str, reload: str) -> None:
        found = processes.of(pid)
        if found is not None:
            self._folder.record(definition.name, Running(found, definition.mark, unit, reload))

    def _marked(self, name: str) -> tuple[Marked | None, bool]:
        """What the unit file says of itself, and whether there is one."""
        try:
            with rooted.parent(_ROOT, place(name)) as (folder, file):
                seen = rooted.look(folder, file)
                if seen is None:
                    return None, False
                if seen.type != "file":
                    return None, True
                return unit_file.read(rooted.read(folder, file)), True
        except FileNotFoundError:
            return None, False
