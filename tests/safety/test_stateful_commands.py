"""Commands of a whole router and other programs, interleaved at random in a real namespace.

Trials that are confirmed or taken back, a disk without room, a lost ledger and another installation
in the same namespace, while links go down and up, other programs have routes and addresses of their
own, and files change. After every step: nothing of others' has changed unless by them, and what is
said to be converged is as declared. At rest nothing of ours is left.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.safety import steps
from tests.safety.resources import (
    FIRST,
    LAST,
    Change,
    Resources,
    all_behind_addresses,
    changes,
    declared,
)
from tests.safety.router_by_commands import ALLOW, RouterByCommands, wrong_links
from tests.safety.shared_namespace import TAG, assert_same
from tests.safety.strangers import Commands as Lines
from tests.safety.troubles import NEW, leave, troubles

STEPS = 40
_EXAMPLE = 20

_pick = st.sampled_from
_few = st.lists(changes, min_size=1, max_size=3)


class Commands(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = RouterByCommands()
        self.chosen: Resources = dict(FIRST)
        self.full = False
        self.apply()

    def teardown(self) -> None:
        try:
            self.rest()
        finally:
            self.world.close()

    def rest(self) -> None:
        """Others leave and everything is withdrawn."""
        self.free()
        leave(self.world)
        self.world.apply(LAST)
        self.world.check_ledger()
        now = self.world.look()
        left = [item for items in now.values() for item in items if item.protocol == TAG]
        left += [item for item in now["link"] if self.world.ours[item]]
        assert not left, f"left behind: {list(map(str, left))}"

    def apply(self, *options: str) -> None:
        wanted = declared(self.chosen)
        done = self.world.apply(wanted, *options)
        if done.code != 0:
            return
        wrong = list(wrong_links(self.world, wanted))
        assert not wrong, f"{wrong}: {done}"
        before = self.world.look()
        again = self.world.apply(wanted, *options)
        assert_same(before, self.world.look())
        # Where the link of a gateway is a fact alone, the first pass may have taken that fact away.
        assert again.code == 0 or not all_behind_addresses(wanted), again

    def choose(self, few: list[Change]) -> None:
        self.chosen |= dict(few)

    @rule(action=troubles)
    def others(self, action: Lines) -> None:
        steps.count()
        version, lines = action
        self.world.others(*lines, version=version)

    @rule(action=troubles)
    def others_and_then_a_pass(self, action: Lines) -> None:
        steps.count()
        version, lines = action
        self.world.others(*lines, version=version)
        self.apply()

    @rule(few=_few)
    def change(self, few: list[Change]) -> None:
        steps.count()
        self.choose(few)
        self.apply()

    @rule(few=_few)
    def change_whatever_others_lose(self, few: list[Change]) -> None:
        steps.count()
        self.choose(few)
        self.apply(ALLOW)

    @rule(few=_few, allowed=st.booleans(), way=_pick(["rollback", "killed", "deadline"]))
    def take_a_trial_back(self, few: list[Change], allowed: bool, way: str) -> None:
        steps.count()
        before, theirs = self.world.look_at_all(), self.world.theirs(self.world.look())
        if self.begin_trial(few, allowed, way):
            self.world.end_trial(way)
            self.world.keeps(theirs)
            assert_same(before, self.world.look_at_all())
            self.apply()

    @rule(few=_few, allowed=st.booleans(), action=_pick(NEW))
    def others_act_during_a_trial(self, few: list[Change], allowed: bool, action: Lines) -> None:
        """What they have made since holds up the way back of what it stands on, no more."""
        steps.count()
        theirs = self.world.theirs(self.world.look())
        if self.begin_trial(few, allowed, "rollback"):
            version, lines = action
            self.world.others(*lines, version=version)
            since = self.world.theirs(self.world.look())
            self.world.end_trial("rollback", meanwhile=True)
            self.world.keeps(theirs, since)

    def begin_trial(self, few: list[Change], allowed: bool, way: str) -> bool:
        """Whether it waits; a short one may be over at any moment."""
        if not all_behind_addresses(declared(self.chosen)):
            # A route outlives the network of its gateway, but the kernel does not take it anew.
            return False
        theirs = self.world.theirs(self.world.look())
        options = (ALLOW,) if allowed else ()
        wanted = declared(self.chosen | dict(few))
        within = "2s" if way == "deadline" else "1h"
        waits = self.world.begin_trial(wanted, *options, within=within)
        if waits and way != "deadline":
            self.world.spares(theirs, *options)
        return waits

    @rule(few=_few)
    def confirm_a_trial(self, few: list[Change]) -> None:
        steps.count()
        theirs = self.world.theirs(self.world.look())
        if self.world.begin_trial(declared(self.chosen | dict(few))):
            self.choose(few)
            self.world.confirm()
            self.world.spares(theirs)
            self.apply()

    @rule(few=_few, allowed=st.booleans())
    def another_installation(self, few: list[Change], allowed: bool) -> None:
        steps.count()
        wanted = declared(self.chosen | dict(few))
        self.world.apply_elsewhere(wanted, *([ALLOW] if allowed else []))

    @rule(way=_pick(["full", "read-only"]))
    def no_room(self, way: str) -> None:
        steps.count()
        if not self.full:
            (self.world.disk.fill if way == "full" else self.world.disk.read_only)()
            self.full = True
        self.apply()

    @precondition(lambda self: self.full)
    @rule()
    def room(self) -> None:
        steps.count()
        self.free()
        self.apply()
        self.world.check_ledger()

    def free(self) -> None:
        self.world.disk.writable()
        self.world.disk.free()
        self.full = False

    @precondition(lambda self: not self.full)
    @rule()
    def lose_the_ledger(self) -> None:
        steps.count()
        self.world.lose_ledger(declared(self.chosen))
        self.apply()


def test_commands_and_others_interleave() -> None:
    steps.run(Commands, STEPS, example=_EXAMPLE)


def test_a_link_that_is_made_once_the_ledger_is_lost() -> None:
    """It goes with its declaration: only what was adopted then may be somebody else's."""
    state = Commands()
    state.others((4, ("link del hf0",)))
    state.lose_the_ledger()
    state.teardown()


@pytest.mark.soak
def test_commands_and_others_interleave_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    steps.soak(Commands, steps.SOAK // 10, example=_EXAMPLE)
    with capsys.disabled():
        print(f"\n{steps.taken()} steps, nothing found")
