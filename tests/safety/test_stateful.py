"""Other programs and our passes, interleaved at random in a real namespace.

After every pass: what others made is exactly as it was, ours is converged or says truly why not,
and a second pass has nothing to do. `make soak` takes HOLDFAST_SOAK_STEPS steps.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from holdfast.engine.intent import Desired
from tests.safety import strangers
from tests.safety.desires import FILES, configs
from tests.safety.verdict import check
from tests.safety.world import World

STEPS = 2000
_EXAMPLE = 50
_taken = 0


class Interleaving(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.config = Desired(())

    def teardown(self) -> None:
        self.world.close()

    @rule(action=strangers.actions)
    def others_act(self, action: strangers.Commands) -> None:
        _count()
        version, lines = action
        self.world.others(*lines, version=version)

    @rule(path=st.sampled_from(FILES), content=st.sampled_from([b"a\n", b"c\n", None]))
    def others_write_files(self, path: str, content: bytes | None) -> None:
        _count()
        self.world.others_write(path, content)

    @rule(config=configs())
    def the_configuration_changes(self, config: Desired) -> None:
        _count()
        self.config = config
        self.reconcile()

    @rule()
    def a_pass_runs(self) -> None:
        _count()
        self.reconcile()

    def reconcile(self) -> None:
        check(self.world, self.config, self.world.reconcile(self.config))


def _count() -> None:
    global _taken
    _taken += 1


def _run(steps: int, *, derandomize: bool) -> None:
    """Examples are of at most so many steps, so that the count is looked at."""
    before = _taken
    while _taken - before < steps:
        run_state_machine_as_test(
            Interleaving,
            settings=settings(
                max_examples=max(2, (steps - _taken + before) // _EXAMPLE),
                stateful_step_count=_EXAMPLE,
                deadline=None,
                derandomize=derandomize,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
                print_blob=True,
            ),
        )


def test_ours_and_others_interleave() -> None:
    _run(STEPS, derandomize=True)


@pytest.mark.soak
def test_ours_and_others_interleave_for_long() -> None:
    _run(int(os.environ.get("HOLDFAST_SOAK_STEPS", "50000")), derandomize=False)
