"""Routes changed in place, beside routes and legs of other programs that must stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine import ownership
from holdfast.engine.claim import Provenance
from holdfast.engine.kinds.route import ROUTE, Nexthop, RouteTemplate, expand, template
from tests.host.netlink.route_bench import TAG, Bench, claim, route, routes
from tests.namespace import Namespace

VIA, VIA_8 = (Nexthop("10.0.0.9", "v0"),), (Nexthop("10.0.0.8", "v0"),)
ECMP = (Nexthop("10.0.0.9", "v0", 2), Nexthop("10.1.0.9", "v1"))
PREFIX, PREFIX6 = "198.51.100.0/24", "2001:db8::/48"


@pytest.fixture
def bench(netns: Namespace) -> Iterator[Bench]:
    with Bench(netns) as bench:
        yield bench


CHANGES = {
    "mtu": (template(4, nexthops=VIA), template(4, nexthops=VIA, mtu=1400)),
    "mtu-off": (template(4, nexthops=VIA, mtu=1400), template(4, nexthops=VIA)),
    "mtu-other": (template(4, nexthops=VIA, mtu=1400), template(4, nexthops=VIA, mtu=1300)),
    "prefsrc": (template(4, nexthops=VIA), template(4, nexthops=VIA, prefsrc="10.0.0.2")),
    "prefsrc-off": (template(4, nexthops=VIA, prefsrc="10.0.0.2"), template(4, nexthops=VIA)),
    "gateway": (template(4, nexthops=VIA), template(4, nexthops=VIA_8)),
    "type": (template(4, nexthops=VIA), template(4, kind="unreachable")),
    "type-back": (template(4, kind="blackhole"), template(4, nexthops=VIA)),
    "to-ecmp": (template(4, nexthops=VIA), template(4, nexthops=ECMP)),
    "from-ecmp": (template(4, nexthops=ECMP), template(4, nexthops=VIA)),
    "leg-order": (template(4, nexthops=ECMP), template(4, nexthops=ECMP[::-1])),
    "metric": (
        template(4, metric=9, table=300, nexthops=VIA),
        template(4, metric=9, table=300, mtu=1400, nexthops=VIA),
    ),
    "other-link": (
        template(4, nexthops=(Nexthop("10.0.0.9", "v1", onlink=True),)),
        template(4, nexthops=VIA),
    ),
}


def _identity(shared: RouteTemplate) -> str:
    words = f"table {shared.table}" + (f" metric {shared.metric}" if shared.metric else "")
    return f"{PREFIX if shared.family == 4 else PREFIX6} {words}"


@pytest.mark.parametrize("name", CHANGES)
def test_ipv4_update(bench: Bench, name: str) -> None:
    old, new = CHANGES[name]
    bench.create(routes(old, PREFIX))
    assert bench.update(old, new, PREFIX).ok
    assert bench.is_there(new, PREFIX)


@pytest.mark.parametrize("name", CHANGES)
def test_ipv4_update_beside_foreign_aliases(bench: Bench, name: str) -> None:
    old, new = CHANGES[name]
    bench.create(routes(old, PREFIX))
    bench.netns.ip(f"route prepend {_identity(old)} via 10.0.0.7 proto static")
    bench.netns.ip(f"route append {_identity(old)} via 10.0.0.9 proto bird")
    foreign = (
        bench.show(PREFIX, f"table {old.table} proto static"),
        bench.show(PREFIX, f"table {old.table} proto bird"),
    )
    assert bench.update(old, new, PREFIX).ok
    assert bench.is_there(new, PREFIX)
    assert foreign == (
        bench.show(PREFIX, f"table {old.table} proto static"),
        bench.show(PREFIX, f"table {old.table} proto bird"),
    )
    assert "proto static" in bench.show(PREFIX, f"table {old.table}")[0], "still in effect"


@pytest.mark.parametrize("name", CHANGES)
def test_an_ipv4_route_in_effect_stays_in_effect(bench: Bench, name: str) -> None:
    old, new = CHANGES[name]
    bench.create(routes(old, PREFIX))
    bench.netns.ip(f"route append {_identity(old)} via 10.0.0.9 proto bird")
    assert bench.update(old, new, PREFIX).ok
    assert bench.is_there(new, PREFIX)
    shown = bench.show(PREFIX, f"table {old.table}")
    assert "proto 72" in shown[0]
    assert len([line for line in shown if "proto bird" in line]) == 1


@pytest.mark.parametrize("beside", [False, True])
def test_a_refused_ipv4_update_leaves_the_old_route(bench: Bench, beside: bool) -> None:
    old = template(4, nexthops=VIA)
    bench.create(routes(old, PREFIX))
    if beside:
        bench.netns.ip(f"route append {PREFIX} via 10.0.0.9 proto bird")
    before = bench.show(PREFIX)
    for new in (
        template(4, nexthops=VIA, prefsrc="192.0.2.99"),
        template(4, nexthops=(Nexthop("192.0.2.99", "v0"),)),
    ):
        result = bench.update(old, new, PREFIX)
        assert "(E" in result.failures[0].error
        assert bench.show(PREFIX) == before


def test_an_ipv4_route_that_is_gone_is_created_exclusively(bench: Bench) -> None:
    old, new = template(4, nexthops=VIA), template(4, nexthops=VIA_8)
    assert bench.update(old, new, PREFIX).ok
    assert bench.is_there(new, PREFIX)
    bench.netns.ip(f"route del {PREFIX}")
    bench.netns.ip(f"route add {PREFIX} via 10.0.0.7 proto static")
    result = bench.update(old, new, PREFIX)
    assert result.failures[0].exists
    assert bench.show(PREFIX) == [f"{PREFIX} via 10.0.0.7 dev v0 proto static"]


def test_the_new_route_left_by_an_interrupted_update_is_no_obstacle(bench: Bench) -> None:
    old, new = template(4, nexthops=VIA), template(4, nexthops=VIA, mtu=1400)
    bench.create(routes(old, PREFIX))
    bench.netns.ip(f"route append {PREFIX} via 10.0.0.9 mtu 1400 proto 72")
    assert bench.update(old, new, PREFIX).ok
    assert bench.is_there(new, PREFIX)


def test_updating_metric_0_leaves_other_metrics_of_ours(bench: Bench) -> None:
    old, other = template(4, nexthops=VIA), template(4, metric=100, nexthops=VIA)
    bench.create(routes(other, PREFIX))
    assert bench.update(old, template(4, nexthops=VIA_8), PREFIX).ok
    assert [line.split(" proto")[0] for line in bench.show(PREFIX)] == [
        f"{PREFIX} via 10.0.0.8 dev v0",
        f"{PREFIX} via 10.0.0.9 dev v0",
    ]


def test_an_adopted_route_is_updated_under_its_own_protocol(bench: Bench) -> None:
    bench.netns.ip(f"route add {PREFIX} via 10.0.0.9 proto static")
    bench.netns.ip(f"-6 route add {PREFIX6} via fd00::9 proto static")
    assert bench.update(
        template(4, nexthops=VIA), template(4, nexthops=VIA_8), PREFIX, protocol=4
    ).ok
    old6, new6 = template(6, nexthops=(A,)), template(6, nexthops=(B,))
    assert bench.update(old6, new6, PREFIX6, protocol=4).ok
    assert bench.show(PREFIX) == [f"{PREFIX} via 10.0.0.8 dev v0 proto 72"]
    assert bench.show(PREFIX6) == [f"{PREFIX6} via fd01::9 dev v1 proto 72 metric 1024 pref medium"]


A, B, C = Nexthop("fd00::9", "v0"), Nexthop("fd01::9", "v1"), Nexthop("fe80::c", "v1")
A_HEAVY = Nexthop("fd00::9", "v0", 5)

CHANGES6 = {
    "gateway": (template(6, nexthops=(A,)), template(6, nexthops=(B,))),
    "mtu": (template(6, nexthops=(A,)), template(6, nexthops=(A,), mtu=1400)),
    "mtu-off": (template(6, nexthops=(A,), mtu=1400), template(6, nexthops=(A,))),
    "prefsrc": (template(6, nexthops=(A,)), template(6, nexthops=(A,), prefsrc="fd00::1")),
    "more-legs": (template(6, nexthops=(A,)), template(6, nexthops=(A, B, C))),
    "fewer-legs": (template(6, nexthops=(A, B, C)), template(6, nexthops=(B,))),
    "order": (template(6, nexthops=(A, B, C)), template(6, nexthops=(C, A, B))),
    "leg-between": (template(6, nexthops=(A, C)), template(6, nexthops=(A, B, C))),
    "leg-in-front": (template(6, nexthops=(B, C)), template(6, nexthops=(A, B, C))),
    "weight": (template(6, nexthops=(A, B)), template(6, nexthops=(A_HEAVY, B))),
    "ecmp-mtu": (template(6, nexthops=(A, B)), template(6, nexthops=(A, B), mtu=1400)),
    "ecmp-mtu-and-leg": (template(6, nexthops=(A, B)), template(6, nexthops=(C, A), mtu=1400)),
    "to-device": (template(6, nexthops=(A,)), template(6, nexthops=(Nexthop(dev="v0"),))),
    "from-device": (template(6, nexthops=(Nexthop(dev="v0"),)), template(6, nexthops=(A,))),
    "device": (
        template(6, nexthops=(Nexthop(dev="v0"),)),
        template(6, nexthops=(Nexthop(dev="v1"),)),
    ),
    "to-blackhole": (template(6, nexthops=(A, B)), template(6, kind="blackhole")),
    "from-blackhole": (template(6, kind="blackhole"), template(6, nexthops=(A, B))),
    "type": (template(6, kind="blackhole"), template(6, kind="unreachable")),
    "metric": (
        template(6, metric=9, table=300, nexthops=(A,)),
        template(6, metric=9, table=300, nexthops=(A, B)),
    ),
}


@pytest.mark.parametrize("name", CHANGES6)
def test_ipv6_update(bench: Bench, name: str) -> None:
    old, new = CHANGES6[name]
    bench.create(routes(old, PREFIX6))
    result = bench.update(old, new, PREFIX6)
    assert (result.ok, result.notes, result.remember) == (True, (), {})
    assert bench.is_there(new, PREFIX6)


FOREIGN = Nexthop("fe80::f", "v1")


@pytest.mark.parametrize("name", [name for name in CHANGES6 if "device" not in name])
def test_ipv6_update_of_a_route_with_anothers_leg(bench: Bench, name: str) -> None:
    """What is observed of it has the other's leg in it; what is claimed then keeps it out."""
    old, new = CHANGES6[name]
    bench.create(routes(old, PREFIX6))
    bench.netns.ip(f"-6 route append {_identity_v6(old)} via fe80::f dev v1 proto static")
    seen = bench.observe()
    ((shared, packed),) = (seen.unpack(body) for body in seen.own)
    result = bench.update(shared, new, PREFIX6)
    assert result.ok
    if old.nexthops and new.nexthops:
        assert result.notes == (
            f"leg via fe80::f dev v1 of {PREFIX6} is another program's (kernel guard); left alone",
        )
        wanted = expand(new, packed)
        foreign = ("via fe80::f dev v1",)
        assert result.remember == {
            wanted.key: {**wanted.fields, "foreign_nexthops": foreign, "protocol": TAG}
        }
    claims = []
    if result.remember:
        claims = [
            claim(route(new, PREFIX6), Provenance.CREATED, foreign_nexthops=("via fe80::f dev v1",))
        ]
    assert bench.is_there(new, PREFIX6, claims=claims)
    assert not bench.observe(routes(new, PREFIX6), claims=claims).foreign
    left = bench.delete(_foreign_alone(old), PREFIX6)
    assert left.notes, "it is still the other's: a delete under our protocol does not take it"


