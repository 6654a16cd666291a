"""Many routes changed at once, among routes and legs of others that must stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.engine.driver import Result
from holdfast.engine.kinds.route import Nexthop, RouteTemplate, template
from holdfast.host.netlink.routes.driver import RouteDriver
from holdfast.host.netlink.routes.route_codec import RTM_DELROUTE, RTM_NEWROUTE
from tests.host.netlink.interruption import Interrupted, socket_with
from tests.host.netlink.route_bench import TAG, Bench, route, routes
from tests.namespace import Namespace

OLD = template(4, nexthops=(Nexthop("10.0.0.9", "v0"),))
NEW = template(4, nexthops=(Nexthop("10.0.0.8", "v0"),))
OLD6 = template(6, nexthops=(Nexthop("fd00::9", "v0"),))
NEW6 = template(6, nexthops=(Nexthop("fd01::9", "v1"),))
PREFIXES = [f"198.51.{number}.0/24" for number in range(60)]
PREFIXES6 = [f"2001:db8:{number:x}::/48" for number in range(1, 61)]
FIRST, SECOND, *REST = PREFIXES
FIRST6, SECOND6, *REST6 = PREFIXES6


@pytest.fixture
def bench(netns: Namespace) -> Iterator[Bench]:
    with Bench(netns) as bench:
        yield bench


def names(result: Result) -> list[str]:
    return sorted(failure.key.name for failure in result.failures)


def foreign(bench: Bench) -> list[str]:
    """All that other programs have, in the order of the kernel. Its own routes are left out: those
    of an IPv6 address come when it was found to be free, a while after the address."""
    said = [
        line
        for family in ("-4", "-6")
        for line in bench.netns.ip(f"{family} -N -o route show table all").splitlines()
    ]
    ours_or_its_own = (f"proto {TAG}", "proto 2 ")
    return [" ".join(line.split()) for line in said if not any(w in line for w in ours_or_its_own)]


def interrupt(bench: Bench, kind: int, act: Callable[[], object]) -> Interrupted:
    """From now on the driver of the bench is interrupted, once."""
    transport = Interrupted(kind, act)
    bench.sock.close()
    bench.sock = socket_with(transport)
    bench.driver = RouteDriver(bench.sock, TAG)
    return transport


@pytest.mark.parametrize(
    ("old", "new", "prefixes"), [(OLD, NEW, PREFIXES), (OLD6, NEW6, PREFIXES6)]
)
def test_a_batch_is_changed(
    bench: Bench, old: RouteTemplate, new: RouteTemplate, prefixes: list[str]
) -> None:
    bench.create(routes(old, *prefixes))
    bench.progress = 0
    result = bench.update_many(old, new, *prefixes)
    assert (result.ok, result.done, result.notes, result.remember) == (True, 60, (), {})
    assert bench.progress == 60
    assert bench.is_there(new, *prefixes)


def test_the_new_are_there_before_the_old_go(bench: Bench) -> None:
    bench.create(routes(OLD, *PREFIXES))
    shown: list[str] = []
    transport = interrupt(bench, RTM_DELROUTE, lambda: shown.extend(bench.show(FIRST)))
    assert bench.update_many(OLD, NEW, *PREFIXES).ok
    assert [line.split(" proto")[0] for line in shown] == [
        f"{FIRST} via 10.0.0.9 dev v0",
        f"{FIRST} via 10.0.0.8 dev v0",
    ]
    assert [kind for kind in transport.sent if kind in (RTM_NEWROUTE, RTM_DELROUTE)] == (
        [RTM_NEWROUTE] * 60 + [RTM_DELROUTE] * 60
    )


def test_the_new_legs_are_there_before_the_old_go(bench: Bench) -> None:
    bench.create(routes(OLD6, *PREFIXES6))
    shown: list[str] = []
    interrupt(bench, RTM_DELROUTE, lambda: shown.extend(bench.show(FIRST6)))
    assert bench.update_many(OLD6, NEW6, *PREFIXES6).ok
    assert shown[1:] == [
        "nexthop via fd00::9 dev v0 weight 1",
        "nexthop via fd01::9 dev v1 weight 1",
    ]


def test_aliases_of_others_keep_their_places(bench: Bench) -> None:
    bench.create(routes(OLD, *PREFIXES))
    bench.netns.ip(f"route prepend {FIRST} via 10.0.0.7 proto static")
    bench.netns.ip(f"route append {SECOND} via 10.0.0.9 proto bird")
    before = foreign(bench)
    assert bench.update_many(OLD, NEW, *PREFIXES).ok
    assert bench.is_there(NEW, *PREFIXES)
    assert foreign(bench) == before
    assert "proto static" in bench.show(FIRST)[0], "still in effect"
    assert "proto 72" in bench.show(SECOND)[0], "still in effect"


def test_what_is_no_longer_as_observed_is_told_apart(bench: Bench) -> None:
    """Gone, taken by another, changed by hand under our tag: one each, among many."""
    gone, taken, changed, *untouched = PREFIXES
    bench.create(routes(OLD, *untouched))
    bench.netns.ip(f"route add {taken} via 10.0.0.9 dev v0 proto static")
    bench.netns.ip(f"route add {changed} via 10.0.0.7 dev v0 proto 72")
    before = foreign(bench)
    result = bench.update_many(OLD, NEW, *PREFIXES)
    assert names(result) == sorted([taken, changed])
    assert all(failure.exists for failure in result.failures)
    assert result.done == 58
    assert foreign(bench) == before
    left = bench.show(changed)
    assert [line.split(" dev")[0] for line in left] == [f"{changed} via 10.0.0.7"]
    bench.netns.ip(f"route del {changed}")
    assert bench.is_there(NEW, gone, *untouched)


@pytest.mark.parametrize("kind", [RTM_NEWROUTE, RTM_DELROUTE])
def test_what_another_puts_in_between_is_not_hit(bench: Bench, kind: int) -> None:
    """After the aliases were read: beside ours, and in the place of ours."""
    bench.create(routes(OLD, *PREFIXES))

    def act() -> None:
        bench.netns.ip(f"route append {FIRST} via 10.0.0.9 dev v0 proto static")
        bench.netns.ip(f"route del {SECOND} via 10.0.0.9 proto 72")
        bench.netns.ip(f"route append {SECOND} via 10.0.0.9 dev v0 proto static")

    interrupt(bench, kind, act)
    assert bench.update_many(OLD, NEW, *PREFIXES).ok
    for prefix in (FIRST, SECOND):
        said = bench.show(prefix)
        assert [line for line in said if "proto static" in line] == [
            f"{prefix} via 10.0.0.9 dev v0 proto static"
        ]
        assert f"{prefix} via 10.0.0.8 dev v0 proto 72" in said
    assert bench.is_there(NEW, *PREFIXES)


def test_a_route_of_ours_with_a_metric_is_not_taken_for_one_without(bench: Bench) -> None:
    """An IPv4 delete can't ask for metric 0: it is not sent where there is none without."""
    bench.create(routes(OLD, *REST))
    floating = template(4, metric=100, nexthops=OLD.nexthops)
    bench.create(routes(floating, *PREFIXES))
    assert bench.update_many(OLD, NEW, *PREFIXES).ok
    assert len(bench.netns.ip("route show proto 72 metric 100").splitlines()) == 60
    assert len(bench.netns.ip("route show proto 72 via 10.0.0.8").splitlines()) == 60


