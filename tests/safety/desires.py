"""What may be declared, one line each, over every artifact kind. The identities are few, so that
ours and others' meet."""

from __future__ import annotations

import ipaddress

from hypothesis import strategies as st

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import route
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.neighbour import neighbour
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.kinds.rule import rule
from holdfast.engine.kinds.sysctl import sysctl

LINKS = ("nic0", "nic1", "hf0")  # hf0 is a bridge of ours, or of somebody else's
ADDRESSES = (
    "192.0.2.1/24", "192.0.2.2/24", "192.0.2.2/25", "10.99.0.2/24",
    "2001:db8:1::1/64", "2001:db8:1::1/48", "2001:db8:1::2/64",
)  # fmt: skip
TABLES = (254, 1000)
METRICS = (0, 100)
PREFIXES = {
    4: ("10.1.0.0/16", "0.0.0.0/0"),
    6: ("2001:db8:a::/48", "::/0"),
}
GATEWAYS = {4: ("10.99.0.254", "10.99.0.253"), 6: ("2001:db8:99::fe", "2001:db8:99::fd")}
NEAR = {4: "10.99.0.254", 6: "fe80::1"}
SOURCES = {4: "10.99.0.1", 6: "2001:db8:99::1"}
NEIGHBOURS = ("10.99.0.254", "192.0.2.9", "2001:db8:99::fe")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
# Not the tables of the IPv6 routes: their gateways would then be looked for there, and not found.
RULES = ((4, 100, (100, 1000)), (4, 101, (100, 1000)), (6, 100, (2000, 2001)))
FILES = ("/etc/one", "/etc/two")
WAYS = ("one", "two", "nic1", "hf0", "near", "ecmp", "ecmp-links", "blackhole",
        "prohibit", "one-source", "one-mtu")  # fmt: skip

_pick = st.sampled_from


def _line(*words: st.SearchStrategy[object] | str) -> st.SearchStrategy[str]:
    parts = [st.just(word) if isinstance(word, str) else word.map(str) for word in words]
    return st.tuples(*parts).map(" ".join)


def _routes(version: int) -> st.SearchStrategy[str]:
    prefixes = st.sets(_pick(PREFIXES[version]), min_size=1).map(lambda few: " ".join(sorted(few)))
    return _line("routes", str(version), _pick(TABLES), _pick(METRICS), _pick(WAYS), prefixes)


declarations: st.SearchStrategy[str] = st.one_of(
    _pick(
        [
            "link hf0 bridge", "link hf0 bridge lan", "link hf1 vxlan 10", "link hf1 vxlan 11",
            "link hf2 macvlan bridge", "link hf2 macvlan private", "absent hf0", "absent hf1",
            "absent hf2", "nic nic0 mtu 1400", "nic nic0 mtu 1500", "nic nic1 master hf0",
            "nic nic1 master ", "nic nic1 mtu 1200", "nic nic1 mtu 1400", "nic nic1 down",
            "nic nic1 mac 02:00:00:00:00:55", "sysctl 0", "sysctl 1", "hostname one",
            "hostname two",
        ]
    ),
    _line("address", _pick(ADDRESSES), _pick(LINKS), _pick(["", "noprefixroute"])),
    _line("neighbour", _pick(NEIGHBOURS), _pick(LINKS[1:]), _pick(MACS)),
    _line("rule", _pick(["4 100", "4 101"]), _pick(["", "7"]), _pick([100, 1000])),
    _line("rule 6 100", _pick(["", "7"]), _pick([2000, 2001])),
    _line("file", _pick(FILES), _pick(["a", "b"])),
    _routes(4),
    _routes(6),
)  # fmt: skip

Slot = tuple[object, ...]
Declared = dict[Slot, Intent | BulkIntent]


def declare(declared: Declared, text: str) -> None:
    """Add one line to a configuration; it takes the place of one that it would contradict."""
    kind, *rest = text.split(" ")
    if kind == "routes":
        one = _route_list(*rest)
        declared["routes", *rest[:3]] = one
    else:
        intent = _intent(kind, rest)
        declared[intent.artifact.key] = intent


