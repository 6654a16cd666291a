"""What was left before: to find it so again is no drift."""

from __future__ import annotations

from holdfast.agent.drift import Before
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Desired
from holdfast.engine.plan import Conflict, Operation, Plan, Verb
from holdfast.engine.reconcile import Report

FILE = Artifact(Key("file", "/etc/x"), {})
RULE = Artifact(Key("rule", "1: from all lookup 9"), {})
NOTHING = Desired(())


def create(subject: Artifact) -> Operation:
    return Operation(Verb.CREATE, subject, ("Some/owner",), "missing")


def test_what_is_left_is_not_found_again() -> None:
    before = Before(NOTHING, Plan((create(FILE),)))
    assert before.drifted([create(FILE), create(RULE)], NOTHING) == [create(RULE)]


def test_nor_what_a_pass_could_not_see_any_more() -> None:
    """It was left by the pass before, or that pass was to do it; nobody knows what became of it."""
    unseen = Plan((), unknown=(("file", "no answer"), ("rule", "no answer")))
    left = Before(NOTHING, Plan((create(FILE),)))
    later = left.then(NOTHING, Report(Plan((create(RULE),)), (), unseen, 1))
    assert later.drifted([create(FILE), create(RULE)], NOTHING) == []
    # Once it was seen as declared, it is.
    later = later.then(NOTHING, Report(Plan(()), (), Plan(()), 1))
    assert later.drifted([create(FILE)], NOTHING) == [create(FILE)]


def test_what_others_held() -> None:
    held = Conflict(FILE, ("Some/owner",), "", FILE, "somebody", (), "")
    before = Before(NOTHING, Plan((), conflicts=(held,)))
    assert before.held(create(FILE))
    assert not before.held(create(RULE))
