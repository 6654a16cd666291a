"""What systemd tells of its units, to whoever wants to hear it."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters, digits

from holdfast.host.services.dbus import Bus, Message

_TO = "org.freedesktop.systemd1"
_MANAGER = ("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_UNIT = "org.freedesktop.systemd1.Unit"
_UNITS = "/org/freedesktop/systemd1/unit"
# Of the manager: a unit is known no longer, was enabled or disabled; all were loaded anew.
_OF_MANAGER = frozenset({"UnitRemoved", "UnitFilesChanged", "Reloading"})


class UnitSignals:
    """Opened by a call that may take a while; read without one."""

    def __init__(self) -> None:
        self._bus = Bus.open()
        try:
            # Of all units: few change their state in a minute, and a rule for each of ours would
            # have to be waited for whenever there is another one.
            self._bus.listen(
                f"type='signal',sender='{_TO}',path_namespace='{_UNITS}',"
                f"member='PropertiesChanged',arg0='{_UNIT}'"
            )
            self._bus.listen(f"type='signal',sender='{_TO}',interface='{_MANAGER[1]}'")
            # Without it systemd sends no signals at all.
            self._bus.call(_TO, *_MANAGER, "Subscribe")
        except BaseException:
            self._bus.close()
            raise

    def fileno(self) -> int:
        return self._bus.fileno()

    def close(self) -> None:
        self._bus.close()

    def changed(self, told: Callable[[str], None]) -> None:
        """Tells the place of each unit that changed, "" where it may be any of them. DriverError
        where the connection is over."""
        for place in dict.fromkeys(map(_place, self._bus.arrived())):
            if place is not None:
                told(place)


def _place(message: Message) -> str | None:
    if message.member == "PropertiesChanged":
        return message.path
    if message.member == "UnitRemoved" and len(message.body) > 1:
        return str(message.body[1])
    return "" if message.member in _OF_MANAGER else None


def place_of(unit: str) -> str:
    """Where a unit stands on D-Bus: what is neither letter nor digit is written in hex, and a digit
    that comes first, too."""
    escaped = "".join(
        chr(byte) if chr(byte) in ascii_letters or (chr(byte) in digits and at) else f"_{byte:02x}"
        for at, byte in enumerate(unit.encode())
    )
    return f"{_UNITS}/{escaped}"