def desired(declared: Declared) -> Desired:
    return Desired(tuple(declared.values()))


def _intent(kind: str, words: list[str]) -> Intent:
    match kind, words:
        case "link", [name, "bridge", *alias]:
            return _ensure(
                link(name, {"type": "bridge", "up": True, "alias": alias[0] if alias else ""})
            )
        case "link", [name, "vxlan", vni]:
            return _ensure(link(name, {"type": "vxlan", "vni": int(vni), "port": 4789, "up": True}))
        case "link", [name, "macvlan", mode]:
            made = link(name, {"type": "macvlan", "parent": "nic0", "mode": mode})
            return _ensure(made, Key("link", "nic0"))
        case "absent", [name]:
            return Intent(f"link/{name}", link(name, {}), "router.yaml:1:1", Action.DELETE)
        case "nic", [name, "mtu", mtu]:
            return _ensure(link(name, {"mtu": int(mtu), "up": True}), creates=False)
        case "nic", [name, "down"]:
            return _ensure(link(name, {"up": False}), creates=False)
        case "nic", [name, "mac", mac]:
            return _ensure(link(name, {"mac": mac, "up": True}), creates=False)
        case "nic", [name, "master", master]:
            needed = [Key("link", master)] if master else []
            return _ensure(link(name, {"master": master}), *needed, creates=False)
        case "sysctl", [value]:
            return _ensure(sysctl("net.ipv4.conf.nic0.rp_filter", value))
        case "hostname", [name]:
            return _ensure(hostname(name))
        case "file", [path, content]:
            return _ensure(file(path, content.encode()))
        case "address", [text, dev, flag]:
            interface = ipaddress.ip_interface(text)
            return _ensure(address(interface, dev, no_prefix_route=bool(flag)), Key("link", dev))
        case "neighbour", [text, dev, mac]:
            return _ensure(neighbour(ipaddress.ip_address(text), dev, mac), Key("link", dev))
        case "rule", [version, priority, mark, table]:
            fwmark = int(mark) if mark else None
            return _ensure(rule(int(version), int(priority), fwmark=fwmark, table=int(table)))
    raise ValueError(f"{kind} {words}")


def _ensure(artifact: Artifact, *requires: Key, creates: bool = True) -> Intent:
    owner = f"{artifact.key.kind}/{artifact.key.name}"
    return Intent(owner, artifact, "router.yaml:1:1", Action.ENSURE, requires, creates)


def nexthops(version: int, way: str) -> tuple[Nexthop, ...]:
    one, two = GATEWAYS[version]
    near = Nexthop(NEAR[version], "nic1", onlink=True)
    match way:
        case "two":
            return (Nexthop(two, "nic0"),)
        case "nic1" | "hf0":
            return (Nexthop("", way),)
        case "near":
            return (near,)
        case "ecmp":
            return (Nexthop(one, "nic0"), Nexthop(two, "nic0", 3))
        case "ecmp-links":
            return (Nexthop(one, "nic0"), near)
        case "blackhole" | "prohibit":
            return ()
    return (Nexthop(one, "nic0"),)


def _route_list(version: str, table: str, metric: str, way: str, *prefixes: str) -> BulkIntent:
    family = int(version)
    legs = nexthops(family, way)
    shared = route.template(
        family,
        table=int(table),
        metric=int(metric),
        kind=way if not legs else "unicast",
        nexthops=legs,
        prefsrc=SOURCES[family] if way == "one-source" else "",
        mtu=1400 if way == "one-mtu" else 0,
    )
    needed = tuple(Key("link", leg.dev) for leg in legs if leg.dev)
    batch = route.batch(shared, sorted(map(_pack, prefixes)))
    return BulkIntent(f"RouteList/{version}-{table}-{metric}", batch, "router.yaml:1:1", needed)


def _pack(prefix: str) -> bytes:
    network = ipaddress.ip_network(prefix)
    return route.pack_key(network.network_address.packed, network.prefixlen)
