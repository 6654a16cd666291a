"""Runs of state machines that are measured in steps, and not in examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

# `make soak` takes so many.
SOAK = int(os.environ.get("HOLDFAST_SOAK_STEPS", "50000"))
_taken = 0


def count() -> None:
    """Called by each rule of a machine."""
    global _taken
    _taken += 1


def taken() -> int:
    return _taken


def run(machine: type[RuleBasedStateMachine], steps: int, *, example: int) -> None:
    """The same steps each time."""
    _run(machine, steps, example, (Phase.generate,), derandomize=True)


def soak(machine: type[RuleBasedStateMachine], steps: int, *, example: int) -> None:
    """Others each time; what is found is told as short as it can be."""
    _run(machine, steps, example, (Phase.generate, Phase.shrink), derandomize=False)


def _run(
    machine: type[RuleBasedStateMachine],
    steps: int,
    example: int,
    phases: tuple[Phase, ...],
    *,
    derandomize: bool,
) -> None:
    """Examples are of at most so many steps, so that the count is looked at."""
    before = _taken
    while _taken - before < steps:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max(2, (steps - _taken + before) // example),
                stateful_step_count=example,
                deadline=None,
                derandomize=derandomize,
                suppress_health_check=list(HealthCheck),
                phases=phases,
                print_blob=True,
                report_multiple_bugs=False,
            ),
        )
