"""IPv4 routes of equal destination, table and metric are a list, of which the first is in effect:
what a trial took of it comes back at its place, ours or others'."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from os import kill

import pytest

from tests.cli import confirm_scene as trials
from tests.cli import others_scene as scene
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.cli.test_put_back import DOWN, events, on_trial, same
from tests.namespace import Namespace

# Who has routes to one destination, in their order: Holdfast over wan0, others over wan0 or two0.
SCENES = (
    ("ours", "two0"),
    ("ours", "two0", "two0"),
    ("ours", "wan0", "two0"),
    ("wan0", "two0"),
    ("wan0", "two0", "two0"),
    ("wan0", "wan0", "two0"),
    ("two0", "wan0", "wan0"),
    ("wan0", "ours", "two0"),
    ("wan0", "ours", "wan0"),
    ("wan0", "wan0", "ours", "two0", "two0"),
    ("two0", "ours"),
    ("two0", "ours", "wan0"),
    ("two0", "wan0", "ours"),
)
GATEWAYS = {"wan0": "192.0.2", "two0": "198.18.0"}
OURS = [number for number, makers in enumerate(SCENES) if "ours" in makers]
Resource = tuple[str, str, str]


def place(number: int) -> str:
    """Some in the main table, some in another and with a metric."""
    return f"10.{20 + number}.0.0/16" + (" table 300 metric 7" if number % 2 else "")


def own(number: int) -> Resource:
    more = ", table: 300, metric: 7" if number % 2 else ""
    spec = f"{{destination: 10.{20 + number}.0.0/16, gateway: 192.0.2.254{more}}}"
    return ("IPv4Route", f"r{number}", spec)


def others(number: int, makers: tuple[str, ...]) -> Iterator[str]:
    """Ours is there already, or nothing is."""
    at = makers.index("ours") if "ours" in makers else 0
    words = [
        f"{place(number)} via {GATEWAYS.get(dev)}.{10 + gateway} dev {dev} proto static"
        for gateway, dev in enumerate(makers)
    ]
    yield from (f"route prepend {one}" for one in reversed(words[:at]))
    yield from (f"route append {one}" for one in words[at + ("ours" in makers) :])


def lists(netns: Namespace) -> dict[str, list[str]]:
    return {
        f"{number} {' '.join(makers)}": netns.ip(f"route show {place(number)}").splitlines()
        for number, makers in enumerate(SCENES)
    }


@pytest.fixture
def router(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    scene.unchecked()
    netns.veth("wan0", "isp0")
    netns.veth("two0", "isp1", "198.18.0.1/24")
    yield netns
    for pid in trials.keepers(holdfast.root):
        kill(pid, signal.SIGKILL)


OWN = {number: own(number) for number in OURS}
BETWEEN = [own(number) for number in OURS if "ours" in SCENES[number][1:-1]]
CHANGES: dict[str, tuple[Resource, ...]] = {
    # Those that stand between others' are told of below.
    "removed": (WAN, WAN_ADDRESS, *BETWEEN),
    "link down": (DOWN, WAN_ADDRESS, *OWN.values()),
    "link down and removed": (DOWN, WAN_ADDRESS),
    "without address": (WAN,),
}


@pytest.mark.parametrize("change", CHANGES)
def test_equal_routes_keep_their_order(holdfast: Holdfast, router: Namespace, change: str) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, *OWN.values())
    holdfast.set_up("apply", "router.yaml", "--yes")
    for number, makers in enumerate(SCENES):
        scene.make(router, *others(number, makers))
    before, everything = lists(router), trials.settled(lambda: scene.everything(router))
    assert [len(told) for told in before.values()] == list(map(len, SCENES))
    on_trial(holdfast, *CHANGES[change])
    assert lists(router) != before
    done = holdfast.ok("rollback")
    assert lists(router) == before
    assert "not brought back" not in done.out
    same(router, everything)


def test_one_between_two_that_stayed(holdfast: Holdfast, router: Namespace) -> None:
    """Nothing can be made there without taking what is others' away: it comes last, and is told."""
    holdfast.declare(WAN, WAN_ADDRESS, own(0))
    holdfast.set_up("apply", "router.yaml", "--yes")
    scene.make(router, *others(0, ("two0", "ours", "two0")))
    first, ours, last = router.ip(f"route show {place(0)}").splitlines()
    on_trial(holdfast, WAN, WAN_ADDRESS)
    done = holdfast.ok("rollback")
    assert router.ip(f"route show {place(0)}").splitlines() == [first, last, ours]
    assert "not brought back: route 10.20.0.0/16: equal routes stand in another order" in done.out
    assert not trials.waiting(holdfast.root)


def test_one_that_was_not_there_before_is_not_passed(holdfast: Holdfast, router: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, own(0))
    holdfast.set_up("apply", "router.yaml", "--yes")
    scene.make(router, *others(0, ("ours", "two0")), *others(2, ("wan0", "two0")))
    on_trial(holdfast, DOWN, WAN_ADDRESS)
    for number in (0, 2):
        scene.make(router, f"route prepend {place(number)} via 198.18.0.99 dev two0 proto bird")
    on_the_way = [router.ip(f"route show {place(number)}") for number in (0, 2)]
    done = holdfast.ok("rollback")
    assert [router.ip(f"route show {place(number)}") for number in (0, 2)] == on_the_way
    assert "route 10.20.0.0/16: it is held by protocol bird" in done.out
    assert "route 10.22.0.0/16: another is in its place by now" in done.out


def test_one_that_others_took_away_since_stays_away(holdfast: Holdfast, router: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, own(0))
    holdfast.set_up("apply", "router.yaml", "--yes")
    scene.make(router, *others(0, ("ours", "two0", "two0")))
    ours, gone, last = router.ip(f"route show {place(0)}").splitlines()
    on_trial(holdfast, DOWN, WAN_ADDRESS)
    scene.make(router, f"route del {gone}")
    done = holdfast.ok("rollback")
    assert router.ip(f"route show {place(0)}").splitlines() == [ours, last]
    assert events(holdfast, "restored") == ["route 10.20.0.0/16: ours; lost with generation 2"]
    assert "not brought back" not in done.out


def test_one_subnet_on_two_links(holdfast: Holdfast, router: Namespace) -> None:
    """The kernel makes the route to it last, whatever stood there before."""
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.set_up("apply", "router.yaml", "--yes")
    scene.make(router, "addr add 192.0.2.77/24 dev two0")
    on_trial(holdfast, DOWN, WAN_ADDRESS)
    done = holdfast.ok("rollback")
    assert "dev two0" in router.ip("route show 192.0.2.0/24").splitlines()[0]
    assert "not brought back: route 192.0.2.0/24: equal routes stand in another order" in done.out
