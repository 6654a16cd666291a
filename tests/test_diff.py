"""The diff as a library: on plain values, and never a second diff."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.diff import (
    Address,
    Key,
    Link,
    Neighbour,
    Op,
    Route,
    Rule,
    addresses,
    key,
    links,
    neighbours,
    routes,
    rules,
)
from holdfast.engine.kinds.route import route_key

OURS, THEIRS = 99, 4


def told(ops: list[Any]) -> list[tuple[str, Any]]:
    return [(op.action, op.item) for op in ops]


def test_routes_are_owned_by_their_protocol() -> None:
    kept = Route("10.0.0.0/16", gateway="192.0.2.1")
    moved = Route("10.1.0.0/16", gateway="192.0.2.1")
    new = Route("default", gateway="192.0.2.1", metric=5)
    contested = Route("10.2.0.0/16", gateway="192.0.2.1")
    gone = Route("10.3.0.0/16", gateway="192.0.2.1", dev="wan0", protocol=OURS)
    ops = routes(
        [kept, moved, new, contested],
        [
            Route("10.0.0.0/16", gateway="192.0.2.1", dev="wan0", protocol=OURS),
            Route("10.1.0.0/16", gateway="192.0.2.2", dev="wan0", protocol=OURS),
            gone,
            Route("10.2.0.0/16", gateway="192.0.2.2", dev="wan0", protocol=THEIRS),
            Route("10.4.0.0/16", gateway="192.0.2.2", dev="wan0", protocol=THEIRS),
        ],
        OURS,
    )
    assert sorted(told(ops), key=str) == sorted(
        [("update", moved), ("create", new), ("delete", gone), ("conflict", contested)], key=str
    )
    (update,) = [op for op in ops if op.action == "update"]
    assert update.changes[0].before == ("via 192.0.2.2 dev wan0",)


@pytest.mark.parametrize(
    ("diff", "here", "other", "gone"),
    [
        (links, Link("br0"), Link("br1"), Link("br2")),
        (
            addresses,
            Address("192.0.2.1/24", "a"),
            Address("2001:db8::1/64", "a"),
            Address("192.0.2.1/16", "a"),
        ),
        (
            neighbours,
            Neighbour("192.0.2.1", "a", "02:00:00:00:00:01"),
            Neighbour("192.0.2.1", "b", "02:00:00:00:00:01"),
            Neighbour("2001:db8::1", "a", "02:00:00:00:00:01"),
        ),
        (rules, Rule(10, table=5), Rule(10, table=6), Rule(10, fwmark=1, table=5)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_others_are_owned_by_what_was_applied_before(
    diff: Any, here: Any, other: Any, gone: Any
) -> None:
    assert told(diff([here, other], [here], set())) == [("create", other)]
    assert diff([here], [here, gone], set()) == [], "what merely appeared is left alone"
    assert diff([here], [here, gone], {key(here)}) == []
    assert told(diff([here], [here, gone], {key(gone)})) == [("delete", gone)]
    assert diff([here], [here], {key(gone)}) == [], "gone already"
    assert len({key(one) for one in (here, other, gone)}) == 3


def test_a_neighbour_with_another_mac() -> None:
    wanted = Neighbour("192.0.2.1", "a", "02:00:00:00:00:0A")
    seen = Neighbour("192.0.2.1", "a", "02:00:00:00:00:02")
    learned = Neighbour("192.0.2.1", "a", "02:00:00:00:00:02", permanent=False)
    assert told(neighbours([wanted], [seen], {key(seen)})) == [("update", wanted)]
    assert told(neighbours([wanted], [seen], set())) == [("conflict", wanted)]
    assert told(neighbours([wanted], [learned], set())) == [("create", wanted)]
    same = Neighbour("192.0.2.1", "a", "02:00:00:00:00:0a")
    assert neighbours([wanted], [same], set()) == []


def test_addresses_that_the_kernel_makes_do_not_count() -> None:
    own = Address("fe80::1/64", "a")
    assert addresses([], [own], {key(own)}) == []


def test_a_longer_prefix_of_an_ipv6_address_takes_another_address() -> None:
    wanted, seen = Address("2001:db8::1/64", "a"), Address("2001:db8::1/48", "a")
    assert told(addresses([wanted], [seen], {key(seen)})) == [("replace", wanted)]


def test_keys_are_those_of_the_engine() -> None:
    assert key(Route("default")) == key(Route("0.0.0.0/0")) == Key("route", "0.0.0.0/0")
    assert key(Route("2001:db8::/32", metric=1024)) == key(Route("2001:db8::/32"))
    assert key(Route("10.0.0.0/8", table=5, metric=7)) == route_key("10.0.0.0/8", 4, 5, 7)
    with pytest.raises(TypeError):
        key("10.0.0.0/8")  # type: ignore[arg-type]  # the error is what is tested


_ROUTES = st.builds(
    Route,
    st.sampled_from(["10.0.0.0/8", "10.1.0.0/16", "default", "2001:db8::/32"]),
    gateway=st.sampled_from(["192.0.2.1", "192.0.2.2"]),
    metric=st.sampled_from([0, 5]),
)


@given(
    st.lists(_ROUTES, unique_by=key),
    st.lists(
        st.tuples(_ROUTES, st.sampled_from([OURS, THEIRS])), unique_by=lambda one: key(one[0])
    ),
)
def test_what_was_carried_out_is_not_asked_for_again(
    desired: list[Route], seen: list[tuple[Route, int]]
) -> None:
    """And nothing of others was touched."""
    observed = {key(one): _made(one, protocol) for one, protocol in seen}
    after = dict(observed)
    for op in routes(desired, observed.values(), OURS):
        before = observed.get(key(op.item))
        if op.action in ("update", "delete"):
            assert before is not None
            assert before.protocol == OURS
        _carry_out(op, after)
    again = routes(desired, after.values(), OURS)
    assert {op.action for op in again} <= {"conflict"}
    theirs = {found: one for found, one in observed.items() if one.protocol == THEIRS}
    assert theirs.items() <= after.items()


def _made(one: Route, protocol: int) -> Route:
    return Route(one.destination, one.gateway, "wan0", one.metric, protocol=protocol)


def _carry_out(op: Op[Route], state: dict[Key, Route]) -> None:
    if op.action == "delete":
        del state[key(op.item)]
    elif op.action != "conflict":
        state[key(op.item)] = _made(op.item, OURS)
