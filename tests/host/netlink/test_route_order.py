"""Routes compared in the order of a dump, against comparing them as sets."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.kinds.route import Nexthop, template
from holdfast.host.netlink.messages import HEADER, Dump, Run, runs
from holdfast.host.netlink.routes import route_order
from holdfast.host.netlink.routes.route_codec import RTM_NEWROUTE, Leg, Shape, created
from holdfast.host.netlink.routes.route_order import Wanted, same

TAG = 72


def _shape(gateway: str, mtu: int = 0) -> Shape:
    hop = Nexthop(gateway, "wan")
    return created(template(4, nexthops=(hop,), mtu=mtu), [Leg(hop, 3)], TAG)


FIRST, SECOND, THIRD = _shape("192.0.2.2"), _shape("192.0.2.3"), _shape("192.0.2.4", 1400)


def _key(number: int) -> bytes:
    return bytes((24, 10, number >> 8, number & 255, 0)) if number else bytes(5)


def _dump(bodies: Iterable[bytes], at_once: int) -> Dump:
    messages = [
        HEADER.pack(16 + len(body), RTM_NEWROUTE, 2, 1, 1) + body + bytes(-len(body) % 4)
        for body in bodies
    ]
    found: list[Run] = []
    for start in range(0, len(messages), at_once):
        found += runs(b"".join(messages[start : start + at_once]))
    return Dump(found)


_NUMBERS = st.lists(st.integers(0, 400), unique=True, max_size=12)


@pytest.mark.long
@given(
    st.integers(64, 300),
    _NUMBERS,
    _NUMBERS,
    _NUMBERS,
    _NUMBERS,
    st.sampled_from([3, 7, 50, 1000]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_it_agrees_with_sets(
    count: int,
    moved: list[int],
    short: list[int],
    missing: list[int],
    extra: list[int],
    at_once: int,
    twice: bool,
) -> None:
    long = [number for number in range(count) if number not in short]
    declared = [number for number in long if number not in moved]
    declared += [number for number in moved if number in long]
    wanted = [Wanted(FIRST, [_key(n) for n in declared]), Wanted(SECOND, [_key(n) for n in short])]
    if twice:
        wanted.append(Wanted(THIRD, [_key(n) for n in range(1000, 1100)]))
    bodies = {body for one in wanted for body in one.shape.bodies(one.keys)}
    there = bodies - set(FIRST.bodies([_key(n) for n in missing]))
    there |= set(SECOND.bodies([_key(n) for n in extra]))
    # As the kernel does it: by address.
    ordered = sorted(there, key=lambda body: (body[20:28] if body[1] else b"", body))
    assert same(wanted, _dump(ordered, at_once)) == (there == bodies)


def test_few_that_stand_elsewhere_cost_no_more_than_their_datagram() -> None:
    keys = [_key(number) for number in range(1, 3000)]
    out_of_order = [*keys[:1000], keys[2500], *keys[1000:2500], *keys[2501:]]
    dump = _dump(FIRST.bodies(keys), 500)
    looked_at = []

    class Noting(route_order._Compared):
        def _take_one(self, body: bytes) -> None:
            looked_at.append(body)
            super()._take_one(body)

    compared = Noting([Wanted(FIRST, out_of_order)], set())
    assert all(map(compared.take, dump.runs))
    assert compared.is_complete()
    assert len(looked_at) <= 1500


def test_lists_in_no_order_are_given_up_on() -> None:
    keys = [_key(number) for number in range(1, 9000)]
    dump = _dump(FIRST.bodies(keys), 500)
    assert not same([Wanted(FIRST, keys[::-1])], dump)
