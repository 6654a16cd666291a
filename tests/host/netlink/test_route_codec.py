"""The bytes of a route. The hexadecimal forms were read back from Linux 6.18."""

from __future__ import annotations

import struct

import pytest

from holdfast.engine.kinds.route import (
    Nexthop,
    RouteTemplate,
    expand,
    pack_key,
    parse_nexthop,
    template,
    template_of,
)
from holdfast.host.netlink import attributes
from holdfast.host.netlink.routes.route_codec import (
    Leg,
    OddTemplate,
    created,
    deleted,
    packed_address,
)
from holdfast.host.netlink.routes.route_decode import Reader, keys_without_metric, select, settle

LINKS = {1: "lo", 3: "v0", 5: "v1"}
INDEXES = {name: index for index, name in LINKS.items()}


def key(prefix: str) -> bytes:
    address, _, length = prefix.partition("/")
    return pack_key(packed_address(address), int(length))


def body(shared: RouteTemplate, prefix: str) -> bytes:
    legs = [Leg(nexthop, INDEXES[nexthop.dev]) for nexthop in shared.nexthops]
    return created(shared, legs, 72).bodies([key(prefix)])[0]


def attrs(*pairs: tuple[int, str]) -> bytes:
    return b"".join(attributes.attribute(kind, bytes.fromhex(value)) for kind, value in pairs)


TRAILER = ((12, "00" * 32), (20, "00"))
GATEWAY6 = "fd000000000000000000000000000009"

DUMPED = [
    pytest.param(
        template(4, nexthops=(Nexthop("10.0.0.9", "v0"),)),
        "198.51.100.0/24",
        "02180000fe48000100000000",
        attrs((15, "fe000000"), (1, "c6336400"), (5, "0a000009"), (4, "03000000")),
        id="gateway",
    ),
    pytest.param(
        template(4, nexthops=(Nexthop(dev="v0"),)),
        "198.51.101.0/24",
        "02180000fe48fd0100000000",
        attrs((15, "fe000000"), (1, "c6336500"), (4, "03000000")),
        id="device-only",
    ),
    pytest.param(
        template(4, metric=7, prefsrc="10.0.0.2", mtu=1400, nexthops=(Nexthop("10.0.0.9", "v0"),)),
        "0.0.0.0/0",
        "02000000fe48000100000000",
        attrs(
            (15, "fe000000"),
            (6, "07000000"),
            (8, "0800020078050000"),
            (7, "0a000002"),
            (5, "0a000009"),
            (4, "03000000"),
        ),
        id="default-with-everything",
    ),
    pytest.param(
        template(4, table=1000, kind="prohibit"),
        "198.51.105.0/24",
        "02180000fc48000800000000",
        attrs((15, "e8030000"), (1, "c6336900")),
        id="prohibit-in-high-table",
    ),
    pytest.param(
        template(4, nexthops=(Nexthop("10.0.0.9", "v0", onlink=True), Nexthop("fe80::9", "v1", 4))),
        "198.51.111.0/25",
        "02190000fe48000100000000",
        attrs(
            (15, "fe000000"),
            (1, "c6336f00"),
            (
                9,
                "1000040003000000080005000a000009"
                "2000000305000000160012000a00fe8000000000000000000000000000090000",
            ),
        ),
        id="ecmp-onlink-and-via-inet6",
    ),
    pytest.param(
        template(6, prefsrc="fd00::1", mtu=1400, nexthops=(Nexthop("fd00::9", "v0"),)),
        "2001:db8:7::/48",
        "0a300000fe48000100000000",
        attrs(
            (15, "fe000000"),
            (1, "20010db8000700000000000000000000"),
            (7, "fd000000000000000000000000000001"),
            (8, "0800020078050000"),
            (6, "00040000"),
            (5, GATEWAY6),
            (4, "03000000"),
            *TRAILER,
        ),
        id="ipv6-gateway",
    ),
    pytest.param(
        template(6, kind="blackhole"),
        "::/0",
        "0a000000fe48000600000000",
        attrs((15, "fe000000"), (6, "00040000"), (4, "01000000"), *TRAILER),
        id="ipv6-blackhole-default",
    ),
]


@pytest.mark.parametrize(("shared", "prefix", "head", "tail"), DUMPED)
def test_a_body_is_what_the_kernel_dumps(
    shared: RouteTemplate, prefix: str, head: str, tail: bytes
) -> None:
    assert body(shared, prefix) == bytes.fromhex(head) + tail


@pytest.mark.parametrize(("shared", "prefix", "head", "tail"), DUMPED)
def test_reading_a_body_gives_template_and_key_back(
    shared: RouteTemplate, prefix: str, head: str, tail: bytes
) -> None:
    assert Reader(LINKS).read(bytes.fromhex(head) + tail) == (shared, key(prefix))


