"""What other programs call things reaches no terminal, log or document as it is."""

from __future__ import annotations

import json

import pytest

from holdfast.characters import trouble
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.namespace import Namespace

EVIL = "nice\x1b]0;owned\x07\x1b[2J\r\u202e\x9bx"


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_the_alias_of_a_link(holdfast: Holdfast, wan: Namespace, form: str) -> None:
    wan.run("ip", "link", "set", "dev", "wan0", "alias", EVIL)
    plain = ("Interface", "wan", "{ifname: wan0, adminUp: true, alias: uplink}")
    holdfast.declare(plain, WAN_ADDRESS)
    said = [
        holdfast.run("plan", "router.yaml", "-o", form),
        holdfast.run("explain", "Interface/wan", "-o", form),
        holdfast.run("apply", "router.yaml", "--yes", "-o", form),
        holdfast.run("status", "-o", form),
        holdfast.run("events", "-o", form),
        holdfast.run("ledger", "show", "-o", form),
    ]
    for done in said:
        assert not trouble(done.out, lines=True)
        assert not trouble(done.err, lines=True)
    assert "nice\\x1b]0;owned" in said[0].out.replace("\\\\", "\\")
    if form == "json":
        json.loads(said[0].out)


def test_a_coloured_plan_holds_no_other_escapes(holdfast: Holdfast, wan: Namespace) -> None:
    wan.run("ip", "link", "set", "dev", "wan0", "alias", EVIL)
    holdfast.declare(("Interface", "wan", "{ifname: wan0, alias: uplink}"))
    done = holdfast.run("plan", "router.yaml", CLICOLOR_FORCE="1")
    assert "\x1b[" in done.out
    assert "\x1b]" not in done.out
    assert "\x1b[2J" not in done.out


@pytest.mark.parametrize("unfit", [r"\r", r"\x1b[31m", r"\x7f", r"\x9b", r"\u202E", r"\L"])
def test_a_declared_one_is_refused_with_its_place(holdfast: Holdfast, unfit: str) -> None:
    holdfast.declare(WAN, ("Interface", "lan", f'{{ifname: lan0, alias: "a{unfit}b"}}'))
    done = holdfast.run("validate", "router.yaml")
    assert done.code == 3
    assert "spec.alias: cannot hold the control character U+" in done.err
    assert not trouble(done.err, lines=True)
