"""How long a generation may still wait to be confirmed."""

from __future__ import annotations

import time

from holdfast.host.facts.clock import boot_id
from holdfast.state.confirmations import Confirmation


def boot_clock() -> float:
    """Goes on while the machine sleeps, and no step of the wall clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def remaining(waiting: Confirmation) -> float:
    """Seconds; none once the machine was booted anew.

    A router that was switched off and on while a change waited was, as like as not, switched off
    because of that change. To wait for the rest of the time would put the change in force again,
    over the wire that it may have cut.
    """
    if waiting.boot != boot_id():
        return 0.0
    return waiting.monotonic_deadline - boot_clock()


def until(waiting: Confirmation) -> str:
    """When that is, for people to read."""
    now = time.time()
    moment, today = time.localtime(now + remaining(waiting)), time.localtime(now)
    same_day = moment[:3] == today[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", moment)
