"""Every call states who may make it, and is refused to everybody else with what would allow it."""

from __future__ import annotations

import itertools

import pytest

from holdfast.api.callers import AUTHORITY, OPERATOR, READER, Caller, CallerKind, Grant
from holdfast.api.calls import CALLS
from holdfast.api.conditions import Denied, Unauthenticated
from holdfast.resources.dynamic.source_name import GRANTS

OWNER = Caller(CallerKind.OWNER, "Owner/ci")
MANAGER = Caller(CallerKind.MANAGER, "Manager/main")
GRANTED = Caller(CallerKind.MANAGER, "Manager/main", frozenset(Grant))
# What an owner may do: its own parts (the service looks whose they are), status, events, explain.
SPEAKING = {
    "Router.About", "Router.Status", "Router.Explain", "Events.Read",
    "Dynamic.List", "Dynamic.Describe", "Dynamic.Put", "Dynamic.Declare", "Dynamic.Withdraw",
}  # fmt: skip
# Of routing control: what anybody may look at who can open its socket, and what is each owner's.
LOOKING = {"RouteControl.GetStatus", "RouteControl.StreamEvents", "Routes.Status", "Routes.Events"}
OWNING = {
    name for name, call in CALLS.items() if call.service.endswith(("RouteControl", "Routes"))
} - LOOKING
GRANTED_BESIDES = {
    "Router.Plan", "Router.Generations", "Dynamic.Render", "Dynamic.Diff",
    "Router.Confirm", "Router.TakeBack",
}  # fmt: skip


def allowed(caller: Caller) -> set[str]:
    found = set()
    for call, authority in AUTHORITY.items():
        try:
            authority.refuse(call, caller)
        except (Denied, Unauthenticated):
            continue
        found.add(call)
    return found


def test_every_call_of_the_schema_states_its_authority() -> None:
    assert set(AUTHORITY) == set(CALLS)


def test_the_startup_file_knows_every_grant() -> None:
    assert tuple(grant.value for grant in Grant) == GRANTS


def test_what_each_may() -> None:
    reading = {name for name, call in CALLS.items() if call.reads}
    assert allowed(OPERATOR) == set(CALLS) - OWNING
    assert allowed(READER) == reading | LOOKING
    assert allowed(OWNER) == SPEAKING | LOOKING | OWNING
    assert allowed(MANAGER) == SPEAKING | LOOKING
    assert allowed(GRANTED) == SPEAKING | LOOKING | GRANTED_BESIDES


@pytest.mark.parametrize("call", sorted(OWNING))
def test_what_is_an_owners_takes_the_token_of_one(call: str) -> None:
    for caller in (OPERATOR, READER):
        with pytest.raises(Unauthenticated, match="the token of one"):
            AUTHORITY[call].refuse(call, caller)
    with pytest.raises(Denied, match="the token of an Owner"):
        AUTHORITY[call].refuse(call, GRANTED)


@pytest.mark.parametrize("grant", Grant)
def test_a_grant_leads_to_calls_and_says_so_where_it_lacks(grant: Grant) -> None:
    led_to = [name for name, authority in AUTHORITY.items() if authority.grant is grant]
    assert led_to
    for name in led_to:
        with pytest.raises(Denied, match=rf"grants: \[{grant.value}\].*of Manager/main"):
            AUTHORITY[name].refuse(name, MANAGER)


def test_a_caller_speaks_for_its_own_source_alone() -> None:
    for caller, source in itertools.product((OPERATOR, READER), ("Owner/ci", "Owner/b#2", "")):
        caller.refuse_other_source(source)
    OWNER.refuse_other_source("Owner/ci")
    OWNER.refuse_other_source("Owner/ci#12")
    for other in ("Owner/CI", "Owner/ci2", "Manager/ci", "ci", "", "Owner/ci/#2", "Owner/c#i"):
        with pytest.raises(Denied):
            OWNER.refuse_other_source(other)
