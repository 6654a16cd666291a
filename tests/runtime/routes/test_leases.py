"""Leases over restarts: time in which Holdfast could not be reached does not count."""

from __future__ import annotations

import asyncio

from holdfast.runtime.routes.leases import Leases
from holdfast.runtime.routes.owners import Owner
from tests.runtime.routes.memory import MemoryNotes

EDGE = Owner("edge", grace=30.0)
KNOWN = {"edge": EDGE}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def made(notes: MemoryNotes, clock: Clock) -> Leases:
    leases = Leases(notes, clock)
    leases.start(KNOWN, {"edge"})
    return leases


def test_who_was_connected_has_the_whole_grace_after_a_restart() -> None:
    notes, clock = MemoryNotes(), Clock()
    leases = made(notes, clock)
    leases.hold(EDGE)
    asyncio.run(leases.note())
    clock.now += 1000
    assert made(notes, clock).left("edge") == 30.0


def test_who_was_gone_has_what_was_left() -> None:
    notes, clock = MemoryNotes(), Clock()
    leases = made(notes, clock)
    leases.heard(EDGE)
    clock.now += 20
    asyncio.run(leases.note())
    clock.now += 1000
    again = made(notes, clock)
    assert again.left("edge") == 10.0
    clock.now += 10
    assert again.due(KNOWN) == [EDGE]
    again.end(EDGE)
    assert again.due(KNOWN) == []


def test_two_streams_hold_it_until_both_are_gone() -> None:
    clock = Clock()
    leases = made(MemoryNotes(), clock)
    leases.hold(EDGE)
    leases.hold(EDGE)
    leases.release(EDGE)
    clock.now += 1000
    assert leases.due(KNOWN) == [] and leases.connected("edge")
    leases.release(EDGE)
    clock.now += 30
    assert leases.due(KNOWN) == [EDGE]


def test_a_lease_that_the_startup_file_drops_runs_no_more() -> None:
    clock = Clock()
    leases = made(MemoryNotes(), clock)
    leases.heard(Owner("edge"))
    clock.now += 1000
    assert leases.due(KNOWN) == []
