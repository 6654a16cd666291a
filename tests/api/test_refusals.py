"""Refused calls are counted, said now and then, and limited by socket."""

from __future__ import annotations

from holdfast.api import limits
from holdfast.api.conditions import Busy, Denied, Unauthenticated
from holdfast.api.refusals import Refusals

NOBODY = Unauthenticated("nobody has it")


def test_so_many_at_once_and_so_many_a_second() -> None:
    said: list[str] = []
    now = 1000.0
    refusals = Refusals(said.append, lambda: now)

    def answered(tries: int) -> int:
        found = 0
        for _ in range(tries):
            try:
                refusals.count("a.sock", NOBODY, limited=True)
            except Busy:
                continue
            found += 1
        return found

    assert answered(1000) == limits.REFUSALS_AT_ONCE
    now += 1.0
    assert answered(1000) == limits.REFUSALS_EACH_SECOND
    now += 3600.0
    assert answered(1000) == limits.REFUSALS_AT_ONCE
    assert sum(refusals.counts.values()) == 3000
    assert len(said) == 2
    assert said[1].endswith("(2000 since this was said last)")


def test_each_socket_by_itself_and_those_who_are_trusted_with_it_without_limit() -> None:
    said: list[str] = []
    refusals = Refusals(said.append, lambda: 0.0)
    for _ in range(1000):
        refusals.count("holdfast-ro.sock", Denied("for reading"), limited=False)
    refusals.count("own.sock", NOBODY, limited=True)
    expected = {("holdfast-ro.sock", "denied"): 1000, ("own.sock", "unauthenticated"): 1}
    assert refusals.counts == expected
    assert said == ["a call over own.sock was refused: nobody has it"]
    refusals.count("holdfast-ro.sock", NOBODY, limited=True)
    refusals.forget("holdfast-ro.sock")
    assert refusals.counts == {("own.sock", "unauthenticated"): 1}
