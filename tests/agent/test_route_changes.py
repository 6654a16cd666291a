"""Passes over a few routes, on the kernel; a full look afterwards finds nothing left to do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.intent import Desired
from holdfast.engine.kinds import route
from tests.agent.route_scene import RouteScene, declared, names, route_scene, verbs
from tests.namespace import Namespace

MANY = [f"10.0.{number}.0/24 via 192.0.2.2 dev wan" for number in range(100)]
SIX = [f"2001:db8:{number:x}::/48 via 2001:db8::2 dev wan" for number in range(1, 20)]


@pytest.fixture
def scene(
    netns: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RouteScene]:
    with route_scene(netns, tmp_path / "root", monkeypatch) as made:
        yield made


@pytest.mark.parametrize(
    "line",
    [
        "198.51.100.0/24 via 192.0.2.2 dev wan",
        "198.51.100.0/24 dev wan",
        "198.51.100.0/24 via 192.0.2.2 dev wan metric 50 mtu 1400 src 192.0.2.1",
        "198.51.100.0/24 nexthop via 192.0.2.2 dev wan nexthop via 192.0.2.3 dev wan weight 3",
        "198.51.100.0/24 via 192.0.2.2 dev wan table 300",
        "10.0.0.0/8 via 192.0.2.3 dev wan",  # more specific ones hide it in part
        "10.0.7.0/25 via 192.0.2.3 dev wan",
        "blackhole 198.51.100.0/24",
        "default via 192.0.2.2 dev wan",
        "2001:db8:100::/48 via 2001:db8::3 dev wan",
        "2001:db8:100::/48 dev wan metric 7",
        "2001:db8:100::/48 nexthop via 2001:db8::2 dev wan nexthop via 2001:db8::3 dev wan",
        "blackhole 2001:db8:100::/48",
        "default via 2001:db8::2 dev wan",
    ],
)
def test_a_route_comes_and_goes(scene: RouteScene, line: str) -> None:
    before, after = declared(*MANY, *SIX), declared(*MANY, *SIX, line)
    scene.full(before)
    assert verbs(scene.few(after)) == [("create", 1)]
    assert scene.dumps == []
    assert scene.left(after) == ()
    assert verbs(scene.few(before)) == [("delete", 1)]
    assert scene.left(before) == ()
    assert verbs(scene.few(before)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("198.51.100.0/24 via 192.0.2.2 dev wan", "198.51.100.0/24 via 192.0.2.3 dev wan"),
        (
            "198.51.100.0/24 via 192.0.2.2 dev wan",
            "198.51.100.0/24 nexthop via 192.0.2.3 dev wan nexthop via 192.0.2.4 dev wan",
        ),
        ("198.51.100.0/24 dev wan mtu 1400", "198.51.100.0/24 via 192.0.2.3 dev wan"),
        (
            "2001:db8:100::/48 via 2001:db8::2 dev wan",
            "2001:db8:100::/48 via 2001:db8::3 dev wan",
        ),
        (
            "2001:db8:100::/48 via 2001:db8::2 dev wan",
            "2001:db8:100::/48 nexthop via 2001:db8::2 dev wan nexthop via 2001:db8::3 dev wan",
        ),
    ],
)
def test_a_route_changes(scene: RouteScene, old: str, new: str) -> None:
    before, after = declared(*MANY, *SIX, old), declared(*MANY, *SIX, new)
    scene.full(before)
    for wanted in (after, before, after):
        assert verbs(scene.few(wanted)) == [("update", 1)]
        assert scene.dumps == []
        assert scene.left(wanted) == ()


def test_changes_of_several_kinds_at_once(scene: RouteScene) -> None:
    scene.full(declared(*MANY, *SIX))
    after = declared(
        *MANY[10:],
        *SIX[3:],
        "10.0.0.0/24 via 192.0.2.3 dev wan",
        "10.0.1.0/24 via 192.0.2.3 dev wan",
        "10.0.2.0/24 via 192.0.2.2 dev wan metric 9",
        "198.51.100.0/24 dev wan",
        "2001:db8:1::/48 via 2001:db8::9 dev wan",
    )
    assert verbs(scene.few(after)) == [
        ("create", 1),
        ("create", 1),
        ("delete", 2),
        ("delete", 8),
        ("update", 1),
        ("update", 2),
    ]
    assert scene.dumps == []
    assert scene.left(after) == ()


@pytest.mark.parametrize("line", ["10.0.7.0/24 via 192.0.2.2", "2001:db8:7::/48 via 2001:db8::2"])
def test_a_route_deleted_by_hand_comes_back(scene: RouteScene, line: str) -> None:
    wanted = declared(*MANY, *SIX)
    scene.full(wanted)
    scene.ip(f"route del {line} dev wan")
    report = scene.few(wanted)
    assert verbs(report) == [("create", 1)]
    assert scene.dumps == []
    assert scene.left(wanted) == ()


@pytest.mark.parametrize("line", ["10.0.7.0/24 via 192.0.2.2", "2001:db8:7::/48 via 2001:db8::2"])
def test_a_route_that_is_back_already_is_left(scene: RouteScene, line: str) -> None:
    """A full pass may have put it back before its hints were heard."""
    wanted = declared(*MANY, *SIX)
    scene.full(wanted)
    scene.ip(f"route del {line} dev wan")
    scene.netns.ip(f"route add {line} dev wan proto 72")
    assert verbs(scene.few(wanted)) == []
    assert scene.dumps == []
    assert scene.left(wanted) == ()


def test_a_hidden_route_deleted_by_hand_comes_back(scene: RouteScene) -> None:
    """No lookup can tell of it: longer prefixes are in the way everywhere."""
    halves = ["10.9.0.0/17 via 192.0.2.3 dev wan", "10.9.128.0/17 via 192.0.2.3 dev wan"]
    wanted = declared(*MANY, "10.9.0.0/16 via 192.0.2.2 dev wan", *halves)
    scene.full(wanted)
    scene.ip("route del 10.9.0.0/16 dev wan")
    assert verbs(scene.few(wanted)) == [("create", 1)]
    assert scene.dumps == []
    assert scene.left(wanted) == ()


@pytest.mark.parametrize(
    "change",
    [
        "route change 10.0.7.0/24 via 192.0.2.9 proto 72",
        "-6 route change 2001:db8:7::/48 via 2001:db8::9 proto 72",
    ],
)
def test_a_route_changed_by_hand_is_put_right(scene: RouteScene, change: str) -> None:
    wanted = declared(*MANY, *SIX)
    scene.full(wanted)
    scene.ip(change)
    assert verbs(scene.few(wanted)) == [("update", 1)]
    assert scene.dumps == []
    assert scene.left(wanted) == ()


def test_a_route_with_our_tag_that_nothing_declares_goes(scene: RouteScene) -> None:
    wanted = declared(*MANY)
    scene.full(wanted)
    scene.ip("route add 198.51.100.0/24 via 192.0.2.2 proto 72")
    assert verbs(scene.few(wanted)) == [("delete", 1)]
    assert scene.dumps == []
    assert scene.left(wanted) == ()


def test_what_others_undo_themselves_needs_nothing(scene: RouteScene) -> None:
    wanted = declared(*MANY)
    scene.full(wanted)
    scene.ip(
        "route del 10.0.7.0/24 via 192.0.2.2",
        "route add 10.0.7.0/24 via 192.0.2.2 proto 72",
        "route append 10.0.8.0/24 via 192.0.2.9",  # stands behind ours
    )
    assert verbs(scene.few(wanted)) == []
    assert scene.dumps == []
    assert scene.left(wanted) == ()


def test_a_route_that_another_program_took_is_left_to_a_full_pass(scene: RouteScene) -> None:
    wanted = declared(*MANY)
    scene.full(wanted)
    scene.ip("route replace 10.0.7.0/24 via 192.0.2.9 proto static")
    assert scene.few(wanted) is None
    assert "another program" in scene.doubt
    assert len(scene.full(wanted).after.conflicts) == 1
    # The rest can still be changed without a look at everything.
    more = declared(*MANY, "198.51.100.0/24 dev wan")
    report = scene.few(more)
    assert report is not None
    assert names(report) == {"198.51.100.0/24"}
    assert len(report.after.conflicts) == 1
    # Once it is gone, ours is made; of what others leave behind nothing is told.
    scene.ip("route del 10.0.7.0/24 via 192.0.2.9")
    report = scene.few(more)
    assert report is not None
    assert names(report) == {"10.0.7.0/24"}
    assert report.after.conflicts == ()
    assert scene.left(more) == ()


def test_a_foreign_route_in_the_place_of_one_that_went_is_seen(scene: RouteScene) -> None:
    """Of a foreign route that came where nothing was, the watch does not tell."""
    wanted = declared(*MANY)
    scene.full(wanted)
    scene.ip("route del 10.0.7.0/24 via 192.0.2.2")
    scene.netns.ip("route add 10.0.7.0/24 via 192.0.2.9 proto static")
    assert scene.few(wanted) is None
    assert "another program" in scene.doubt


def test_a_foreign_route_in_the_way_is_met_and_left_alone(scene: RouteScene) -> None:
    scene.full(declared(*MANY))
    scene.netns.ip("route add 198.51.100.0/24 via 192.0.2.9 proto static")
    wanted = declared(*MANY, "198.51.100.0/24 via 192.0.2.2 dev wan")
    assert scene.few(wanted) is None
    assert scene.doubt
    (seen,) = scene.netns.ip_json("route show 198.51.100.0/24")
    assert seen["gateway"] == "192.0.2.9"
    assert len(scene.full(wanted).after.conflicts) == 1


def test_a_link_that_is_gone_is_left_to_a_full_pass(scene: RouteScene) -> None:
    scene.full(declared(*MANY))
    scene.netns.ip("link del wan")
    assert scene.few(declared(*MANY[1:])) is None


def test_a_route_over_a_link_that_nobody_looked_at_waits(scene: RouteScene) -> None:
    scene.full(declared(*MANY))
    scene.netns.ip("link add other type bridge")
    wanted = declared(*MANY, "198.51.100.0/24 dev other")
    needing = replace(wanted.intents[-1], requires=(Key("link", "other"),))
    assert scene.few(Desired((*wanted.intents[:-1], needing))) is None
    assert "waits for link other" in scene.doubt


def test_a_route_with_a_claim_is_left_to_a_full_pass(scene: RouteScene) -> None:
    wanted = declared(*MANY)
    scene.full(wanted)
    (batch,) = [intent.batch for intent in wanted.intents if hasattr(intent, "batch")]
    artifact = route.expand(batch.template, batch.keys[7])
    claim = Claim(
        artifact.key,
        ("RouteList/routes",),
        Provenance.ADOPTED,
        ClaimState.OWNED,
        artifact.fields,
        "",
        1,
        epoch=scene.host.epoch,
    )
    scene.ledger.write_claims([claim])
    scene.ip("route del 10.0.7.0/24 via 192.0.2.2")
    assert scene.few(wanted) is None
    assert "claim" in scene.doubt


def test_too_many_are_left_to_a_full_pass(scene: RouteScene) -> None:
    scene.full(declared(*MANY))
    more = [f"10.{n >> 8 | 8}.{n & 255}.0/24 via 192.0.2.2 dev wan" for n in range(1100)]
    assert scene.few(declared(*MANY, *more)) is None
    assert scene.doubt == "many routes changed"


@pytest.mark.parametrize("seed", range(6))
def test_edits_and_others_at_random(scene: RouteScene, seed: int) -> None:
    """Whatever happens, a pass over a few either says that it cannot tell, or leaves nothing."""
    chosen = random.Random(seed)  # noqa: S311 (no secret)
    lines = [*MANY[:12], *SIX[:6], "10.0.0.0/20 via 192.0.2.3 dev wan"]
    wanted = declared(*lines)
    scene.full(wanted)
    done = 0
    for _ in range(40):
        for _ in range(chosen.randrange(3)):
            _disturb(scene, chosen)
        lines = _edited(lines, chosen)
        wanted = declared(*lines)
        foreign = _foreign(scene)
        if scene.few(wanted) is None:
            assert _foreign(scene) == foreign
            scene.full(wanted)
        else:
            done += 1
            assert _foreign(scene) == foreign
            assert scene.left(wanted) == ()
    assert done > 5


def _foreign(scene: RouteScene) -> list[object]:
    return [one for one in scene.netns.ip_json("route show") if one.get("protocol") != "72"]


def _edited(lines: list[str], chosen: random.Random) -> list[str]:
    lines = list(lines)
    match chosen.randrange(5):
        case 3:
            prefix = f"2001:db8:{chosen.randrange(1, 7):x}::/48"
            legs = chosen.sample(range(2, 6), 2)
            spread = "".join(f" nexthop via 2001:db8::{leg} dev wan" for leg in legs)
            lines = [line for line in lines if not line.startswith(prefix)]
            lines.append(prefix + spread)
        case 0 if len(lines) > 3:
            lines.pop(chosen.randrange(len(lines)))
        case 1:
            at = chosen.randrange(len(lines))
            prefix = lines[at].split()[0]
            gateway = "2001:db8::" if ":" in prefix else "192.0.2."
            lines[at] = f"{prefix} via {gateway}{chosen.randrange(2, 5)} dev wan"
        case 2:
            prefix = f"10.0.{chosen.randrange(16)}.0/{chosen.choice([24, 25, 26])}"
            if not any(line.startswith(f"{prefix} ") for line in lines):
                lines.append(f"{prefix} via 192.0.2.{chosen.randrange(2, 5)} dev wan")
    return lines


def _disturb(scene: RouteScene, chosen: random.Random) -> None:
    number = chosen.randrange(16)
    via = f"192.0.2.{chosen.randrange(2, 5)}"
    command = chosen.choice(
        [
            f"route del 10.0.{number}.0/24",
            f"route add 10.0.{number}.0/24 via {via} proto 72",
            f"route replace 10.0.{number}.0/24 via {via} proto {chosen.choice([72, 4])}",
            f"route append 10.0.{number}.0/24 via {via} proto {chosen.choice([72, 4])}",
            f"route add 10.0.{number}.0/25 via {via}",
            f"-6 route del 2001:db8:{number:x}::/48",
            f"-6 route append 2001:db8:{number:x}::/48 via 2001:db8::7 proto 4",
            f"-6 route append 2001:db8:{number:x}::/48 via 2001:db8::6 proto 72",
            f"-6 route del 2001:db8:{number:x}::/48 via 2001:db8::3",
            f"-6 route replace 2001:db8:{number:x}::/48 via 2001:db8::7 proto 72",
        ]
    )
    with suppress(AssertionError):  # it may not be there, or be there already
        scene.ip(command)
