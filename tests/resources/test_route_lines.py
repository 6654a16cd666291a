"""The fast reading of routes against the exact one, and against `ip` itself."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.kinds import route as routes
from holdfast.resources.routes import route_lines
from holdfast.resources.routes.route_line import Defaults, LineError, parse_line
from tests.namespace import Namespace

PREFIXES = st.one_of(
    st.builds(
        lambda value, length: str(ip_network((value, length), strict=False)),
        st.integers(0, 2**32 - 1),
        st.integers(0, 32),
    ),
    st.builds(
        lambda value, length: str(ip_network((value, length), strict=False)),
        st.integers(0, 2**128 - 1),
        st.integers(0, 128),
    ),
    st.sampled_from(["10.0.0.0/8", "2001:db8::/32", "default", "10.1.2.3", "10.1.0.0/08"]),
    st.sampled_from(["10.0.0.1/8", "10.0.0.0/33", "300.0.0.0/8", "::1/64", "10.0.0.0/8/9", "x"]),
)
RESTS = st.sampled_from(
    [
        "",
        " via 192.0.2.1",
        " via 192.0.2.1 dev lan",
        " via 2001:db8::1",
        " via fe80::1 dev lan metric 5",
        " dev lan table 7",
        "\tdev lan",
        "  dev   lan ",
        " dev lan # why",
        " dev lan\r",
        " nexthop via 192.0.2.1 nexthop via 192.0.2.2 weight 2",
        " via",
        " proto static",
    ]
)
LINES = st.one_of(
    st.builds(
        lambda kind, prefix, rest: f"{kind}{prefix}{rest}",
        st.sampled_from(["", "", "", "blackhole ", "unicast ", " ", "#", "# "]),
        PREFIXES,
        RESTS,
    ),
    st.sampled_from(["", " ", "# comment", "#10.0.0.0/8 via 192.0.2.1", "blackhole"]),
)


@given(st.lists(LINES, max_size=12), st.sampled_from([Defaults(), Defaults(interface="wan")]))
def test_fast_and_exact_agree(lines: list[str], defaults: Defaults) -> None:
    fast = route_lines.read_lines([lines], defaults)
    exact, repeats, faults = route_lines.read_exactly([lines], defaults)
    if fast is not None:
        assert faults == []
        assert fast.repeats == repeats
        assert {key: set(keys) for key, keys in fast.groups.items()} == {
            key: set(keys) for key, keys in exact.items()
        }
    one_by_one = set()
    for line in lines:
        try:
            parsed = parse_line(line, defaults)
        except LineError:
            assert faults
            assert fast is None
        else:
            one_by_one |= {parsed} if parsed else set()
    if not faults:
        assert one_by_one == {(shared, key) for shared, keys in exact.items() for key in keys}


def test_lines_of_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_lines, "_CHUNK", 50)
    text = "".join(f"10.{i}.0.0/16 via 192.0.2.{i % 2 + 1}\n" for i in range(100))
    read = route_lines.read_lines(route_lines.chunks(text), Defaults())
    assert read is not None
    assert sorted(map(len, read.groups.values())) == [50, 50]
    exact = route_lines.read_exactly(route_lines.chunks(text + "oops\n"), Defaults())
    assert [(fault.line, fault.column) for fault in exact.faults] == [(100, 1)]


SPELLINGS = st.sampled_from(
    [
        "2001:db8:abc::/48", "2001:0DB8:0ABC:0::/48", "2001:db8:0abc:0:0:0:0.0.0.0/48",
        "::/0", "default via 2001:db8::1", "0::/0", "default", "0.0.0.0/0", "0.0.0.0/00",
        "::102:300/120", "::1.2.3.0/120", "1.2.3.0/24", "10.1.2.3", "10.1.2.3/32",
    ]
)  # fmt: skip


@given(
    st.lists(st.one_of(st.builds("{}{}".format, PREFIXES, RESTS), SPELLINGS), max_size=30),
    st.integers(1, 5),
)
def test_few_routes_are_found_where_reading_all_lines_finds_them(
    lines: list[str], few: int
) -> None:
    defaults, found = Defaults(interface="wan"), []
    good: list[str] = []
    for line in lines:
        try:
            parsed = parse_line(line, defaults)
        except LineError:
            continue
        assert parsed is not None
        found.append((len(good), (routes.scope(parsed[0]), parsed[1])))
        good.append(line)
    wanted = {identity for _, identity in found[:few]}
    asked = route_lines.lines_of([good[:7], good[7:]], defaults, wanted)
    assert list(asked) == [each for each in found if each[1] in wanted]


def test_lines_that_are_about_others_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"10.{i // 256}.{i % 256}.0/24" for i in range(2000)]
    read: list[str] = []
    exactly = route_lines._Reader.read

    def counted(reader: route_lines._Reader, line: str) -> object:
        read.append(line)
        return exactly(reader, line)

    monkeypatch.setattr(route_lines._Reader, "read", counted)
    parsed = parse_line("10.3.7.0/24", Defaults(interface="wan"))
    assert parsed is not None
    wanted = {(routes.scope(parsed[0]), parsed[1])}
    found = list(route_lines.lines_of([lines], Defaults(interface="wan"), wanted))
    assert [number for number, _ in found] == [3 * 256 + 7]
    assert read == ["10.3.7.0/24"]


GOOD_LINES = [
    "10.0.0.0/8 via 192.0.2.2",
    "10.0.1.0/24 via 192.0.2.2 dev near0 metric 5 mtu 1400 src 192.0.2.1",
    "10.1.0.0/16 dev near0 table 4000000000",
    "10.1.2.3 via 192.0.2.3",
    "10.2.0.0/16 via 198.51.100.1 dev near0 onlink",
    "10.3.0.0/16 nexthop via 192.0.2.2 weight 3 nexthop via 192.0.2.3 dev near0",
    "10.4.0.0/16 via inet6 fe80::2 dev near0",
    "blackhole 10.5.0.0/16 metric 4294967295",
    "unreachable default table default",
    "prohibit 10.6.0.0/16",
    "unicast 10.7.0.0/16 via 192.0.2.2 mtu 65520",
    "default via 192.0.2.2",
    "2001:db8:1::/48 via 2001:db8::2",
    "default via fe80::2 dev near0",
    "2001:db8:2::/48 nexthop via 2001:db8::2 nexthop via 2001:db8::3 weight 256",
]


@pytest.mark.programs
def test_ip_takes_the_same_lines(netns: Namespace) -> None:
    netns.veth("near0", "far0", "192.0.2.1/24")
    netns.ip("address add 2001:db8::1/64 dev near0 nodad")
    for line in GOOD_LINES:
        parsed = parse_line(line, Defaults())
        assert parsed is not None
        family = "-6" if parsed[0].family == 6 else "-4"
        netns.ip(f"{family} route add {line}")
        seen = netns.ip_json(f"{family} route show table {parsed[0].table}")
        want = routes.destination(parsed[1])
        want = "default" if want.endswith("/0") else want.removesuffix("/32")
        (route,) = [
            route
            for route in seen
            if route["dst"] == want and route.get("metric", 0) == parsed[0].metric
        ]
        metrics = route.get("metrics", [{}])[0]
        assert metrics.get("mtu", 0) == parsed[0].mtu
        assert route.get("prefsrc", "") == parsed[0].prefsrc


def test_a_full_table_takes_the_fast_path() -> None:
    text = "".join(
        f"{10 + (i >> 16)}.{(i >> 8) & 255}.{i & 255}.0/24 via 192.0.2.{1 + i % 3}\n"
        for i in range(100_000)
    )
    read = route_lines.read_lines(route_lines.chunks(text), Defaults())
    assert read is not None
    assert len(read.groups) == 3
    assert sum(map(len, read.groups.values())) == 100_000
