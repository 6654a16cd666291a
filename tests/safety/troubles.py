"""What befalls the links of a router, and what others have on them, in the words of `ip`."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.safety.shared_namespace import SharedNamespace
from tests.safety.strangers import Commands

_NICS = ("nic0", "nic1")
_ADDRESSES = {
    4: (
        "192.0.2.77/24 dev nic0", "192.0.2.78/24 dev nic0", "192.0.2.99/25 dev nic0",
        "203.0.113.77/24 dev nic1", "10.1.0.77/24 dev hf0", "198.51.100.77/24 dev nic0",
    ),
    6: ("2001:db8:1::77/64 dev nic0", "2001:db8:2::77/64 dev hf0", "2001:db8:7::1/64 dev nic1"),
}  # fmt: skip
# Defaults and more specific routes that a gateway could be taken to be behind, of our identities
# too, and routes that go with what they stand on: a link, an address, a gateway's network.
_ROUTES = {
    4: (
        "default dev nic1 metric 50", "default dev nic1 table 99", "default via 10.99.0.254",
        "default via 10.99.0.254 metric 60 table 1000", "192.0.2.0/24 dev nic1 table 99",
        "10.1.0.0/16 dev nic0 metric 10", "203.0.113.254/32 dev nic0",
        "10.20.0.0/16 via 10.99.0.254", "10.77.0.0/16 dev hf0", "10.78.0.0/16 via 192.0.2.9",
        "10.79.0.0/16 via 10.99.0.254 src 192.0.2.1", "10.80.0.0/16 dev nic0 table 99",
        "10.81.0.0/16 nexthop via 192.0.2.9 nexthop via 10.99.0.9",
        "10.82.0.0/16 via 203.0.113.9 table 1000",
    ),
    6: (
        "default dev nic1 metric 50", "default dev nic1 table 99", "2001:db8:77::/48 dev hf0",
        "2001:db8:78::/48 via 2001:db8:1::9", "2001:db8:1::/64 dev nic1 table 99 metric 5",
    ),
}  # fmt: skip
_RULES = ("priority 50 table 99", "priority 60 from 10.0.0.0/8 table 1000")
_NEIGHBOURS = (
    "192.0.2.9 dev nic0",
    "192.0.2.66 dev nic0",
    "203.0.113.9 dev nic1",
    "10.1.0.9 dev hf0",
)

_pick = st.sampled_from


def _lines(version: int, *lines: str) -> st.SearchStrategy[Commands]:
    return st.just((version, lines))


def _either(kind: str, words: dict[int, tuple[str, ...]], more: str) -> st.SearchStrategy[Commands]:
    """Twice as often there as gone."""
    made = [
        (version, (f"{kind} {verb} {one}{more if verb != 'del' else ''}",))
        for version, some in words.items()
        for one in some
        for verb in (("append", "add") if kind == "route" else ("replace", "add")) + ("del",)
    ]
    return _pick(made)


links: st.SearchStrategy[Commands] = st.one_of(
    *(_lines(4, f"link set {dev} {way}") for dev in (*_NICS, "hf0") for way in ("down", "up")),
    *(_lines(4, f"link set {dev} down", f"link set {dev} up") for dev in (*_NICS, "hf0")),
    *(_lines(4, f"link set {dev} {way}") for dev in ("far0", "far1") for way in ("down", "up")),
    *(_lines(4, f"link set {dev} mtu {mtu}") for dev in _NICS for mtu in (1500, 1400, 1200)),
    *(_lines(4, f"link set {dev} address 02:00:00:00:00:7{n}") for n, dev in enumerate(_NICS)),
    _lines(
        4,
        "link del nic1",
        "link add nic1 type veth peer name far1",
        "link set nic1 up",
        "link set far1 up",
    ),
    _lines(4, "link del hf0"),
    _lines(4, "link del hf0", "link add hf0 type bridge", "link set hf0 up"),
    _lines(4, "link set hf0 mtu 1450"),
    _lines(4, "link add top0 link nic0 type macvlan", "link set top0 up"),
    _lines(4, "link add top0 link nic0 type macvlan", "addr add 10.77.7.1/24 dev top0"),
    _lines(4, "link del top0"),
    _lines(4, "link set far1 master hf0"),
    _lines(4, "link set far1 nomaster"),
)
troubles: st.SearchStrategy[Commands] = st.one_of(
    links,
    _either("route", _ROUTES, " proto 4"),
    _either("route", {4: _ROUTES[4]}, " proto 186"),
    _pick(
        [(6, (f"addr {verb} {one} nodad",)) for one in _ADDRESSES[6] for verb in ("add", "replace")]
    ),
    _pick([(4, (f"addr {verb} {one}",)) for one in _ADDRESSES[4] for verb in ("add", "del")]),
    _pick([(4, (f"rule {verb} {one} protocol 4",)) for one in _RULES for verb in ("add", "del")]),
    _pick(
        [
            (4, (f"neigh replace {one} lladdr 02:00:00:00:00:09 nud permanent",))
            for one in _NEIGHBOURS
        ]
    ),
    # What is ours may be taken from us.
    _lines(4, "addr del 192.0.2.1/24 dev nic0"),
    _lines(4, "route del 10.20.0.0/16"),
    _lines(4, "route flush table 1000"),
)

# What is there of nobody else, on links that a trial may touch.
NEW: tuple[Commands, ...] = (
    (4, ("addr add 10.66.0.1/24 dev nic0",)),
    (4, ("addr add 192.0.2.66/24 dev nic0",)),
    (4, ("route add 10.66.0.0/16 dev nic0 proto 4 metric 66",)),
    (4, ("route add 10.66.0.0/16 via 192.0.2.66 proto 4 metric 66",)),
    (4, ("route add 10.66.0.0/16 dev hf0 proto 4 metric 67",)),
    (4, ("neigh add 192.0.2.66 dev nic0 lladdr 02:00:00:00:00:66 nud permanent",)),
    (6, ("addr add 2001:db8:66::1/64 dev nic1 nodad",)),
)


def leave(world: SharedNamespace) -> None:
    """All that others made here is gone, and the links are as they were."""
    world.others("link del top0", "link set far1 nomaster", "link set hf0 up")
    for dev in (*_NICS, "far0", "far1"):
        world.others(f"link set {dev} up")
    for _ in range(3):  # as many as may stand beside each other
        world.others(*(f"rule del {one} protocol 4" for one in _RULES))
    for family in (4, 6):
        for protocol in ("4", "186"):
            world.others(f"route flush table all proto {protocol}", version=family)
    for item in world.theirs(world.look())["address"]:
        dev, text, length = map(str, item.where)
        if not text.startswith(("10.99.0.", "2001:db8:99:")):
            version = 6 if ":" in text else 4
            world.others(f"addr del {text}/{length} dev {dev}", version=version)
    world.others(*(f"neigh del {one}" for one in _NEIGHBOURS))
