"""What the driver needs of whoever runs the programs, and which of the two that is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from holdfast.dataclass import dataclass
from holdfast.host.services import processes
from holdfast.host.services.folder import Definition
from holdfast.paths import Paths


@dataclass(frozen=True, slots=True)
class Seen:
    """A service as it is."""

    mark: str  # "" where it is not of our making
    unit: str  # of the process that runs; where none does, of the definition
    active: bool | str  # text: it runs, but not as it should
    reload: str
    holder: str = ""


class Backend(Protocol):
    def look(self, names: Iterable[str]) -> dict[str, Seen]:
        """DriverError where it is not known."""

    def create(self, definition: Definition) -> int:
        """Defines and starts it; the number of its process. FileExistsError where something
        else has the name."""

    def change(self, definition: Definition) -> int:
        """Makes it run by this definition; the number of its process."""

    def remove(self, name: str, mark: str) -> None:
        """Ends it and forgets it. What has another mark is not touched: ValueError."""

    def sweep(self, name: str) -> None:
        """Removes what interrupted writes of its definition left behind."""

    def close(self) -> None:
        """Lets go of what it talks over."""

    def definition(self, name: str) -> bytes:
        """What it is defined by, as a unit file; OSError or ValueError where there is none."""

    def last_words(self, name: str, lines: int = 4) -> str:
        """What it printed last, without what looks like a secret."""

    def ended(self, name: str) -> str:
        """How it ended by itself when it last did, in words that follow its name; "" where it did
        not since it was defined."""


def choose(paths: Paths) -> Backend:
    """systemd where it can do what is wanted: it knows one root and one network namespace."""
    from holdfast.host.services.own import OwnSupervisor
    from holdfast.host.services.systemd import Systemd

    return Systemd() if is_systemds(paths) else OwnSupervisor(paths.root)


def is_systemds(paths: Paths) -> bool:
    """Are the root and the network namespace those that systemd runs its units in?"""
    whole = paths.root.resolve() == Path("/")
    return whole and systemd_runs() and processes.network(1) == processes.network()


def systemd_runs() -> bool:
    """Is it PID 1? sd_booted(3)."""
    return Path("/run/systemd/system").is_dir()
