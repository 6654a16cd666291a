"""That somebody asked to confirm, and when: left for everybody to see before the ledger is
waited for.

Another process may hold the ledger past the deadline: a long pass, a slow disk. Whether a
generation is confirmed goes by when that was asked for, and not by who gets hold of the ledger
first: whoever finds it overdue looks here, and confirms it where somebody asked in time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.dataclass import dataclass
from holdfast.host import rooted
from holdfast.host.facts.clock import boot_id
from holdfast.paths import Paths
from holdfast.runtime.confirm import deadline
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger

# Not in the state folder: it says nothing beyond the boot, and must not need room on the disk.
_PLACE = "/run/holdfast/confirm-asked.json"


@dataclass(frozen=True, slots=True)
class ConfirmRequest:
    generation: int  # 0: none waited
    clock: float  # seconds of the boot clock

    def in_time(self, waiting: Confirmation) -> bool:
        return (
            self.generation == waiting.generation
            and waiting.boot == boot_id()
            and self.clock < waiting.monotonic_deadline
        )


@contextmanager
def asking(paths: Paths, generation: int = 0, clock: float = 0.0) -> Iterator[ConfirmRequest]:
    """To confirm this generation, or the one that waits now; for everybody to see until the end.
    clock: when that was asked for, where it was not just now."""
    moment = clock or deadline.boot_clock()
    if not generation:
        with Ledger.read(paths) as ledger:
            waiting = ledger.waiting()
        generation = waiting.generation if waiting is not None else 0
    asked = ConfirmRequest(generation, moment)
    text = json.dumps({"boot": boot_id(), "generation": generation, "clock": moment})
    # Where it cannot be written, it is judged by when the ledger was free: better than not at all.
    with suppress(OSError), rooted.parent(paths.root, _PLACE, create=True) as (folder, name):
        rooted.replace(folder, name, text.encode(), 0o600, rooted.look(folder, name))
    try:
        yield asked
    finally:
        paths.under(_PLACE).unlink(missing_ok=True)


def in_time(paths: Paths, waiting: Confirmation) -> bool:
    """Did somebody ask in time, and wait for the ledger still, or die while doing so?"""
    try:
        with rooted.parent(paths.root, _PLACE) as (folder, name):
            said = json.loads(rooted.read(folder, name))
        asked = ConfirmRequest(int(said["generation"]), float(said["clock"]))
        return said["boot"] == waiting.boot and asked.in_time(waiting)
    except (OSError, ValueError, KeyError, TypeError):
        return False  # what is not confirmed for certain goes back
