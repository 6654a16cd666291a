"""Other programs and our passes, interleaved at random in a real namespace.

After every pass: what others made is exactly as it was, ours is converged or says truly why not,
and a second pass has nothing to do. `make soak` takes HOLDFAST_SOAK_STEPS steps.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.safety import steps, strangers
from tests.safety.desires import FILES, Declared, declarations, declare, desired
from tests.safety.router_in_process import RouterInProcess
from tests.safety.verdict import check

STEPS = 4000
_EXAMPLE = 50


class Interleaving(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = RouterInProcess()
        self.declared: Declared = {}

    def teardown(self) -> None:
        self.world.close()

    @rule(action=strangers.actions)
    def others(self, action: strangers.Commands) -> None:
        steps.count()
        version, lines = action
        self.world.others(*lines, version=version)

    @precondition(lambda self: self.declared)
    @rule(number=st.integers(0, 20), way=st.integers(0, 7))
    def others_at_ours(self, number: int, way: int) -> None:
        """Others do something to what is declared, or put theirs in its place."""
        steps.count()
        self._strike(number, way)
        self.reconcile()

    @precondition(lambda self: self.declared)
    @rule(
        number=st.integers(0, 20), way=st.integers(0, 7), lines=st.lists(declarations, max_size=2)
    )
    def others_at_ours_during_a_pass(self, number: int, way: int, lines: list[str]) -> None:
        """Between what was planned and what is done. The next pass finds out."""
        steps.count()
        for line in lines:
            declare(self.declared, line)
        self.world.reconcile(desired(self.declared), lambda: self._strike(-number, way))
        self.reconcile()

    def _strike(self, number: int, way: int) -> None:
        intent = list(self.declared.values())[number % len(self.declared)]
        for version, lines in strangers.strike(intent, way):
            self.world.others(*lines, version=version)

    @rule(number=st.integers(0, 50), what=st.sampled_from(strangers.SHADOWED))
    def others_shadow(self, what: str, number: int) -> None:
        steps.count()
        strangers.shadow(self.world, what, number)

    @rule(number=st.integers(0, 50), what=st.sampled_from(strangers.REMOVABLE))
    def others_remove(self, what: str, number: int) -> None:
        steps.count()
        strangers.remove(self.world, what, number)
        self.reconcile()

    @rule(path=st.sampled_from(FILES), content=st.sampled_from([b"a\n", b"c\n", None]))
    def others_write(self, path: str, content: bytes | None) -> None:
        steps.count()
        self.world.others_write(path, content)

    @rule(lines=st.lists(declarations, min_size=1, max_size=4))
    def declare(self, lines: list[str]) -> None:
        steps.count()
        for line in lines:
            declare(self.declared, line)
        self.reconcile()

    @rule(name=st.sampled_from(["hf0", "hf1", "hf2"]))
    def end_a_link(self, name: str) -> None:
        steps.count()
        declare(self.declared, f"absent {name}")
        self.reconcile()

    @precondition(lambda self: self.declared)
    @rule(number=st.integers(0, 20))
    def withdraw(self, number: int) -> None:
        steps.count()
        slots = list(self.declared)
        del self.declared[slots[number % len(slots)]]
        self.reconcile()

    @precondition(lambda self: len(self.declared) > 4)
    @rule()
    def withdraw_all(self) -> None:
        steps.count()
        self.declared.clear()
        self.reconcile()

    @rule()
    def disk_fills_up(self) -> None:
        steps.count()
        self.world.fill_disk()

    @rule(room=st.booleans())
    def another_process(self, room: bool) -> None:
        """That has the ledger as the one before left it, on the disk or not."""
        steps.count()
        if room:
            self.world.free_disk()
        else:
            self.world.restart()
        self.reconcile()

    @rule(lines=st.lists(declarations, max_size=2))
    def another_installation(self, lines: list[str]) -> None:
        steps.count()
        wanted = dict(self.declared)
        for line in lines:
            declare(wanted, line)
        plan = self.world.plan_elsewhere(desired(wanted))
        changes = any(operation.verb.changes_host for operation in plan.operations)
        assert plan.refusal or not changes, "it would change what is held by another"

    def reconcile(self) -> None:
        config = desired(self.declared)
        check(self.world, config, self.world.reconcile(config))


def test_ours_and_others_interleave() -> None:
    steps.run(Interleaving, STEPS, example=_EXAMPLE)


@pytest.mark.soak
def test_ours_and_others_interleave_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    steps.soak(Interleaving, steps.SOAK, example=_EXAMPLE)
    with capsys.disabled():
        print(f"\n{steps.taken()} steps, nothing found")
