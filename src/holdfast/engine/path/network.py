"""What decides the way of a packet, of one address family, as the kernel has it.

Links and addresses are kept as artifacts say them, so that operations of a plan can be carried out
on them; rules and routes in the form that a look-up needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.kinds.route import MAIN_TABLE, Nexthop

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

LOCAL_TABLE = 255
# Below these the kernel takes IPv4, or IPv6, off a link.
_SMALLEST_MTU = {4: 68, 6: 1280}
# What the kernel gives the route to the prefix of an address.
_PREFIX_METRIC = {4: 0, 6: 256}
_STRICT = 1  # of rp_filter; 2 is loose


@dataclass(frozen=True, slots=True)
class Rule:
    key: Key
    priority: int
    action: str  # "lookup", "goto", "nop", "prohibit", "blackhole", "unreachable"
    source: IPNetwork | None = None
    destination: IPNetwork | None = None
    iif: str = ""
    oif: str = ""
    mark: int = 0
    mask: int = 0
    table: int = 0
    target: int = 0  # goto: the priority
    suppress: int = -1  # routes of at most this prefix length do not count
    inverted: bool = False
    vrf: bool = False  # the table is that of the packet's VRF
    users: tuple[int, int] | None = None
    protocol: int = 0
    source_ports: tuple[int, int] | None = None
    destination_ports: tuple[int, int] | None = None
    unsure: bool = False  # it asks for something that is not known of a packet here


@dataclass(frozen=True, slots=True)
class Route:
    destination: IPNetwork
    table: int = MAIN_TABLE
    metric: int = 0
    type: str = "unicast"
    nexthops: tuple[Nexthop, ...] = ()
    prefsrc: str = ""
    source: IPNetwork | None = None  # IPv6: packets from there alone
    by_kernel: bool = False  # it came with an address, and goes with it

    @property
    def identity(self) -> tuple[IPNetwork, int, int]:
        return self.destination, self.table, self.metric

    def leads_over(self, dev: str) -> bool:
        return any(nexthop.dev == dev for nexthop in self.nexthops)


@dataclass(slots=True)
class Network:
    version: int
    links: dict[str, Fields] = field(default_factory=dict)
    addresses: dict[Key, Fields] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)  # in the order the kernel looks at them
    # Only those that may count for the addresses that are asked about.
    routes: list[Route] = field(default_factory=list)
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)  # address, link -> MAC
    sysctls: dict[str, str] = field(default_factory=dict)
    tunnels: dict[str, Fields] = field(default_factory=dict)  # WireGuard links, as far as known

    def copy(self) -> Network:
        return Network(
            self.version,
            dict(self.links),
            dict(self.addresses),
            list(self.rules),
            list(self.routes),
            dict(self.neighbours),
            dict(self.sysctls),
            dict(self.tunnels),
        )

    def carries(self, dev: str) -> bool:
        """Whether packets of this family leave by a link."""
        link = self.links.get(dev)
        if link is None or link.get("up") is False:
            return False
        mtu = link.get("mtu")
        if isinstance(mtu, int) and mtu < _SMALLEST_MTU[self.version]:
            return False
        return self.version == 4 or self.sysctls.get(disable_ipv6(dev)) != "1"

    def holds(self, address: IPAddress) -> bool:
        """Whether it is an address of this host."""
        return any(fields["address"] == str(address) for fields in self.addresses.values())

    def links_of(self, address: IPAddress) -> frozenset[str]:
        """Those that it is an address on."""
        found = (one["dev"] for one in self.addresses.values() if one["address"] == str(address))
        return frozenset(map(str, found))

    def filters_strictly(self, dev: str) -> bool:
        """Whether a link takes only packets that answers to would leave by it. Of what is said of
        all links and of one, the larger number counts."""
        said = (self.sysctls.get(rp_filter(name), "") for name in ("all", dev))
        return max((int(one) for one in said if one.isdecimal()), default=0) == _STRICT

    def vrf(self, dev: str) -> str:
        """The VRF that a link is in; "" where it is in none."""
        master = str(self.links.get(dev, {}).get("master") or "")
        return master if self.links.get(master, {}).get("type") == "vrf" else ""

    def vrf_table(self, dev: str) -> int:
        table = self.links.get(self.vrf(dev), {}).get("table")
        return table if isinstance(table, int) else 0

    def member_of(self, dev: str) -> str:
        """The bridge or bond that takes the packets of a link; "" where none does."""
        master = str(self.links.get(dev, {}).get("master") or "")
        return "" if self.vrf(dev) else master

    def made_for(self, fields: Fields) -> Iterator[Route]:
        """The routes that the kernel makes for an address."""
        dev, own = str(fields["dev"]), str(fields["address"])
        vrf = self.vrf_table(dev)
        leg = (Nexthop(dev=dev),)
        yield Route(ip_network(own), vrf or LOCAL_TABLE, 0, "local", leg, by_kernel=True)
        length = int(str(fields["prefix_length"]))
        if fields.get("no_prefix_route") is True or length == ip_network(own).max_prefixlen:
            return
        prefix = ip_network(f"{own}/{length}", strict=False)
        metric = _PREFIX_METRIC[self.version]
        yield Route(prefix, vrf or MAIN_TABLE, metric, nexthops=leg, prefsrc=own, by_kernel=True)


def disable_ipv6(dev: str) -> str:
    return f"net.ipv6.conf.{dev.replace('.', '/')}.disable_ipv6"


def rp_filter(dev: str) -> str:
    return f"net.ipv4.conf.{dev.replace('.', '/')}.rp_filter"


def rule_of(artifact: Artifact) -> Rule:
    """A rule as Holdfast makes one."""
    fields = artifact.fields
    action, _, target = str(fields["action"]).partition(" ")
    mark, suppress = fields["fwmark"], fields.get("suppress")
    return Rule(
        artifact.key,
        int(str(fields["priority"])),
        action,
        _prefix(str(fields["source"])),
        _prefix(str(fields["destination"])),
        str(fields["iif"]),
        str(fields["oif"]),
        mark if isinstance(mark, int) else 0,
        int(str(fields["fwmask"])) if mark is not None else 0,
        int(str(fields["table"])),
        int(target or 0),
        suppress if isinstance(suppress, int) else -1,
    )


def _prefix(text: str) -> IPNetwork | None:
    return ip_network(text, strict=False) if text else None