def _identity_v6(shared: RouteTemplate) -> str:
    return f"{PREFIX6} table {shared.table} metric {shared.metric}"


def _foreign_alone(shared: RouteTemplate) -> RouteTemplate:
    return template(6, table=shared.table, metric=shared.metric, nexthops=(FOREIGN,))


def test_a_route_that_begins_with_anothers_leg_is_ours_by_claim(bench: Bench) -> None:
    old, new = template(6, nexthops=(A,)), template(6, nexthops=(B,), mtu=1400)
    bench.create(routes(old, PREFIX6))
    bench.netns.ip(f"-6 route append {PREFIX6} via fe80::f dev v1 proto static")
    assert bench.update(old, new, PREFIX6).ok
    assert "proto static" in bench.show(PREFIX6)[0], "the kernel shows the first leg's protocol"
    assert bench.tagged() == [], "and our leg is invisible to a filtered dump"
    held = claim(route(new, PREFIX6), Provenance.CREATED, foreign_nexthops=("via fe80::f dev v1",))
    assert bench.is_there(new, PREFIX6, claims=[held])
    # The other program's leg goes: ours is the route again, and the claim does no harm.
    bench.netns.ip(f"-6 route del {PREFIX6} via fe80::f dev v1 proto static")
    assert bench.is_there(new, PREFIX6, claims=[held])


