"""Datagrams split into runs of messages."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.kinds.route import Nexthop, pack_key, template
from holdfast.host.netlink.messages import Dump, runs
from holdfast.host.netlink.routes.route_codec import DEFAULT_KEY, Leg, created
from holdfast.host.netlink.routes.route_decode import pick, select


def message(
    body: bytes, kind: int = 24, flags: int = 2, sequence: int = 7, port: int = 99
) -> bytes:
    padding = bytes(-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, port) + body + padding


def test_messages_of_one_length_are_one_run() -> None:
    bodies = [bytes((number,)) * 30 for number in range(200)]
    (run,) = runs(b"".join(map(message, bodies)))
    assert (run.length, run.kind, run.flags, run.count) == (46, 24, 2, 200)
    assert run.bodies() == bodies
    assert run.end == 200 * 48


def test_one_flag_on_one_message_is_not_overlooked() -> None:
    data = message(b"a" * 8) * 50 + message(b"a" * 8, flags=0x12) + message(b"a" * 8) * 50
    assert [(run.flags, run.count) for run in runs(data)] == [(2, 50), (0x12, 1), (2, 50)]


def test_the_end_of_a_dump_is_a_run_of_its_own() -> None:
    # As long as the messages before it, so that only the kind tells.
    data = message(bytes(4)) * 3 + message(bytes(4), kind=3)
    assert [(run.kind, run.count) for run in runs(data)] == [(24, 3), (3, 1)]


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(1, 3)), min_size=1, max_size=30))
def test_every_message_is_found(parts: list[tuple[bytes, int]]) -> None:
    data = b"".join(message(body, kind=kind) for body, kind in parts)
    found = list(runs(data))
    assert Dump(found).bodies() == [body for body, _ in parts]
    assert [run.kind for run in found for _ in range(run.count)] == [kind for _, kind in parts]
    assert len(Dump(found)) == len(parts)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.data())
def test_what_was_cut_is_an_error(bodies: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(map(message, bodies))
    whole = {0}
    for body in bodies:
        at = max(whole) + 16 + len(body)
        whole |= set(range(at, at + -len(body) % 4 + 1))  # the padding of the last may be missing
    keep = draw.draw(st.integers(0, len(data) - 1))
    if keep and keep in whole:
        return
    with pytest.raises(struct.error):
        list(runs(data[:keep]))


def test_a_block_is_the_requests_one_after_the_other() -> None:
    shared = template(4, nexthops=(Nexthop("192.0.2.2", "wan"),))
    shape = created(shared, [Leg(shared.nexthops[0], 7)], 72)
    keys = [pack_key(bytes((10, number % 256, number // 256, 0)), 24) for number in range(700)]
    keys.insert(300, DEFAULT_KEY[4])
    sequence, datagrams, sizes = 5, [], []
    for block in shape.requests(24, 0x601, keys, 500):
        sizes.append(block.count)
        datagrams.append(block.number(sequence, 0x4))
        sequence += block.count
    assert sizes == [300, 1, 199, 201]
    ends = {304, 305, 504, 705}  # the last of a block asks for an answer
    expected = [
        message(body, flags=0x605 if number in ends else 0x601, sequence=number, port=0)
        for number, body in enumerate(shape.stream(keys), 5)
    ]
    assert b"".join(datagrams) == b"".join(expected)


KEYS = st.one_of(
    st.builds(
        lambda number, length: pack_key(
            (number >> (32 - length) << (32 - length)).to_bytes(4, "big"), length
        ),
        st.integers(0, 2**32 - 1),
        st.integers(1, 32),
    ),
    st.sampled_from([DEFAULT_KEY[4], pack_key(bytes((192, 0, 2, 2)), 32)]),
)


@given(st.lists(KEYS, max_size=40, unique=True), st.sets(KEYS, max_size=4), st.integers(0, 4))
def test_few_routes_are_picked_as_if_all_were_looked_at(
    there: list[bytes], others: set[bytes], few: int
) -> None:
    ways = [(Leg(Nexthop("192.0.2.2", "v0"), 3),), (Leg(Nexthop("192.0.2.2", "v0"), 3),) * 2]
    bodies = []
    for number, key in enumerate(there):
        legs = ways[number // 7 % 2]
        shared = template(4, nexthops=tuple(leg.nexthop for leg in legs))
        bodies += created(shared, list(legs), 72).bodies([key])
    wanted = {*there[:few], *others}
    dump = Dump(list(runs(b"".join(map(message, bodies)))) if bodies else [])
    assert pick(dump, 4, wanted) == select(bodies, 4, wanted)
