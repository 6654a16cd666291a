"""What the benchmark does to a thing again and again is no fight, however busy the machine is."""

from __future__ import annotations

import pytest

from benchmarks.drift_repair import TIMES, in_rows
from holdfast.agent.fights import Fights, Undoing

PACES_S = [0.02, 0.05, 0.1, 0.3, 1.0, 1.6, 2.0, 3.0, 6.0]


@pytest.mark.parametrize("pace", PACES_S)
def test_no_pace_makes_it_a_fight(pace: float) -> None:
    fights, now = Fights(lambda low, _high: low), 0.0

    def clock() -> float:
        return now

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def measure() -> float:
        undoing = Undoing("route 10.0.0.0/8", ("IPv4Route/a",), "deletes it")
        assert fights.undone("route", undoing, now) is None
        sleep(pace)
        fights.repaired("route", now)
        return pace

    for _ in range(2):  # two of the things that are done are done to the same
        found = in_rows(measure, clock, sleep)
        assert len(found) == TIMES or pace > 0.1
        assert found