def test_a_refused_gateway_leaves_every_old_route(bench: Bench) -> None:
    bench.create(routes(OLD, *PREFIXES))
    bench.create(routes(OLD6, *PREFIXES6))
    nowhere = template(4, nexthops=(Nexthop("192.0.2.99", "v0"),))
    nowhere6 = template(6, nexthops=(Nexthop("2001:db8:f::1", "v0"),))
    for old, new, prefixes in ((OLD, nowhere, PREFIXES), (OLD6, nowhere6, PREFIXES6)):
        before = bench.tagged()
        result = bench.update_many(old, new, *prefixes)
        assert result.done == 0
        assert names(result) == sorted(prefixes)
        assert "(E" in result.failures[0].error
        assert bench.tagged() == before


def test_a_missing_link_leaves_every_old_route(bench: Bench) -> None:
    bench.create(routes(OLD, *PREFIXES))
    bench.progress = 0
    gone = template(4, nexthops=(Nexthop("10.0.0.8", "gone0"),))
    result = bench.update_many(OLD, gone, *PREFIXES)
    assert names(result) == sorted(PREFIXES)
    assert {failure.error for failure in result.failures} == {"link gone0 does not exist"}
    assert bench.progress == 60
    assert bench.is_there(OLD, *PREFIXES)


