"""Each kind says what its operations stop, if only for a moment."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine import document
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.plan import Change, Operation, Plan, Verb

UP = {"up": True}


@pytest.mark.parametrize(
    ("verb", "key", "changes", "effect"),
    [
        (Verb.UPDATE, "service dnsmasq", {"unit": ("a", "b")}, "restarts"),
        (Verb.UPDATE, "service dnsmasq", {"unit": ("a", "b"), "reload": ("c", "d")}, "restarts"),
        (Verb.UPDATE, "service dnsmasq", {"reload": ("c", "d")}, "reloads, and goes on meanwhile"),
        (Verb.UPDATE, "service dnsmasq", {"active": (False, True), "unit": ("a", "b")}, ""),
        (Verb.CREATE, "service dnsmasq", {}, ""),
        (Verb.DELETE, "service dnsmasq", {}, "stops"),
        (
            Verb.UPDATE,
            "service pppoe-home",
            {"unit": ("a", "b")},
            "restarts, and with it the PPPoE session home",
        ),
        (
            Verb.UPDATE,
            "service dhcpcd4-wan0",
            {"unit": ("a", "b")},
            "restarts, and with it IPv4 on wan0",
        ),
        (
            Verb.UPDATE,
            "dropin /etc/x.conf read by systemd-timesyncd.service",
            {"sha256": ("a", "b")},
            "has systemd-timesyncd.service restarted",
        ),
        (Verb.DELETE, "unit routerd-dnsmasq.service", {}, "stops"),
        (Verb.CREATE, "unit routerd-dnsmasq.service", {}, ""),
        (Verb.REPLACE, "link br0", {"type": ("bridge", "bond")}, "goes, and comes again"),
        (Verb.UPDATE, "link lan0", {"up": (True, False)}, "goes down"),
        (Verb.UPDATE, "link lan0", {"up": (False, True)}, ""),
        (Verb.UPDATE, "link lan0", {"mac": ("a", "b")}, "may go down for a moment"),
        (Verb.UPDATE, "link lan0", {"mtu": (1500, 1400)}, ""),
        (Verb.UPDATE, "wireguard wg0", {"listen_port": (1, 2)}, "has its peers connect anew"),
        (Verb.UPDATE, "nft inet x", {"content": ("a", "b")}, ""),
        (Verb.UPDATE, "file /etc/x", {"sha256": ("a", "b")}, ""),
    ],
)
def test_what_is_interrupted(
    verb: Verb, key: str, changes: dict[str, tuple[Any, Any]], effect: str
) -> None:
    kind, _, name = key.partition(" ")
    subject = Artifact(Key(kind, name), {})
    differing = tuple(Change(field, *values) for field, values in changes.items())
    seen = Artifact(subject.key, UP) if verb is not Verb.CREATE else None
    operation = Operation(verb, subject, ("Test/x",), "test", changes=differing, observed=seen)
    found = document.interruptions(Plan((operation,)))
    assert [one["effect"] for one in found] == ([effect] if effect else [])


def test_a_link_that_is_down_is_not_interrupted() -> None:
    subject = Artifact(Key("link", "lan0"), {})
    differing = (Change("mac", "a", "b"),)
    seen = Artifact(subject.key, {"up": False})
    operation = Operation(Verb.UPDATE, subject, (), "", changes=differing, observed=seen)
    assert document.interruptions(Plan((operation,))) == []
