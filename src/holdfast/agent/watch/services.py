"""Services, and units of others' that read files of ours.

systemd tells of its units over D-Bus. The supervisor of our own keeps a record of what runs, and
that is files (`places`); it has its lock open for writing as long as it lives, so that its end is
the end of a write to the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from holdfast.agent.watch.hint import Hint
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.dropin import DROPIN, parts
from holdfast.engine.kinds.service import SERVICE
from holdfast.errors import DriverError
from holdfast.host.services.backend import systemd_runs
from holdfast.host.services.folder import LOCK, PLACE
from holdfast.host.services.unit_file import place, unit_name
from holdfast.host.services.unit_signals import UnitSignals, place_of

# Until systemd is asked again where the connection to it is over.
AGAIN_S = 5.0
_PATIENCE_S = 1.0

SUPERVISOR = f"{PLACE}/{LOCK}"


def places(key: Key) -> Iterator[str]:
    """The files, before the root, that say besides how a service runs, or a unit of others'."""
    if key.kind == SERVICE.name:
        yield f"{PLACE}/{key.name}.json"
        yield f"{PLACE}/{key.name}.process"
        yield place(key.name)
    elif key.kind == DROPIN.name:
        yield f"{PLACE}/{parts(key)[1]}.read"


class ServiceWatch:
    """What systemd says of units, where it runs them. A connection that is lost is made anew."""

    def __init__(self, told: Callable[[Hint], None]) -> None:
        self._told = told
        self._units: dict[str, list[Key]] = {}  # by their places on D-Bus
        self._signals: UnitSignals | None = None
        self._loop = asyncio.get_running_loop()
        self._work: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()

    async def start(self) -> None:
        """Returns once it listens, or if that takes long."""
        if systemd_runs():
            self._work = asyncio.create_task(self._stay_connected())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._tried.wait()

    def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._hang_up()

    def follow(self, keys: Iterable[Key]) -> None:
        units: dict[str, list[Key]] = {}
        for key in keys:
            if key.kind == SERVICE.name:
                units.setdefault(place_of(unit_name(key.name)), []).append(key)
            elif key.kind == DROPIN.name:
                units.setdefault(place_of(parts(key)[1]), []).append(key)
        self._units = units

    async def _stay_connected(self) -> None:
        while True:
            if self._signals is None and await self._connect():
                self._tell_all()
            self._tried.set()
            await asyncio.sleep(AGAIN_S)

    async def _connect(self) -> bool:
        try:
            self._signals = await asyncio.to_thread(UnitSignals)
        except DriverError:
            return False  # tried again; the timer looks at services meanwhile
        self._loop.add_reader(self._signals, self._read)
        return True

    def _hang_up(self) -> None:
        if self._signals is not None:
            self._loop.remove_reader(self._signals)
            self._signals.close()
            self._signals = None

    def _read(self) -> None:
        if self._signals is None:
            return
        try:
            self._signals.changed(self._changed)
        except DriverError:
            self._hang_up()
            self._tell_all()

    def _changed(self, where: str) -> None:
        if not where:
            self._tell_all()
        for key in self._units.get(where, ()):
            self._told(Hint(key.kind, key))

    def _tell_all(self) -> None:
        for kind in sorted({key.kind for keys in self._units.values() for key in keys}):
            self._told(Hint(kind))