def test_more_than_a_chunk(bench: Bench) -> None:
    prefixes = [f"20.{number >> 8}.{number & 255}.0/24" for number in range(25_000)]
    bench.create(routes(OLD, *prefixes))
    bench.netns.ip(f"route append {prefixes[12_345]} via 10.0.0.9 proto bird")
    assert bench.update_many(OLD, NEW, *prefixes).ok
    assert bench.is_there(NEW, *prefixes)
    assert bench.show(prefixes[12_345])[0].split(" dev")[0].endswith("via 10.0.0.8")


def test_legs_of_others_are_told_and_left(bench: Bench) -> None:
    bench.create(routes(OLD6, *PREFIXES6))
    bench.netns.ip(f"-6 route append {FIRST6} via fe80::f dev v1 proto static")
    bench.netns.ip(f"-6 route append {SECOND6} dev v1 proto static")
    result = bench.update_many(OLD6, NEW6, *PREFIXES6)
    assert result.ok
    assert result.notes == (
        f"leg via fe80::f dev v1 of {FIRST6} is another program's (kernel guard); left alone",
    )
    shared = route(NEW6, FIRST6)
    assert result.remember == {
        shared.key: {
            **shared.fields,
            "foreign_nexthops": ("via fe80::f dev v1",),
            "protocol": TAG,
        }
    }
    assert "nexthop via fe80::f dev v1 weight 1" in bench.show(FIRST6)
    assert len(bench.show(SECOND6, "proto static")) == 1
    assert bench.delete(template(6, nexthops=(Nexthop("fe80::f", "v1"),)), FIRST6).notes


def test_a_leg_that_another_has_already_is_a_failure_of_that_route(bench: Bench) -> None:
    bench.create(routes(OLD6, *PREFIXES6))
    bench.netns.ip(f"-6 route append {FIRST6} via fd01::9 dev v1 proto static")
    before = bench.show(FIRST6)
    result = bench.update_many(OLD6, NEW6, *PREFIXES6)
    assert names(result) == [FIRST6]
    assert result.failures[0].exists
    assert bench.show(FIRST6) == before
    bench.netns.ip(f"-6 route del {FIRST6}")
    assert bench.is_there(NEW6, SECOND6, *REST6)


def test_a_leg_put_in_between_is_not_hit(bench: Bench) -> None:
    """The same leg as our old one, by another program, after ours was deleted by hand."""
    bench.create(routes(OLD6, *PREFIXES6))

    def act() -> None:
        bench.netns.ip(f"-6 route del {FIRST6} via fd00::9 dev v0 proto 72")
        bench.netns.ip(f"-6 route append {FIRST6} via fd00::9 dev v0 proto static")

    interrupt(bench, RTM_DELROUTE, act)
    result = bench.update_many(OLD6, NEW6, *PREFIXES6)
    assert result.ok
    assert "nexthop via fd00::9 dev v0 weight 1" in bench.show(FIRST6)
    assert [key.name for key in result.remember] == [FIRST6]


@pytest.mark.parametrize("mtu", [1400, 0])
def test_a_change_that_keeps_the_leg_is_swapped_route_by_route(bench: Bench, mtu: int) -> None:
    """The kernel refuses the same leg twice, so the old one has to go first; it is missing no
    longer than its own two messages take."""
    old = template(6, nexthops=OLD6.nexthops, mtu=1400 - mtu)
    new = template(6, nexthops=OLD6.nexthops, mtu=mtu)
    bench.create(routes(old, *PREFIXES6))
    transport = interrupt(bench, RTM_DELROUTE, lambda: None)
    assert bench.update_many(old, new, *PREFIXES6).ok
    changes = [kind for kind in transport.sent if kind in (RTM_NEWROUTE, RTM_DELROUTE)]
    assert changes == [RTM_DELROUTE, RTM_NEWROUTE] * 60
    assert bench.is_there(new, *PREFIXES6)


def test_a_failed_swap_puts_the_old_legs_back(bench: Bench) -> None:
    bench.create(routes(OLD6, *PREFIXES6))
    before = bench.tagged()
    impossible = template(6, nexthops=OLD6.nexthops, prefsrc="2001:db8:f::1")
    result = bench.update_many(OLD6, impossible, *PREFIXES6)
    assert names(result) == sorted(PREFIXES6)
    assert bench.tagged() == before
