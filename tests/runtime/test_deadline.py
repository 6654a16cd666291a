"""The time a trial has left: by the clock of the boot, and none after another boot."""

from __future__ import annotations

import time

import pytest

from holdfast.host.facts import clock
from holdfast.runtime.confirm import deadline
from holdfast.runtime.confirm import trial as confirm
from holdfast.state.confirmations import Confirmation


def trial(left: float, boot: str) -> Confirmation:
    now = time.time()
    end = deadline.boot_clock() + left
    return Confirmation(2, now, now + 120, boot, end, 1, "/c.yaml", "", "d" * 64, b"")


def test_by_the_clock_of_the_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the wall clock, forth or back, neither cuts nor extends it."""
    waiting = trial(100, clock.boot_id())
    for step in (-1e6, 1e6):
        now = time.time() + step
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert 90 < deadline.remaining(waiting) <= 100
        assert confirm.overdue(waiting) == ""
    late = trial(-1, clock.boot_id())
    assert confirm.overdue(late) == "nobody confirmed it within 2m"


def test_another_boot() -> None:
    waiting = trial(100, "another boot")
    assert deadline.remaining(waiting) == 0
    assert confirm.overdue(waiting) == "the machine was booted anew before it was confirmed"