@pytest.mark.parametrize(("shared", "prefix", "head", "tail"), DUMPED)
def test_an_artifact_gives_template_and_key_back(
    shared: RouteTemplate, prefix: str, head: str, tail: bytes
) -> None:
    del head, tail
    assert template_of(expand(shared, key(prefix))) == (shared, key(prefix))


def test_a_nexthop_in_words_that_are_none_is_refused() -> None:
    with pytest.raises(ValueError, match="encap"):
        parse_nexthop("via 10.0.0.9 encap mpls")


def test_settling_drops_what_is_of_the_moment_and_keeps_onlink() -> None:
    steady = body(template(4, nexthops=(Nexthop("10.0.0.9", "v0"),)), "198.51.100.0/24")
    onlink = body(
        template(4, nexthops=(Nexthop("203.0.113.9", "v0", onlink=True),)), "198.51.108.0/24"
    )
    down = [
        route[:8]
        + struct.pack("=I", struct.unpack("=I", route[8:12])[0] | 16 | 0x4000)
        + route[12:]
        for route in (steady, onlink)
    ]
    assert settle(down, 4) == [steady, onlink]


def test_settling_masks_the_flags_of_every_leg() -> None:
    legs = template(6, nexthops=(Nexthop("fd00::9", "v0", 3), Nexthop("fe80::9", "v1")))
    default, other = body(legs, "::/0"), body(legs, "2001:db8::/48")
    first, second = (bytes.fromhex("1c000002 03000000"), bytes.fromhex("1c000000 05000000"))
    assert default.count(first) == default.count(second) == 1
    down = [
        route.replace(first, bytes.fromhex("1c001102 03000000")).replace(
            second, bytes.fromhex("1c001000 05000000")
        )
        for route in (default, other)
    ]
    assert settle(down, 6) == [default, other]


def test_settling_nothing_volatile_returns_the_same_list() -> None:
    bodies = [body(template(4, kind="blackhole"), "198.51.100.0/24")]
    assert settle(bodies, 4) is bodies


def test_selecting_by_destination_finds_the_default_route_too() -> None:
    via = template(4, nexthops=(Nexthop("10.0.0.9", "v0"),))
    prefixes = ("0.0.0.0/0", "198.51.100.0/24", "198.51.100.0/25", "198.51.101.0/24")
    bodies = [body(via, prefix) for prefix in prefixes]
    assert select(bodies, 4, {key("0.0.0.0/0"), key("198.51.100.0/24")}) == bodies[:2]


def test_destinations_without_metric() -> None:
    plain = template(4, nexthops=(Nexthop("10.0.0.9", "v0"),))
    metric = template(4, metric=100, nexthops=(Nexthop("10.0.0.9", "v0"),))
    bodies = [
        body(plain, "0.0.0.0/0"),
        body(metric, "0.0.0.0/0"),
        body(metric, "198.51.100.0/24"),
        body(plain, "198.51.101.0/24"),
    ]
    assert keys_without_metric(bodies) == {key("0.0.0.0/0"), key("198.51.101.0/24")}


def test_an_ipv6_delete_names_gateway_and_link_of_one_leg() -> None:
    shared = template(6, nexthops=(Nexthop("fd00::9", "v0"), Nexthop(dev="v1")))
    legs = [Leg(nexthop, INDEXES[nexthop.dev]) for nexthop in shared.nexthops]
    gateway, device = (
        attributes.parse(shape.bodies([key("2001:db8::/48")])[0], 12)
        for shape in deleted(shared, legs, 72)
    )
    assert (gateway[5].hex(), gateway[4], gateway[6]) == (
        GATEWAY6,
        struct.pack("=I", 3),
        struct.pack("=I", 1024),
    )
    # Without a gateway the kernel takes all legs, unless it is asked in the multipath form.
    assert 4 not in device
    assert device[9] == struct.pack("=HBBI", 8, 0, 0, 5)


def test_a_route_no_template_can_say_is_read_as_odd() -> None:
    odd = bytes.fromhex("02180010fe48000100000000") + attrs(
        (15, "fe000000"), (1, "c6337800"), (30, "05000000"), (5, "0a000009"), (4, "03000000")
    )
    shared, _ = Reader(LINKS).read(odd)
    assert isinstance(shared, OddTemplate)
    assert (shared.tos, shared.nhid, shared.nexthops) == (16, 5, (Nexthop("10.0.0.9", "v0"),))
    request = deleted(shared, [Leg(shared.nexthops[0], 3)], 72)[0].bodies([key("198.51.120.0/24")])
    assert attributes.parse(request[0], 12)[30] == struct.pack("=I", 5)
    assert request[0][3] == 16
