"""How long a program that keeps falling is left alone."""

from __future__ import annotations

from holdfast.host.services.restart_delay import LONGEST_S, STABLE_S, RestartDelay


def test_it_doubles_up_to_a_limit() -> None:
    delay = RestartDelay(share=lambda: 0.0)
    waits = [delay.after(0.1) for _ in range(9)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_S, LONGEST_S, LONGEST_S]


def test_a_program_that_ran_for_long_starts_anew_with_a_short_wait() -> None:
    delay = RestartDelay(share=lambda: 0.0)
    for _ in range(5):
        delay.after(1.0)
    assert delay.after(STABLE_S) == 0.5
    assert delay.after(0.1) == 1.0


def test_waits_differ_by_chance_and_never_exceed_their_measure() -> None:
    assert RestartDelay(share=lambda: 1.0).after(0.0) == 0.375
    waits = {RestartDelay().after(0.0) for _ in range(50)}
    assert len(waits) > 40
    assert all(0.375 <= wait <= 0.5 for wait in waits)