def test_a_claim_beside_anothers_legs_is_no_claim_on_them(bench: Bench) -> None:
    wanted = template(6, nexthops=(A,))
    held = claim(
        route(wanted, PREFIX6),
        Provenance.CREATED,
        foreign_nexthops=("via fe80::f dev v1",),
        protocol=TAG,
    )
    bench.netns.ip(f"-6 route add {PREFIX6} via fe80::f dev v1 proto static")
    seen = bench.observe(routes(wanted, PREFIX6), claims=[held])
    assert seen.own == set()
    ((left,),) = seen.foreign.values()
    assert left.holder == "protocol static"
    assert ownership.split(ROUTE, [left], held, "") == ([], [left])
    assert bench.create(routes(wanted, PREFIX6)).failures[0].exists


def test_a_leg_that_is_declared_by_now_is_no_longer_kept_out(bench: Bench) -> None:
    both = template(6, nexthops=(A, FOREIGN))
    held = claim(
        route(template(6, nexthops=(A,)), PREFIX6),
        Provenance.CREATED,
        foreign_nexthops=("via fe80::f dev v1",),
    )
    bench.create(routes(both, PREFIX6))
    assert bench.is_there(both, PREFIX6, claims=[held])


def test_anothers_route_beside_ours_that_is_not_merged_needs_no_claim(bench: Bench) -> None:
    old, new = template(6, nexthops=(A,)), template(6, nexthops=(B,))
    bench.create(routes(old, PREFIX6))
    bench.netns.ip(f"-6 route append {PREFIX6} dev v1 proto static")
    result = bench.update(old, new, PREFIX6)
    assert (result.ok, result.remember) == (True, {})
    assert bench.is_there(new, PREFIX6)
    assert len(bench.show(PREFIX6, "proto static")) == 1


