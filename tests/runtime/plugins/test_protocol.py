"""What a plugin is told, and which answers are taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.runtime.plugins.protocol import Asked, Nonsense, Trigger, read_answer
from holdfast.runtime.plugins.redaction import redacted

NOW = 1_800_000_000.0
ROUTE = {
    "apiVersion": "net.holdfast.dev/v1alpha1",
    "kind": "IPv4Route",
    "metadata": {"name": "lab"},
    "spec": {"destination": "203.0.113.0/24", "gateway": "192.0.2.1"},
}
MASK = {
    "op": "mask",
    "target": {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route", "name": "old"},
    "reason": "lab is up",
}
ALL = ("propose.dynamicConfig", "propose.providerAction")


def answer(status: Any, **changes: Any) -> bytes:
    said = {"apiVersion": "plugin.holdfast.dev/v1alpha1", "kind": "PluginResult", "status": status}
    return json.dumps(said | changes).encode()


def read(out: bytes, capabilities: tuple[str, ...] = ALL, longest: float = 600.0) -> Any:
    return read_answer(
        out, "inventory", generation=7, now=NOW, longest=longest, capabilities=capabilities
    )


def test_an_answer_becomes_a_part() -> None:
    said = {
        "observedAt": "2027-01-15T07:59:55Z",
        "ttl": "5m",
        "resources": [ROUTE],
        "directives": [MASK],
        "events": [{"type": "found", "message": "one address"}],
    }
    taken = read(answer(said))
    part = taken.part
    assert (part.source, part.generation) == ("Plugin/inventory", 7)
    assert part.expires == part.observed + 300
    assert part.resources == (ROUTE,)
    assert part.directives[0].target.name == "old"
    assert taken.events[0].message == "one address"


def test_the_source_caps_how_long_it_holds() -> None:
    part = read(answer({"ttl": "24h"}), longest=60.0).part
    assert part.expires == NOW + 60


def refused(out: bytes, *, capabilities: tuple[str, ...] = ALL) -> str:
    with pytest.raises(Nonsense) as caught:
        read(out, capabilities)
    return str(caught.value)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[1]", "must be a mapping of fields"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "nested over 64 levels deep"),
        (answer({"ttl": "5m", "resources": [{"a": json.loads("[" * 70 + "]" * 70)}]}), "64 levels"),
        (b'{"status": {"ttl": "5m", "a\\ud800": 1}}', "text that is not Unicode"),
        (b'{"status": {"ttl": "5m", "ttl": "9m"}}', "'ttl' is there twice"),
        (b'{"status": {"ttl": NaN}}', "NaN"),
        (answer({}), "status.ttl: is missing"),
        (answer({"ttl": 300}), "status.ttl: 300 is not a length of time"),
        (answer({"ttl": "0s"}), "status.ttl: must be from 1s"),
        (answer({"ttl": "5m", "observedAt": "2027-01-16T00:00:00Z"}), "lies in the future"),
        (answer({"ttl": "5m", "observedAt": "2026-01-01T00:00:00Z"}), "over already"),
        (answer({"ttl": "5m", "observedAt": "yesterday"}), "status.observedAt"),
        (answer({"ttl": "5m", "resources": ["x"]}), "status.resources[0]: must be an object"),
        (answer({"ttl": "5m", "resources": [ROUTE, ROUTE]}), "IPv4Route/lab is there twice"),
        (answer({"ttl": "5m", "directives": [{"op": "delete"}]}), "status.directives[0]"),
        (answer({"ttl": "5m", "surprise": 1}), "status.surprise: unknown field"),
        (answer({"ttl": "5m"}, kind="ExecuteActionResult"), "kind"),
        (answer({"ttl": "5m", "events": [{"type": "t"}] * 101}), "more than 100"),
        (
            answer({"ttl": "5m", "events": [{"type": "t", "attributes": {"a": "b" * 5000}}]}),
            "status.events[0].attributes: more than 4 KiB",
        ),
    ],
)
def test_what_is_not_taken(out: bytes, said: str) -> None:
    assert said in refused(out)


def test_only_what_it_is_capable_of() -> None:
    with_resources = answer({"ttl": "5m", "resources": [ROUTE]})
    assert "propose.dynamicConfig" in refused(with_resources, capabilities=("observe.cloud",))
    with_mask = answer({"ttl": "5m", "directives": [MASK]})
    assert "propose.dynamicConfig" in refused(with_mask, capabilities=())
    with_plan = answer({"ttl": "5m", "actionPlans": [{"name": "x"}]})
    assert "propose.providerAction" in refused(with_plan, capabilities=("propose.dynamicConfig",))


def test_it_is_told_only_what_its_context_names_and_no_secret() -> None:
    secret = {
        "apiVersion": "net.holdfast.dev/v1alpha1",
        "kind": "PPPoEInterface",
        "metadata": {"name": "wan"},
        "spec": {"username": "me", "password": "hunter2", "passwordFile": "/etc/secret"},
    }
    asked = Asked("inventory", Trigger("interval"), NOW, "sha256:0", 3, 6, (), (secret,))
    said = json.loads(asked.document())
    assert b"hunter2" not in asked.document()
    assert said["spec"]["context"]["resources"] == [
        {
            "apiVersion": "net.holdfast.dev/v1alpha1",
            "kind": "PPPoEInterface",
            "name": "wan",
            "spec": {"username": "me", "password": ""},
        }
    ]
    assert said["spec"]["now"] == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"presharedKey": "x", "a": 1}, {"presharedKey": "", "a": 1}),
        (
            {"peers": [{"privateKey": "x", "ip": "::1"}]},
            {"peers": [{"privateKey": "", "ip": "::1"}]},
        ),
        ({"credentials": {"user": "x"}}, {}),
        ({"tokens": ["a", "b"]}, {}),
        ({"privateKeyFile": "/etc/key"}, {}),
        ({"valueFrom": {"file": "/etc/key"}}, {}),
        ({"valueFrom": {"interface": "wan"}}, {"valueFrom": {"interface": "wan"}}),
        ({"wifiPSK": "x"}, {"wifiPSK": ""}),
        ("text", "text"),
    ],
)
def test_redaction(given: Any, shown: Any) -> None:
    assert redacted(given) == shown
