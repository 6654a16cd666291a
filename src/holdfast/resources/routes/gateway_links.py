"""Which link a gateway is behind, for routes that do not name it.

The kernel would take the link of whatever route leads to the gateway at the moment a route is
added, a default route of another link included, and the route would stay there. So the link is
told by what is declared, and the kernel is told which it is:

1. what is declared to be on a link: static and delegated addresses, leases and PPP sessions of
   declared clients, routes without a gateway. The longest prefix that holds the gateway says it.
2. where none does: what the kernel has on links, whoever put it there. That is a fact (`on_link`),
   and until it is known the route waits.

A default route is no answer, nor is a half of one: everything is behind that.

The table of a route comes first, as a VRF's has networks of its own; then the main table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network

from holdfast.dataclass import dataclass, field
from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.route import MAIN_TABLE, ROUTE, RouteTemplate, destination, pack_key
from holdfast.resources import registry
from holdfast.resources.facts import Address, Lease
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site, site_of
from holdfast.resources.spec.values import Network

# 0.0.0.0/1 and 128.0.0.0/1 together are a default route that leaves another one in its place.
LEAST_LENGTH = 2


@dataclass(slots=True)
class OnLink:
    """What is declared to be on links, of one routing table."""

    # Prefix as `pack_key` has it -> links, in the order declared.
    prefixes: dict[bytes, list[str]] = field(default_factory=dict)
    # Long lists of such prefixes, and the link of each.
    lists: list[tuple[list[bytes], str]] = field(default_factory=list)

    def add(self, network: Network, ifname: str) -> None:
        key = pack_key(network.network_address.packed, network.prefixlen)
        links = self.prefixes.setdefault(key, [])
        if ifname not in links:
            links.append(ifname)

    def links(self, gateway: Address) -> list[str]:
        """Those of the longest prefix that holds a gateway."""
        if not self.prefixes and not self.lists:
            return []
        for key in around(gateway):
            found = [*self.prefixes.get(key, ())]
            found += [ifname for keys, ifname in self.lists if key in keys]
            if found:
                return list(dict.fromkeys(found))
        return []


def around(gateway: Address) -> Iterator[bytes]:
    """The prefixes that hold a gateway and tell something, the longest first."""
    number, bits = int(gateway), gateway.max_prefixlen
    for length in range(bits, LEAST_LENGTH - 1, -1):
        masked = number >> (bits - length) << (bits - length)
        yield pack_key(masked.to_bytes(bits // 8, "big"), length)


def link_of(gateway: str, table: int, site: Site) -> str:
    """The kernel name of the link; "" while it is not known."""
    known = site.gateways.get((gateway, table))
    if known is None:
        known = site.gateways[gateway, table] = _link_of(ip_address(gateway), table, site)
    return known


def _link_of(gateway: Address, table: int, site: Site) -> str:
    links = _links(gateway, table, on_link(site))
    if len(links) == 1:
        return links[0]
    facts = site.facts.on_link
    seen = (*facts.get((table, gateway), ()), *facts.get((MAIN_TABLE, gateway), ()))
    if not links:
        return seen[0] if seen else ""
    # Several links are declared to have the prefix: the kernel prefers one of them.
    return next((ifname for ifname in seen if ifname in links), links[0])


def undeclared(resources: Sequence[Resource]) -> frozenset[tuple[int, Address]]:
    """What the kernel is to be asked: the gateways whose link static addresses do not tell, and
    the routing tables that may. Of those that something else tells, the answer is not needed."""
    named = _named_alone(resources)
    if not named:
        return frozenset()
    site = site_of(registry.having(resources, lambda kind: kind.link or kind.static_address))
    networks: dict[int, OnLink] = {}
    for table, network, ifname in addressed(site):
        networks.setdefault(table, OnLink()).add(network, ifname)
    asked: set[tuple[int, Address]] = set()
    for table, packed in named:
        gateway = ip_address(packed)
        if len(_links(gateway, table, networks)) != 1:
            asked |= {(table, gateway), (MAIN_TABLE, gateway)}
    return frozenset(asked)


def _named_alone(resources: Iterable[Resource]) -> set[tuple[int, bytes]]:
    """The gateways that routes name without an interface, each with its table."""
    found: set[tuple[int, bytes]] = set()
    for resource in resources:
        asked = registry.kind(resource.kind).lone_gateways
        if asked is not None:
            found.update(asked(resource))
    return found


def _links(gateway: Address, table: int, networks: Mapping[int, OnLink]) -> list[str]:
    """Those that are declared to have a gateway, for routes of a table."""
    own = networks[table].links(gateway) if table in networks else []
    return own or (networks[MAIN_TABLE].links(gateway) if MAIN_TABLE in networks else [])


def on_link(site: Site) -> dict[int, OnLink]:
    """By routing table."""
    if not site.on_link:
        site.on_link[MAIN_TABLE] = OnLink()
        for table, found, ifname in _declared(site):
            if isinstance(found, list):
                site.on_link.setdefault(table, OnLink()).lists.append((found, ifname))
            elif found.prefixlen >= LEAST_LENGTH:
                site.on_link.setdefault(table, OnLink()).add(found, ifname)
    return site.on_link


def addressed(site: Site) -> Iterator[tuple[int, Network, str]]:
    """The networks of static addresses: routing table, prefix, link."""
    for resource in site.static_addresses:
        ifname = site.ifnames.get(resource.spec.interface)
        network: Network = resource.spec.address.network
        # A gateway is never the address itself.
        if ifname is not None and network.prefixlen < network.max_prefixlen:
            yield site.vrf_tables.get(ifname, MAIN_TABLE), network, ifname


def _declared(site: Site) -> Iterator[tuple[int, Network | list[bytes], str]]:
    yield from addressed(site)
    yield from _learned(site)
    for name, resources in site.by_kind.items():
        kind = registry.kind(name)
        if kind.static_address:
            continue
        for resource in resources:
            if kind.on_link is not None:
                yield from kind.on_link(resource, site)
            elif ADDRESS.name in kind.emits or ROUTE.name in kind.emits:
                for intent in kind.intents(resource, site):
                    yield from _made(intent, site)


def _learned(site: Site) -> Iterator[tuple[int, Network, str]]:
    """What providers gave to links whose clients are declared."""
    for resource in site.having(lambda kind: kind.lease):
        asked = registry.kind(resource.kind).lease
        ifname, lease = asked(resource, site) if asked is not None else ("", None)
        if isinstance(lease, Lease):
            table = site.vrf_tables.get(ifname, MAIN_TABLE)
            yield from ((table, network, ifname) for network in _given(lease))


def _given(lease: Lease) -> Iterator[Network]:
    for address in lease.addresses:
        if address.network.prefixlen < address.max_prefixlen:
            yield address.network
    if lease.gateway is not None:
        yield ip_network(lease.gateway)


def _made(intent: Intent | BulkIntent | Waiting, site: Site) -> Iterator[tuple[int, Network, str]]:
    if isinstance(intent, BulkIntent):
        ifname = only_link(intent.batch.template, site)
        for key in intent.batch.keys if ifname else ():
            yield intent.batch.template.table, ip_network(destination(key)), ifname
    elif isinstance(intent, Intent) and intent.artifact.key.kind == ADDRESS.name:
        fields = intent.artifact.fields
        network = ip_network(f"{fields['address']}/{fields['prefix_length']}", strict=False)
        if network.prefixlen < network.max_prefixlen:
            ifname = str(fields["dev"])
            yield site.vrf_tables.get(ifname, MAIN_TABLE), network, ifname


def only_link(template: RouteTemplate, site: Site) -> str:
    """The link of routes that lead to nothing but a link; "" of others."""
    hops = template.nexthops
    return site.device(hops[0].dev) if len(hops) == 1 and not hops[0].gateway else ""
