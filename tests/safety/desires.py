"""Random configurations over every artifact kind, as resources would declare them. The identities
are few, so that ours and others' meet."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

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
MADE = ("hf0", "hf1", "hf2")
ADDRESSES = (
    "192.0.2.1/24", "192.0.2.2/24", "192.0.2.2/25", "10.99.0.2/24",
    "2001:db8:1::1/64", "2001:db8:1::1/48", "2001:db8:1::2/64",
)  # fmt: skip
TABLES = (254, 100, 1000)
METRICS = (0, 100)
PREFIXES = {
    4: ("10.1.0.0/16", "10.2.0.0/16", "0.0.0.0/0"),
    6: ("2001:db8:a::/48", "2001:db8:b::/48", "::/0"),
}
GATEWAYS = {4: ("10.99.0.254", "10.99.0.253"), 6: ("2001:db8:99::fe", "2001:db8:99::fd")}
NEIGHBOURS = ("10.99.0.254", "192.0.2.9", "2001:db8:99::fe")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
RULES = ((4, 100), (4, 101), (6, 100))
FILES = ("/etc/one", "/etc/two")

# Rather often something is left out: cleaning up is half of the work.
maybe = st.sampled_from([True, True, False])


def nexthops(version: int) -> st.SearchStrategy[tuple[str, tuple[Nexthop, ...]]]:
    one, two = GATEWAYS[version]
    return st.sampled_from(
        [
            ("unicast", (Nexthop(one, "nic0"),)),
            ("unicast", (Nexthop(two, "nic0"),)),
            ("unicast", (Nexthop(two),)),
            ("unicast", (Nexthop("", "nic1"),)),
            ("unicast", (Nexthop("", "hf0"),)),
            ("unicast", (Nexthop(one, "nic1", onlink=True),)),
            ("unicast", (Nexthop(one, "nic0"), Nexthop(two, "nic0", 3))),
            ("unicast", (Nexthop(one, "nic0"), Nexthop(one, "nic1", onlink=True))),
            ("blackhole", ()),
            ("prohibit", ()),
        ]
    )


def _pack(prefix: str) -> bytes:
    network = ipaddress.ip_network(prefix)
    return route.pack_key(network.network_address.packed, network.prefixlen)


@st.composite
def routes(draw: st.DrawFn) -> list[BulkIntent]:
    """No identity twice: the checks of the loader see to that."""
    found = []
    chosen = draw(
        st.lists(
            st.tuples(st.sampled_from([4, 6]), st.sampled_from(TABLES), st.sampled_from(METRICS)),
            max_size=4,
            unique=True,
        )
    )
    for number, (version, table, metric) in enumerate(chosen):
        kind, legs = draw(nexthops(version))
        source = ""
        if kind == "unicast" and legs[0].dev == "nic0" and draw(st.booleans()):
            source = "10.99.0.1" if version == 4 else "2001:db8:99::1"
        shared = route.template(
            version,
            table=table,
            metric=metric,
            kind=kind,
            nexthops=legs,
            prefsrc=source,
            mtu=draw(st.sampled_from([0, 0, 1400])) if kind == "unicast" else 0,
        )
        keys = draw(st.sets(st.sampled_from(PREFIXES[version]), min_size=1))
        needed = tuple(Key("link", leg.dev) for leg in legs if leg.dev)
        batch = route.batch(shared, sorted(map(_pack, keys)))
        found.append(BulkIntent(f"RouteList/{number}", batch, "", needed))
    return found


@st.composite
def links(draw: st.DrawFn) -> list[Intent]:
    choices: list[tuple[Artifact, tuple[Key, ...]]] = []
    if draw(maybe):
        fields = {"type": "bridge", "up": True, "alias": draw(st.sampled_from(["", "lan"]))}
        choices.append((link("hf0", fields), ()))
    if draw(maybe):
        fields = {"type": "vxlan", "vni": draw(st.sampled_from([10, 11])), "port": 4789, "up": True}
        choices.append((link("hf1", fields), ()))
    if draw(maybe):
        mode = draw(st.sampled_from(["bridge", "private"]))
        fields = {"type": "macvlan", "parent": "nic0", "mode": mode}
        choices.append((link("hf2", fields), (Key("link", "nic0"),)))
    gone = draw(st.sets(st.sampled_from(MADE), max_size=1))
    found = [
        _intent(one, requires=requires) for one, requires in choices if one.key.name not in gone
    ]
    found += [_intent(link(name, {}), action=Action.DELETE) for name in sorted(gone)]
    if draw(maybe):
        values = {"mtu": draw(st.sampled_from([1400, 1500])), "up": True}
        found.append(_intent(link("nic0", values), creates=False))
    if any(one.artifact.key.name == "hf0" and one.action is Action.ENSURE for one in found):
        master = draw(st.sampled_from(["hf0", ""]))
        needed = (Key("link", "hf0"),) if master else ()
        found.append(_intent(link("nic1", {"master": master}), requires=needed, creates=False))
    return found


def _intent(
    artifact: Artifact,
    *,
    requires: tuple[Key, ...] = (),
    action: Action = Action.ENSURE,
    creates: bool = True,
) -> Intent:
    owner = f"{artifact.key.kind}/{artifact.key.name}"
    return Intent(owner, artifact, "router.yaml:1:1", action, requires, creates)


@st.composite
def on_links(draw: st.DrawFn) -> list[Intent]:
    found: dict[Key, Intent] = {}
    places = st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(LINKS))
    for text, dev in draw(st.lists(places, max_size=4, unique=True)):
        one = address(ipaddress.ip_interface(text), dev, no_prefix_route=draw(st.booleans()))
        found.setdefault(one.key, _intent(one, requires=(Key("link", dev),)))
    places = st.tuples(st.sampled_from(NEIGHBOURS), st.sampled_from(LINKS[1:]))
    for text, dev in draw(st.lists(places, max_size=2, unique=True)):
        one = neighbour(ipaddress.ip_address(text), dev, draw(st.sampled_from(MACS)))
        found[one.key] = _intent(one, requires=(Key("link", dev),))
    return list(found.values())


@st.composite
def elsewhere(draw: st.DrawFn) -> list[Intent]:
    found = []
    for version, priority in draw(st.lists(st.sampled_from(RULES), max_size=2, unique=True)):
        mark = draw(st.sampled_from([None, 7]))
        table = draw(st.sampled_from([100, 1000]))
        found.append(_intent(rule(version, priority, fwmark=mark, table=table)))
    for path in draw(st.lists(st.sampled_from(FILES), max_size=2, unique=True)):
        found.append(_intent(file(path, draw(st.sampled_from([b"a\n", b"b\n"])))))
    if draw(maybe):
        value = draw(st.sampled_from(["0", "1"]))
        found.append(_intent(sysctl("net.ipv4.conf.nic0.rp_filter", value)))
    if draw(maybe):
        found.append(_intent(hostname(draw(st.sampled_from(["one", "two"])))))
    return found


@st.composite
def configs(draw: st.DrawFn) -> Desired:
    intents: Sequence[Intent | BulkIntent] = [
        *draw(links()),
        *draw(on_links()),
        *draw(elsewhere()),
        *draw(routes()),
    ]
    return Desired(tuple(intents))


def family_of(version: int) -> socket.AddressFamily:
    return socket.AF_INET if version == 4 else socket.AF_INET6
