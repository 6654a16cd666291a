"""What people read: golden texts."""

from __future__ import annotations

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.document import name
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.route import Nexthop, batch, expand, template
from holdfast.engine.plan import Change, Operation, Plan, Verb
from holdfast.engine.reconcile import Report
from holdfast.render import artifact_words, plan_text, report
from holdfast.render.style import Style
from tests.cli.plans import TRANSIT, everything, keys

PLAIN, COLOURED = Style(False), Style(True)

GOLDEN = """\
In this order:

   ~ link wan0
      mtu  1500 → 9000
      Interface/wan (router.yaml:6:7): mtu differs
      proof: claim: set in generation 2
      risk medium: large packets are treated differently at once
 -/+ link vx1
      vni  7 → 8
      Interface/vx (router.yaml:9:7): vni differs; vni cannot be changed in place
      proof: claim: created in generation 1
      risk high: its addresses and routes go with it
   + route 10.0.0.0/24 via 192.0.2.1 dev wan0
   + route 10.0.1.0/24 via 192.0.2.1 dev wan0
   + route 10.0.2.0/24 via 192.0.2.1 dev wan0
     … and 1 231 more
      RouteList/transit (router.yaml:20:7): declared and not there
   - route blackhole 10.0.0.0/24
      nothing declares it any more
      proof: kernel tag
      risk medium: the destination may become unreachable
   · sysctl net.ipv4.ip_forward = 1
      Sysctl/forward (router.yaml:30:7): nothing declares it any more; its value stays

Restarted or interrupted:
  link vx1 goes, and comes again

Ours, no longer declared, and kept:
  link old0 type bridge
      Interface/old: kept: never

Conflicts: something else is in the place of what is declared:
  route 10.0.0.0/24
      nexthops  via 192.0.2.9 dev wan0 → via 192.0.2.1 dev wan0
      IPv4Route/a (router.yaml:40:7): not ours (protocol static)
      to resolve it: fix

There already, and not ours (`holdfast adopt` takes it over):
  route 10.0.1.0/24 via 192.0.2.1 dev wan0
      IPv4Route/b (router.yaml:44:7): as declared, not ours (protocol static)

Pending:
  Interface/dmz (router.yaml:50:7): link dmz0 is not there yet

Blocked:
  IPv4Route/c (router.yaml:60:7): somebody must decide

Could not be observed:
  rule: the dump was interrupted

This plan is refused: too much would be deleted.
Plan: 1 234 to create, 1 to update, 1 to replace, 1 to delete, 1 to forget; 1 artifact as declared\
, 1 conflict, 1 blocked, 1 pending.
"""


def test_a_plan_with_one_of_everything() -> None:
    assert "\n".join(plan_text.plan(everything(), PLAIN)) + "\n" == GOLDEN


def test_colour_changes_no_text() -> None:
    import re

    coloured = "\n".join(plan_text.plan(everything(), COLOURED)) + "\n"
    assert coloured != GOLDEN
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == GOLDEN
    for glyph, code in (("  +", 32), ("  ~", 33), ("-/+", 35), ("  -", 31), ("  ·", 36)):
        assert f"\x1b[1;{code}m{glyph}\x1b[0m" in coloured


def test_nothing_to_do() -> None:
    kept = Operation(Verb.KEEP, link("lan0", {}), ("Interface/lan",), "as declared")
    assert list(plan_text.plan(Plan((kept,)), PLAIN)) == [
        "Plan: nothing to do; 1 artifact as declared."
    ]


def test_alike_operations_on_single_artifacts_are_grouped_too() -> None:
    same = [
        Operation(Verb.DELETE, expand(TRANSIT, key), ("RouteList/x",), "gone", proof="kernel tag")
        for key in keys(5)
    ]
    lines = list(plan_text.plan(Plan(tuple(same)), PLAIN))
    assert sum("   - route" in line for line in lines) == 3
    assert "     … and 2 more" in lines
    assert sum("RouteList/x: gone" in line for line in lines) == 1


def test_a_batch_that_changes_is_a_few_lines_and_a_number() -> None:
    old = template(4, nexthops=(Nexthop("192.0.2.9", "wan0"),))
    moved = Operation(
        Verb.UPDATE,
        batch(TRANSIT, keys(1003)),
        ("RouteList/transit",),
        "nexthops differs",
        proof="kernel tag",
        changes=(Change("nexthops", ("via 192.0.2.9 dev wan0",), ("via 192.0.2.1 dev wan0",)),),
        observed=batch(old, keys(1003)),
    )
    assert list(plan_text.plan(Plan((moved,)), PLAIN, close=False)) == [
        "In this order:",
        "",
        "   ~ route 10.0.0.0/24",
        "   ~ route 10.0.1.0/24",
        "   ~ route 10.0.2.0/24",
        "     … and 1 000 more",
        "      nexthops  via 192.0.2.9 dev wan0 → via 192.0.2.1 dev wan0",
        "      RouteList/transit: nexthops differs",
        "      proof: kernel tag",
        "",
    ]


@pytest.mark.parametrize(
    ("artifact", "said"),
    [
        (
            expand(
                template(
                    4,
                    table=1000,
                    metric=5,
                    nexthops=(Nexthop("192.0.2.1", "a", 2), Nexthop("192.0.2.2", "b")),
                    prefsrc="192.0.2.9",
                    mtu=1400,
                ),
                keys(1)[0],
            ),
            "route 10.0.0.0/24 nexthop via 192.0.2.1 dev a weight 2 nexthop via 192.0.2.2 dev b"
            " table 1000 metric 5 src 192.0.2.9 mtu 1400",
        ),
        (
            link("br0", {"type": "bridge", "up": False, "stp": True}),
            "link br0 type bridge stp yes down",
        ),
        (hostname("r1"), "hostname r1"),
    ],
)
def test_artifacts_in_the_language_of_ip(artifact: Artifact, said: str) -> None:
    assert artifact_words.artifact(name(artifact.key), artifact.fields) == said


def test_an_ipv6_address_is_said_with_its_prefix_length() -> None:
    import ipaddress

    artifact = address(ipaddress.ip_interface("fe80::1/64"), "wan0")
    said = artifact_words.artifact(name(artifact.key), artifact.fields)
    assert said == "address fe80::1/64 dev wan0 scope link"


def test_what_fails_in_every_round_is_said_once() -> None:
    """A service that was made and does not start is to be created first, and then updated."""
    made = link("wan0", {"up": True})
    rounds = [Operation(verb, made, ("Interface/wan",), "") for verb in (Verb.CREATE, Verb.UPDATE)]
    results = tuple(Result(one, 0, (Failure(made.key, "does not start"),)) for one in rounds)
    done = Report(Plan(tuple(rounds[:1])), results, Plan(tuple(rounds[1:])), 2)
    said = [line for line in report.lines(done, PLAIN) if "does not start" in line]
    assert said == ["  update link wan0: does not start"]