@pytest.mark.parametrize(
    "new",
    [
        template(6, nexthops=(A,), prefsrc="2001:db8:f::1"),
        template(6, nexthops=(B, Nexthop("2001:db8:f::1", "v0"))),
        template(6, nexthops=(A, Nexthop("2001:db8:f::1", "v0"))),
        template(6, nexthops=(Nexthop("fd00::9", "gone0"),)),
    ],
)
def test_a_refused_ipv6_update_leaves_the_old_route(bench: Bench, new: RouteTemplate) -> None:
    old = template(6, nexthops=(A, C))
    bench.create(routes(old, PREFIX6))
    result = bench.update(old, new, PREFIX6)
    assert not result.ok
    assert result.failures[0].error
    assert sorted(bench.show(PREFIX6)) == [
        f"{PREFIX6} proto 72 metric 1024 pref medium",
        "nexthop via fd00::9 dev v0 weight 1",
        "nexthop via fe80::c dev v1 weight 1",
    ]


def test_many_updates_at_once(bench: Bench) -> None:
    """Each kept apart from the others: one is refused, the rest go through."""
    old, new = template(6, nexthops=(A,)), template(6, nexthops=(B, A), mtu=1400)
    prefixes = [f"2001:db8:{number:x}::/48" for number in range(1, 60)]
    bench.create(routes(old, *prefixes))
    bad = template(6, nexthops=(Nexthop("2001:db8:f::1", "v0"),))
    targets = [(prefix, bad if prefix == prefixes[30] else new) for prefix in prefixes]
    results = bench.update_all(old, targets)
    assert [prefix for prefix, one in zip(prefixes, results, strict=True) if not one.ok] == [
        prefixes[30]
    ]
    seen = bench.observe()
    assert {shared for shared, _ in map(seen.unpack, seen.own)} == {old, new}
    assert len(seen.own) == len(prefixes)
