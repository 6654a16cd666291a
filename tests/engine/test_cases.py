"""Every planner case, and what the cases together must cover."""

from __future__ import annotations

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds import KINDS
from holdfast.engine.plan import Verb
from holdfast.engine.planner import plan
from tests.engine import case_files


@pytest.mark.parametrize("name", case_files.names())
def test_case(name: str) -> None:
    case = case_files.load(name)
    made = plan(case.desired, case.observed, case.claims, case.policy)
    assert case_files.render(made) == case.plan


def test_what_is_blocked_is_left_out_of_what_is_done() -> None:
    """Or the way back from such a plan would ask for it."""
    case = case_files.load("side-effects-are-blocked")
    made = plan(case.desired, case.observed, case.claims, case.policy)
    links = {
        str(one.subject.key): one.subject.fields
        for one in made.operations
        if isinstance(one.subject, Artifact)
    }
    assert links["link lan0"] == {"mtu": 1500, "alias": "inside"}
    assert links["link br0"] == {"type": "bridge", "up": True}


def test_every_kind_and_verb_has_a_case() -> None:
    operations = [
        operation
        for name in case_files.names()
        for operation in case_files.load(name).plan.get("operations", ())
    ]
    verbs = {verb.value for verb in Verb}
    said = [(verb, subject) for one in operations for verb, subject in one.items() if verb in verbs]
    assert {verb for verb, _ in said} == verbs
    named = {str(subject if isinstance(subject, str) else subject[0]) for _, subject in said}
    # Cases know routes in bulk, and no others: test_routing_kinds.py plans networks.
    assert {name.partition(" ")[0] for name in named} == set(KINDS) - {"bgp_network"}
