"""Plans are read whole or not at all, with every reason."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.actions.plan import (
    UnfitError,
    addresses,
    read,
    read_proposed,
    secrets,
    undoing,
)
from tests.runtime.actions.plans import plan


def reasons(raw: dict[str, Any]) -> str:
    with pytest.raises(UnfitError) as caught:
        read_proposed(raw)
    return str(caught.value)


def test_a_whole_plan() -> None:
    raw = plan(
        mode="dry-run",
        providerRef="prod",
        description="two\nlines",
        riskLevel="low",
        parameters={"tags": ["a", 1]},
        preconditions=["the app is away"],
        expectedEffects=["it is here"],
        undo={"action": "unassign-secondary-ip", "parameters": {"force": True}},
    )
    key, found = read_proposed(raw)
    assert key == "k1"
    assert (found.mode, found.provider_ref, found.risk_level) == ("dry-run", "prod", "low")
    assert found.undo is not None
    assert found.undo.parameters == {"force": True}
    assert str(found) == "assign-secondary-ip 10.0.1.123 at aws"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": None}, "name: is missing"),
        ({"name": "two\nlines"}, "name: must be one line"),
        ({"provider": "acme"}, "provider: must be one of aws, azure, oci, gcp"),
        ({"action": "terminate"}, "action: must be one of assign-secondary-ip"),
        ({"mode": "execute"}, "mode: a plan cannot ask to be executed"),
        ({"mode": "now"}, "mode: must be empty or dry-run"),
        ({"riskLevel": "none"}, "riskLevel: must be one of low, medium, high"),
        ({"idempotencyKey": None}, "idempotencyKey: is missing"),
        ({"idempotencyKey": "a b"}, "idempotencyKey: must be up to 200 letters"),
        ({"idempotencyKey": "k\n"}, "idempotencyKey: must be up to 200 letters"),
        ({"idempotencyKey": "k" * 201}, "idempotencyKey: must be up to 200 letters"),
        ({"idempotencyKey": "k1:undo"}, "idempotencyKey: ends with :undo"),
        ({"target": None}, "target: is missing"),
        ({"target": {"address": "10.0.1.1"}}, "target.nicRef: is missing"),
        ({"target": {"nicRef": "eni-1"}}, "target.address: is missing"),
        ({"target": {"address": "ten", "nicRef": "e"}}, "target.address: is neither"),
        ({"target": {"address": 10, "nicRef": "e"}}, "target: address must be text"),
        ({"action": "assign-route-table-route"}, "target.routeTableRef: is missing"),
        ({"action": "ensure-forwarding-enabled", "target": {}}, "target: names nothing"),
        ({"parameters": []}, "parameters: must be an object"),
        ({"undo": {"parameters": {}}}, "undo.action: is missing"),
        (
            {"undo": {"action": "unassign-secondary-ip", "parameters": {"observed": 1}}},
            "undo.parameters.observed: is put there by the journal",
        ),
        ({"approved": True}, "approved: unknown field"),
        ({"parameters": {"x": "y" * 17000}}, "is more than 16 KiB"),
    ],
)
def test_what_is_no_plan(change: dict[str, Any], said: str) -> None:
    assert said in reasons(plan(**change))


def test_all_reasons_at_once() -> None:
    said = reasons(plan(provider="acme", mode="execute"))
    assert "provider: " in said
    assert "mode: " in said


def test_addresses_are_found_under_every_name() -> None:
    found = read(
        plan(
            parameters={"via": {"hops": ["192.0.2.1", "not one"]}, "port": 53, "cidr": "::/0"},
            undo={"action": "unassign-secondary-ip", "parameters": {"to": "198.51.100.7/24"}},
        )
    )
    assert {one.path: str(one.network) for one in addresses(found)} == {
        "target.address": "10.0.1.123/32",
        "parameters.via.hops[0]": "192.0.2.1/32",
        "parameters.cidr": "::/0",
        "undo.parameters.to": "198.51.100.0/24",
    }


def test_an_undo_is_a_plan_with_what_was_observed() -> None:
    raw = plan(
        providerRef="prod",
        riskLevel="high",
        parameters={"only": "for doing"},
        undo={"action": "unassign-secondary-ip", "parameters": {"force": True}},
    )
    undo = undoing(raw, read(raw), {"previous": "eni-9", "at": "203.0.113.1"})
    found = read(undo)
    assert undo["idempotencyKey"] == "k1:undo"
    assert (found.action, found.provider_ref) == ("unassign-secondary-ip", "prod")
    assert found.target == raw["target"]
    assert found.parameters == {
        "force": True,
        "observed": {"previous": "eni-9", "at": "203.0.113.1"},
    }
    # What a provider said is not what is to be done: no policy needs to cover it.
    assert [one.path for one in addresses(found)] == ["target.address"]


def test_secrets_are_known_by_the_names_of_their_fields() -> None:
    raw = plan(parameters={"apiToken": "s3cret", "region": "eu", "more": {"password": "hunter2"}})
    assert secrets(raw) == {"s3cret", "hunter2"}
