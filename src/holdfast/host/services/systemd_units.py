"""systemd's units as it has them, and jobs it is asked for and that are waited for."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.host import process
from holdfast.host.services import log, processes
from holdfast.host.services.dbus import Bus, DBusError, Message

_TO = "org.freedesktop.systemd1"
_MANAGER = ("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_UNIT = "org.freedesktop.systemd1.Unit"
_SERVICE = "org.freedesktop.systemd1.Service"
_PROPERTIES = "org.freedesktop.DBus.Properties"
# A job may have to wait for a program to end first.
_JOB_TIMEOUT_S = 60.0
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class State:
    """A unit as systemd has it."""

    load: str
    active: str
    pid: int
    fragment: str
    stale: bool  # its file is not what was loaded
    enabled: bool

    @property
    def runs(self) -> bool:
        return self.pid != 0 and self.active in ("active", "reloading")


class SystemdUnits:
    """Units go by their full names."""

    def __init__(self) -> None:
        self._opened: Bus | None = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def ask(self, member: str, signature: str = "", *values: Any) -> tuple[Any, ...]:
        """A method of systemd's manager."""
        return self._bus.call(_TO, *_MANAGER, member, signature, *values)

    def job(self, member: str, unit: str) -> None:
        """Asks for a change of state, and waits for how it went."""
        (job,) = self.ask(member, "ss", unit, "replace")

        def of_job(message: Message) -> bool:
            return message.member == "JobRemoved" and message.body[1] == job

        what = f"{member} of {unit}"
        result = str(self._bus.wait(of_job, _JOB_TIMEOUT_S, what).body[3])
        if result != "done":
            raise DriverError(f"{what}: {result}, {self.why(unit)}")

    def refresh(self, unit: str) -> None:
        """Forgets how often it was started lately: systemd refuses after a few times."""
        with suppress(DBusError):  # one that is not loaded has nothing to forget
            self.ask("ResetFailedUnit", "s", unit)

    def why(self, unit: str) -> str:
        """Why it does not run, in systemd's word and its own."""
        (path,) = self.ask("LoadUnit", "s", unit)
        (result,) = self._bus.call(_TO, path, _PROPERTIES, "Get", "ss", _SERVICE, "Result")
        said = self.last_words(unit)
        return f"{result}{': ' + said if said else ''}"

    def state(self, unit: str) -> State:
        (path,) = self.ask("LoadUnit", "s", unit)

        def get(interface: str, member: str) -> Any:
            return self._bus.call(_TO, path, _PROPERTIES, "Get", "ss", interface, member)[0]

        return State(
            load=str(get(_UNIT, "LoadState")),
            active=str(get(_UNIT, "ActiveState")),
            pid=int(get(_SERVICE, "MainPID")),
            fragment=str(get(_UNIT, "FragmentPath")),
            stale=bool(get(_UNIT, "NeedDaemonReload")),
            enabled=str(get(_UNIT, "UnitFileState")) == "enabled",
        )

    def settled(self, unit: str) -> State:
        """As it is once the jobs that others asked for are over. One that is restarted while it
        starts comes up after RestartSec only, and the job for it is done before."""
        (path,) = self.ask("LoadUnit", "s", unit)
        deadline = time.monotonic() + _JOB_TIMEOUT_S
        while self._bus.call(_TO, path, _PROPERTIES, "Get", "ss", _UNIT, "Job")[0][0] != 0:
            if time.monotonic() > deadline:
                raise DriverError(f"{unit} has had a job under way for {_JOB_TIMEOUT_S:g} s")
            time.sleep(_PAUSE_S)
        return self.state(unit)

    def ended(self, unit: str) -> str:
        """How its program ended by itself, in words that follow its name; "" where it did not."""
        (path,) = self.ask("LoadUnit", "s", unit)

        def get(member: str) -> Any:
            return self._bus.call(_TO, path, _PROPERTIES, "Get", "ss", _SERVICE, member)[0]

        code, status, again = (int(get(f)) for f in ("ExecMainCode", "ExecMainStatus", "NRestarts"))
        if code:
            return f"ended with {processes.how(status if code == os.CLD_EXITED else -status)}"
        # It runs, and systemd forgot how the one before it ended.
        return f"had to be started again, {again} times so far" if again else ""

    def last_words(self, unit: str, count: int = 4) -> str:
        """What it printed last, by the journal."""
        try:
            journalctl = process.find("journalctl", "systemd")
            process.run([journalctl, "--sync"], timeout=10)
            # Its own words, not those of systemd about it.
            options = ("--boot", "--lines", str(count), "--output", "cat", "--no-pager")
            ended = process.run([journalctl, *options, f"_SYSTEMD_UNIT={unit}"], timeout=10)
        except DriverError:
            return ""
        return log.joined(ended.out, count)

    @property
    def _bus(self) -> Bus:
        if self._opened is None:
            self._opened = Bus.open()
            self._opened.listen(f"type='signal',interface='{_MANAGER[1]}',member='JobRemoved'")
            # Without it systemd sends no signals at all.
            self._opened.call(_TO, *_MANAGER, "Subscribe")
        return self._opened
