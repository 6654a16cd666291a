"""What is declared before and after the pass that is killed, over every artifact kind."""

from __future__ import annotations

from typing import NamedTuple

_MANY = ", ".join(f"10.64.{n >> 6}.{(n & 63) * 4}/30" for n in range(1100))
FULL = {
    "Interface/nic": "{ifname: nic0, mtu: 1400, alias: uplink}",
    # With a MAC of its own: one that followed its ports would cost it its neighbours each time.
    "Interface/br": (
        "{ifname: hf0, type: bridge, adminUp: true, alias: lan, mac: 02:00:00:00:00:f0}"
    ),
    "Interface/ve": (
        "{ifname: hf1, type: veth, veth: {peer: hf1p}, adminUp: true, mtu: 1400, master: br}"
    ),
    "Interface/vp": "{ifname: hf1p, adminUp: true}",
    "IPv4StaticAddress/one": "{interface: br, address: 192.0.2.1/24}",
    "IPv4StaticAddress/two": "{interface: br, address: 192.0.2.2/24}",
    "IPv6StaticAddress/six": "{interface: br, address: 2001:db8:1::1/64}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: br}",
    "IPv4Route/ecmp": (
        "{destination: 10.2.0.0/16,"
        " nexthops: [{gateway: 192.0.2.254, interface: br}, {gateway: 10.99.0.254}]}"
    ),
    "IPv6Route/one": "{destination: 2001:db8:a::/48, gateway: 2001:db8:1::fe, interface: br}",
    "IPv6Route/ecmp": (
        "{destination: 2001:db8:b::/48, nexthops: [{gateway: 2001:db8:1::fe, interface: br},"
        " {gateway: 2001:db8:1::fd, interface: br, weight: 2}]}"
    ),
    # More than one datagram's worth.
    "RouteList/many": f"{{gateway: 192.0.2.254, interface: br, routes: [{_MANY}]}}",
    "RouteList/few": (
        "{gateway: 192.0.2.254, interface: br,"
        " routes: [10.4.0.0/16 metric 5, blackhole 10.5.0.0/16 table 100]}"
    ),
    "RoutingRule/four": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "RoutingRule/six": "{priority: 1000, from: 2001:db8:1::/64, table: 100}",
    "Neighbour/one": "{interface: br, address: 192.0.2.9, mac: 02:00:00:00:00:09}",
    "Sysctl/filter": "{key: net.ipv4.conf.nic0.rp_filter, value: 1, persistent: true}",
    "Hostname/one": "{hostname: one}",
}
CHANGED = FULL | {
    "Interface/nic": "{ifname: nic0, mtu: 1390, alias: up}",
    "Interface/br": (
        "{ifname: hf0, type: bridge, adminUp: true, alias: home, mac: 02:00:00:00:00:f0}"
    ),
    "Interface/ve": (
        "{ifname: hf1, type: veth, veth: {peer: hf1p}, adminUp: true, mtu: 1380, master: br}"
    ),
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.253, interface: br, mtu: 1300}",
    "IPv4Route/ecmp": (
        "{destination: 10.2.0.0/16, nexthops: [{gateway: 192.0.2.254, interface: br, weight: 3},"
        " {gateway: 10.99.0.254}]}"
    ),
    "IPv6Route/one": "{destination: 2001:db8:a::/48, gateway: 2001:db8:1::fd, interface: br}",
    "IPv6Route/ecmp": (
        "{destination: 2001:db8:b::/48, nexthops: [{gateway: 2001:db8:1::fc, interface: br},"
        " {gateway: 2001:db8:1::fe, interface: br}]}"
    ),
    "RouteList/many": f"{{gateway: 192.0.2.253, interface: br, routes: [{_MANY}]}}",
    "RouteList/few": (
        "{gateway: 192.0.2.254, interface: br,"
        " routes: [10.4.0.0/16 metric 5, blackhole 10.5.0.0/16 table 100,"
        " blackhole 10.6.0.0/16 table 200]}"
    ),
    "RoutingRule/four": "{priority: 1000, from: 192.0.2.0/24, table: 101}",
    "Neighbour/one": "{interface: br, address: 192.0.2.9, mac: 02:00:00:00:00:19}",
    "Sysctl/filter": "{key: net.ipv4.conf.nic0.rp_filter, value: 2, persistent: true}",
    "Hostname/one": "{hostname: two}",
}
REPLACED = FULL | {
    "Interface/ve": "{ifname: hf1, type: veth, veth: {peer: hf1q}, adminUp: true, master: br}",
    "Interface/vp": "{ifname: hf1q, adminUp: true}",
    "IPv6StaticAddress/six": "{interface: br, address: 2001:db8:1::1/48}",
}
GONE = {
    "Interface/br": "{ifname: hf0, state: absent}",
    "Interface/ve": "{ifname: hf1, state: absent}",
}

FOREIGN_FILE = "/etc/sysctl.d/90-holdfast-filter.conf"
# Exclusive, as `add` is: what we made already stays, and only what is missing becomes theirs.
FOREIGN_LINKS = {
    "hf0": "link add hf0 type bridge\n",
    "hf1": "link add hf1 type veth peer name other1\n",
    "hf1p": "link add hf1p type veth peer name other2\n",
    "hf1q": "link add hf1q type veth peer name other3\n",
}
FOREIGN_REST = """\
addr add 192.0.2.1/24 dev hf0
addr add 192.0.2.2/24 dev hf0
addr add 2001:db8:1::1/64 dev hf0 nodad
route add 10.1.0.0/16 via 10.99.0.253 proto static
route add 10.2.0.0/16 via 10.99.0.253 proto static
route add 10.64.0.4/30 via 10.99.0.253 proto static
route add 10.4.0.0/16 via 10.99.0.253 metric 5 proto static
route add 10.5.0.0/16 via 10.99.0.253 table 100 proto static
route add 2001:db8:a::/48 via 2001:db8:99::fd proto static
route add 2001:db8:b::/48 via 2001:db8:99::fd proto static
neigh add 192.0.2.9 dev hf0 lladdr 02:00:00:00:00:66 nud permanent
"""
# Rules of several writers stand side by side, so that these are never in the way.
FOREIGN_RULES = """\
rule add priority 1000 from 192.0.2.0/24 lookup 100 protocol static
rule add priority 1000 from 192.0.2.0/24 lookup 101 protocol static
"""
FOREIGN_RULES6 = "rule add priority 1000 from 2001:db8:1::/64 lookup 100 protocol static\n"


class Case(NamedTuple):
    """before: what was there. after: what the killed pass was about. then: what the next is."""

    before: dict[str, str]
    after: dict[str, str]
    then: dict[str, str]


CASES = {
    "create": Case({}, FULL, FULL),
    "update": Case(FULL, CHANGED, CHANGED),
    "replace": Case(FULL, REPLACED, REPLACED),
    "delete": Case(FULL, GONE, GONE),
}
# Somebody thought better of it.
UNDONE = {
    "create": Case({}, FULL, GONE),
    "update": Case(FULL, CHANGED, FULL),
    "replace": Case(FULL, REPLACED, FULL),
    "delete": Case(FULL, GONE, FULL),
}
