"""Routes on the running kernel: created, seen again byte by byte, deleted, and never others'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine.claim import Provenance
from holdfast.engine.kinds.route import (
    MAIN_TABLE,
    Nexthop,
    RouteTemplate,
    batch,
    pack_key,
    template,
)
from holdfast.engine.plan import Operation, Verb
from tests.host.netlink.route_bench import Bench, claim, key, route, routes
from tests.namespace import Namespace

VIA = (Nexthop("10.0.0.9", "v0"),)
VIA6 = (Nexthop("fd00::9", "v0"),)


@pytest.fixture
def bench(netns: Namespace) -> Iterator[Bench]:
    with Bench(netns) as bench:
        yield bench


SHAPES = {
    "gateway": template(4, nexthops=VIA),
    "device-only": template(4, nexthops=(Nexthop(dev="v0"),)),
    "loopback": template(4, nexthops=(Nexthop(dev="lo"),)),
    "blackhole": template(4, kind="blackhole"),
    "unreachable": template(4, kind="unreachable", metric=5),
    "prohibit": template(4, kind="prohibit", table=1000),
    "ecmp": template(4, nexthops=(Nexthop("10.0.0.9", "v0", 3), Nexthop("10.1.0.9", "v1", 256))),
    "ecmp-devices": template(
        4, mtu=1300, nexthops=(Nexthop(dev="v0"), Nexthop(dev="v1", weight=9))
    ),
    "prefsrc": template(4, prefsrc="10.0.0.2", nexthops=VIA),
    "mtu": template(4, mtu=1400, nexthops=VIA),
    "high-table": template(4, table=70000, metric=42, mtu=1400, prefsrc="10.0.0.2", nexthops=VIA),
    "onlink": template(4, nexthops=(Nexthop("203.0.113.9", "v0", onlink=True),)),
    "ecmp-onlink": template(
        4, nexthops=(Nexthop("203.0.113.9", "v0", 2, onlink=True), Nexthop("10.1.0.9", "v1"))
    ),
    "via-inet6": template(4, nexthops=(Nexthop("fe80::9", "v0"),)),
    "ecmp-via-inet6": template(
        4, nexthops=(Nexthop("fe80::9", "v0", 2), Nexthop("10.1.0.9", "v1"))
    ),
    "gateway6": template(6, nexthops=VIA6),
    "device-only6": template(6, nexthops=(Nexthop(dev="v0"),)),
    "link-local6": template(6, nexthops=(Nexthop("fe80::9", "v0"),)),
    "blackhole6": template(6, kind="blackhole"),
    "unreachable6": template(6, kind="unreachable", metric=5),
    "prohibit6": template(6, kind="prohibit", table=1000),
    "ecmp6": template(6, nexthops=(Nexthop("fd00::9", "v0", 3), Nexthop("fe80::9", "v1", 256))),
    "prefsrc6": template(6, prefsrc="fd00::1", nexthops=VIA6),
    "mtu6": template(6, mtu=1400, nexthops=VIA6),
    "ecmp-mtu6": template(
        6,
        mtu=1400,
        prefsrc="fd00::1",
        nexthops=(Nexthop("fd01::9", "v1"), Nexthop("fd00::9", "v0")),
    ),
    "high-table6": template(6, table=70000, metric=42, nexthops=VIA6),
    "onlink6": template(6, nexthops=(Nexthop("2001:db8:ffff::9", "v0", onlink=True),)),
}
PREFIXES = {
    4: ("0.0.0.0/0", "198.51.100.0/24", "203.0.113.128/25", "192.0.2.7/32"),
    6: ("::/0", "2001:db8::/32", "2001:db8:0:8000::/49", "2001:db8::7/128"),
}


def _said(shared: RouteTemplate) -> dict[str, Any]:
    """What `ip -j` should say of every route of a template."""
    said: dict[str, Any] = {"protocol": "72", "type": shared.type, "flags": []}
    if shared.metric:
        said["metric"] = shared.metric
    if shared.prefsrc:
        said["prefsrc"] = shared.prefsrc
    if shared.mtu:
        said["metrics"] = [{"mtu": shared.mtu}]
    if len(shared.nexthops) == 1:
        nexthop = shared.nexthops[0]
        if nexthop.gateway:
            said.update(_gateway_said(shared, nexthop))
        said["flags"] = ["onlink"] if nexthop.onlink else []
    for nexthop in shared.nexthops if len(shared.nexthops) > 1 else ():
        leg = {"weight": nexthop.weight, "flags": ["onlink"] if nexthop.onlink else []}
        leg["dev"] = nexthop.dev or ("v0" if nexthop.gateway in ("10.0.0.9", "fd00::9") else "v1")
        leg.update(_gateway_said(shared, nexthop) if nexthop.gateway else {})
        said.setdefault("nexthops", []).append(leg)
    return said


def _gateway_said(shared: RouteTemplate, nexthop: Nexthop) -> dict[str, Any]:
    if shared.family == 4 and ":" in nexthop.gateway:
        return {"via": {"family": "inet6", "host": nexthop.gateway}}
    return {"gateway": nexthop.gateway}


@pytest.mark.parametrize("name", SHAPES)
def test_round_trip(bench: Bench, name: str) -> None:
    shared = SHAPES[name]
    prefixes = PREFIXES[shared.family]
    wanted = routes(shared, *prefixes)
    assert bench.create(wanted).done == 4
    seen = bench.observe(wanted)
    assert sorted(seen.own) == sorted(seen.pack(wanted) or ())
    assert not seen.foreign

    said = [one for one in bench.ip_json(shared.family, shared.table) if one["protocol"] == "72"]
    assert len(said) == 4
    for one in said:
        assert _said(shared).items() <= one.items()

    shown = {seen.unpack(body) for body in seen.own}
    assert {one[1] for one in shown} == {key(prefix) for prefix in prefixes}
    assert bench.delete(next(iter(shown))[0], *prefixes).done == 4
    assert bench.tagged() == []
    assert not [
        one for one in bench.ip_json(shared.family, shared.table) if one["protocol"] == "72"
    ]


@pytest.mark.parametrize("name", ["gateway", "ecmp", "onlink", "ecmp-onlink", "gateway6", "ecmp6"])
def test_a_link_without_carrier_changes_nothing(bench: Bench, name: str) -> None:
    shared = SHAPES[name]
    bench.create(routes(shared, *PREFIXES[shared.family]))
    bench.netns.ip("link set v0p down")
    bench.netns.ip("link set v1p down")
    bench.wait_for_linkdown(shared.family)
    assert bench.is_there(shared, *PREFIXES[shared.family])


def test_a_missing_link_packs_to_nothing_and_fails_by_name(bench: Bench) -> None:
    wanted = routes(template(4, nexthops=(Nexthop("10.0.0.9", "gone0"),)), "198.51.100.0/24")
    assert bench.observe(wanted).pack(wanted) is None
    result = bench.create(wanted)
    assert (result.done, bench.progress) == (0, 1)
    assert [str(one.key) for one in result.failures] == ["route 198.51.100.0/24"]
    assert result.failures[0].error == "link gone0 does not exist"
    assert not result.failures[0].exists


def test_a_link_made_after_the_observation_is_used(bench: Bench) -> None:
    shared = template(4, nexthops=(Nexthop(dev="late0"),))
    bench.observe(routes(shared, "198.51.100.0/24"))
    bench.netns.veth("late0", "late0p")
    assert bench.create(routes(shared, "198.51.100.0/24")).ok
    assert bench.is_there(shared, "198.51.100.0/24")


@pytest.mark.parametrize("nexthop", [Nexthop("10.0.0.9"), Nexthop("fd00::9")])
def test_the_link_of_a_gateway_is_never_left_to_the_kernel(bench: Bench, nexthop: Nexthop) -> None:
    family, prefix = (6, "2001:db8::/48") if ":" in nexthop.gateway else (4, "198.51.100.0/24")
    wanted = routes(template(family, nexthops=(nexthop,)), prefix)
    assert bench.observe(wanted).pack(wanted) is None
    result = bench.create(wanted)
    assert "is not known" in result.failures[0].error
    assert bench.tagged() == []


def test_what_leads_to_a_gateway_is_made_before_what_goes_by_it(bench: Bench) -> None:
    far = template(4, nexthops=(Nexthop("203.0.113.9", "v0"),))
    near = template(4, nexthops=(Nexthop(dev="v0"),))
    wanted = routes(far, "198.51.100.0/24"), routes(near, "203.0.113.0/24")
    made = [Operation(Verb.CREATE, one, ("Test/one",), "test") for one in wanted]
    results = bench.driver.apply(made, lambda _count: None)
    assert [result.failures for result in results] == [(), ()]
    assert len(bench.tagged()) == 2


def test_a_refusal_says_which_link_and_gateway_it_is_about(bench: Bench) -> None:
    lost = routes(template(4, nexthops=(Nexthop("203.0.113.9", "v0"),)), "198.51.100.0/24")
    (failure,) = bench.create(lost).failures
    assert "; nothing on v0 leads to 203.0.113.9: give it an address" in failure.error
    bench.netns.ip("link set v1 down")
    down = routes(template(4, nexthops=(Nexthop("10.1.0.9", "v1"),)), "198.51.100.0/24")
    (failure,) = bench.create(down).failures
    assert "; v1 is down: say `adminUp: true`" in failure.error


def test_a_route_outlives_the_address_that_made_its_gateway_reachable(bench: Bench) -> None:
    shared = template(4, nexthops=(Nexthop("10.9.0.9", "v0"),))
    bench.netns.ip("addr add 10.9.0.1/24 dev v0")
    assert bench.create(routes(shared, "198.51.100.0/24")).ok
    bench.netns.ip("addr del 10.9.0.1/24 dev v0")
    assert bench.show("198.51.100.0/24"), "the kernel keeps it, the link has other addresses"
    assert bench.is_there(shared, "198.51.100.0/24")


def test_ipv6_multipath_over_a_bare_device_is_refused_in_the_kernels_words(bench: Bench) -> None:
    shared = template(6, nexthops=(Nexthop("fd00::9", "v0"), Nexthop(dev="v1")))
    result = bench.create(routes(shared, "2001:db8::/48"))
    assert "Device only routes can not be added for IPv6" in result.failures[0].error
    assert bench.tagged() == []


def test_create_does_not_take_over(bench: Bench) -> None:
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static")
    bench.netns.ip("-6 route add 2001:db8::/48 via fd00::8 proto bird")
    for shared, prefix in ((template(4, nexthops=VIA), "198.51.100.0/24"),
                           (template(6, nexthops=VIA6), "2001:db8::/48")):  # fmt: skip
        before = bench.show(prefix)
        result = bench.create(routes(shared, prefix))
        assert [one.exists for one in result.failures] == [True]
        assert "EEXIST" in result.failures[0].error
        assert bench.show(prefix) == before
    assert bench.tagged() == []


def test_foreign_holders_are_reported_at_wanted_identities_only(bench: Bench) -> None:
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static mtu 1300")
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static metric 5")
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static tos 0x10")
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static table 100")
    bench.netns.ip("route add 198.51.101.0/24 via 10.0.0.8 proto bird")
    bench.netns.ip("route add 0.0.0.0/0 via 10.0.0.8 proto 99")
    bench.netns.ip("-6 route add ::/0 via fd00::8 proto ra")
    wanted = routes(template(4, nexthops=VIA), "198.51.100.0/24", "0.0.0.0/0", "192.0.2.0/24")
    wanted6 = routes(template(6, nexthops=VIA6), "::/0", "2001:db8::/48")
    seen = bench.observe(wanted, wanted6)
    assert seen.own == set()
    assert {
        identity: [(one.artifact.key.name, one.tag, one.holder) for one in found]
        for identity, found in seen.foreign.items()
    } == {
        wanted.scope + key("198.51.100.0/24"): [("198.51.100.0/24", "", "protocol static")],
        wanted.scope + key("0.0.0.0/0"): [("0.0.0.0/0", "", "protocol openr")],
        wanted6.scope + key("::/0"): [("::/0", "", "protocol ra")],
    }
    (held,) = seen.foreign[wanted.scope + key("198.51.100.0/24")]
    assert held.artifact.fields == {
        "destination": "198.51.100.0/24",
        "table": MAIN_TABLE,
        "metric": 0,
        "type": "unicast",
        "nexthops": ("via 10.0.0.8 dev v0",),
        "prefsrc": "",
        "mtu": 1300,
        "protocol": 4,
    }


def test_a_wanted_route_that_is_there_asks_for_no_holders(bench: Bench) -> None:
    shared = template(4, nexthops=VIA)
    bench.create(routes(shared, "198.51.100.0/24"))
    bench.netns.ip("route append 198.51.100.0/24 via 10.0.0.8 proto static")
    assert not bench.observe(routes(shared, "198.51.100.0/24")).foreign


def test_a_claimed_route_of_another_protocol_is_reported_and_deleted_as_such(bench: Bench) -> None:
    shared = template(4, nexthops=(Nexthop("10.0.0.8", "v0"),))
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto static")
    bench.netns.ip("route append 198.51.100.0/24 via 10.0.0.7 proto static")
    adopted = claim(route(shared, "198.51.100.0/24"), Provenance.ADOPTED, protocol=4)
    seen = bench.observe(claims=[adopted])
    ((held,),) = seen.foreign.values()
    assert held.artifact.fields["nexthops"] == ("via 10.0.0.8 dev v0",)
    assert bench.apply(Verb.DELETE, held.artifact, held.artifact).ok
    assert bench.show("198.51.100.0/24") == ["198.51.100.0/24 via 10.0.0.7 dev v0 proto static"]


def test_of_drifted_aliases_one_of_the_claimed_protocol_is_reported(bench: Bench) -> None:
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.6 proto bird")
    bench.netns.ip("route append 198.51.100.0/24 via 10.0.0.7 proto static")
    bench.netns.ip("route append 198.51.100.0/24 via 10.0.0.8 proto static")
    adopted = claim(
        route(template(4, nexthops=VIA), "198.51.100.0/24"), Provenance.ADOPTED, protocol=4
    )
    ((held,),) = bench.observe(claims=[adopted]).foreign.values()
    assert held.artifact.fields["nexthops"] == ("via 10.0.0.7 dev v0",)


def test_tagged_routes_of_all_tables_are_seen_without_being_wanted(bench: Bench) -> None:
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.9 proto 72 table 4000")
    bench.netns.ip("-6 route add unreachable 2001:db8::/48 proto 72 table 9 metric 3")
    bench.netns.ip("route add 198.51.101.0/24 via 10.0.0.9 proto static table 4000")
    assert [str(name) for name, _ in bench.tagged()] == [
        "route 198.51.100.0/24 table 4000",
        "route 2001:db8::/48 table 9 metric 3",
    ]


@pytest.mark.parametrize("family", [4, 6])
def test_a_guarded_delete_leaves_what_is_not_ours(bench: Bench, family: int) -> None:
    via, prefix = (VIA, "198.51.100.0/24") if family == 4 else (VIA6, "2001:db8::/48")
    bench.netns.ip(f"-{family} route add {prefix} via {via[0].gateway} proto static metric 7")
    result = bench.delete(template(family, metric=7, nexthops=via), prefix)
    assert (result.done, result.failures) == (1, ())
    assert len(bench.show(prefix)) == 1


def test_deleting_metric_0_does_not_hit_another_metric_of_ours(bench: Bench) -> None:
    plain, other = template(4, nexthops=VIA), template(4, metric=100, nexthops=VIA)
    bench.create(routes(other, "198.51.100.0/24", "0.0.0.0/0"))
    bench.create(routes(plain, "198.51.101.0/24"))
    result = bench.delete(plain, "198.51.100.0/24", "0.0.0.0/0", "198.51.101.0/24")
    assert (result.done, bench.progress) == (3, 6)
    assert bench.is_there(other, "198.51.100.0/24", "0.0.0.0/0")


def test_deleting_one_of_our_aliases_takes_the_right_one(bench: Bench) -> None:
    bench.netns.ip("route add 198.51.100.0/24 via 10.0.0.8 proto 72")
    bench.netns.ip("route append 198.51.100.0/24 via 10.0.0.9 proto 72")
    bench.netns.ip(
        "route append 198.51.100.0/24 proto 72 nexthop via 10.0.0.9 nexthop via 10.1.0.9"
    )
    assert bench.delete(template(4, nexthops=VIA), "198.51.100.0/24").ok
    assert bench.show("198.51.100.0/24") == [
        "198.51.100.0/24 via 10.0.0.8 dev v0 proto 72",
        "198.51.100.0/24 proto 72",
        "nexthop via 10.0.0.9 dev v0 weight 1",
        "nexthop via 10.1.0.9 dev v1 weight 1",
    ]


def test_what_went_with_its_link_is_deleted_already(bench: Bench) -> None:
    bench.create(routes(template(4, nexthops=VIA), "198.51.100.0/24"))
    bench.netns.ip("link del v0")
    assert bench.delete(template(4, nexthops=VIA), "198.51.100.0/24").done == 1


def test_an_ipv6_delete_leaves_others_legs_and_says_so(bench: Bench) -> None:
    bench.create(routes(template(6, nexthops=VIA6), "2001:db8::/48"))
    bench.netns.ip("-6 route append 2001:db8::/48 via fd01::8 proto static")
    ((merged, packed),) = (bench.observe().unpack(body) for body in bench.observe().own)
    assert [str(leg) for leg in merged.nexthops] == ["via fd00::9 dev v0", "via fd01::8 dev v1"]
    result = bench.apply(Verb.DELETE, batch(merged, [packed]))
    assert result.notes == (
        "leg via fd01::8 dev v1 of 2001:db8::/48 is another program's (kernel guard); left alone",
    )
    assert bench.show("2001:db8::/48") == [
        "2001:db8::/48 via fd01::8 dev v1 proto static metric 1024 pref medium"
    ]


def test_an_ipv6_device_route_is_deleted_without_the_routes_beside_it(bench: Bench) -> None:
    bench.netns.ip("-6 route add 2001:db8::/48 dev v0 proto 72")
    bench.netns.ip("-6 route append 2001:db8::/48 via fd00::8 dev v0 proto static")
    bench.netns.ip("-6 route append 2001:db8::/48 via fd01::8 dev v1 proto static")
    assert bench.delete(template(6, nexthops=(Nexthop(dev="v0"),)), "2001:db8::/48").ok
    assert [line.split(" dev")[0] for line in bench.show("2001:db8::/48")[1:]] == [
        "nexthop via fd00::8",
        "nexthop via fd01::8",
    ]


@pytest.mark.parametrize("family", [4, 6])
def test_a_route_over_a_nexthop_object_or_with_tos_can_be_deleted(
    bench: Bench, family: int
) -> None:
    via, prefix = (VIA, "198.51.100.0/24") if family == 4 else (VIA6, "2001:db8::/48")
    bench.netns.ip(f"nexthop add id 5 via {via[0].gateway} dev v0")
    bench.netns.ip(f"-{family} route add {prefix} nhid 5 proto 72")
    if family == 4:
        bench.netns.ip(f"route add {prefix} via 10.0.0.9 tos 0x10 proto 72")
    else:
        bench.netns.ip(f"-6 route add {prefix} from 2001:db8:f::/48 via fd00::9 proto 72")
    seen = bench.observe()
    assert len(seen.own) == 2
    for body in seen.own:
        shared, packed = seen.unpack(body)
        assert bench.apply(Verb.DELETE, batch(shared, [packed])).ok
    assert bench.show(prefix) == []


def test_many_routes_with_failures_in_the_middle(bench: Bench) -> None:
    shared = template(4, nexthops=VIA)
    keys = [pack_key((0x14000000 + number * 256).to_bytes(4, "big"), 24) for number in range(20000)]
    taken = (0, 999, 1000, 7777, 12345, 19999)
    bench.create(batch(template(4, kind="blackhole"), [keys[number] for number in taken]))
    host_bits = pack_key(bytes((20, 30, 40, 1)), 24)
    wanted = batch(shared, [*keys[:15000], host_bits, *keys[15000:]])
    bench.progress = 0
    result = bench.create(wanted)
    assert (result.done, bench.progress) == (19994, 20001)
    assert {one.key.name: one.exists for one in result.failures} == {
        **{route_name(keys[number]): True for number in taken},
        "20.30.40.1/24": False,
    }
    assert "Invalid prefix for given prefix length" in next(
        one.error for one in result.failures if not one.exists
    )
    seen = bench.observe(batch(shared, keys))
    packed = seen.pack(batch(shared, keys)) or []
    assert [number for number, body in enumerate(packed) if body not in seen.own] == list(taken)
    assert bench.delete_all(batch(shared, keys)).done == 20000
    assert len(bench.observe().own) == len(taken), "the blackholes are of another type"


def route_name(packed: bytes) -> str:
    return ".".join(str(byte) for byte in packed[1:]) + f"/{packed[0]}"


def test_packing_the_same_batch_again_gives_the_same(bench: Bench) -> None:
    wanted = routes(template(4, nexthops=VIA), *PREFIXES[4])
    seen = bench.observe(wanted)
    assert seen.pack(wanted) == seen.pack(wanted)


def test_a_single_artifact_is_created_as_it_says(bench: Bench) -> None:
    artifact = route(template(4, table=300, nexthops=VIA), "198.51.100.0/24")
    assert bench.create(artifact).ok
    assert bench.tagged() == [(artifact.key, artifact.fields)]
