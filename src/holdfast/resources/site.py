"""What resources need to know of each other and of the world: interface names, the addresses on
them, facts, and where files stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.address import address_key
from holdfast.engine.kinds.link import link_key
from holdfast.resources import registry
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.resource import Link, Resource

if TYPE_CHECKING:
    from holdfast.resources.routes.gateway_links import OnLink
    from holdfast.resources.spec.shape import Spec
    from holdfast.resources.spec.values import Address, Interface


@dataclass(frozen=True, slots=True)
class Site:
    facts: Facts = NOTHING_KNOWN
    root: str = ""  # what `--root` puts before every path
    by_kind: dict[str, list[Resource]] = field(default_factory=dict)
    named: dict[tuple[str, str], Resource] = field(default_factory=dict)  # kind, name
    ifnames: dict[str, str] = field(
        default_factory=dict
    )  # name of a link's resource -> kernel name
    interfaces: dict[str, Resource] = field(default_factory=dict)  # kernel name -> Interface
    links: dict[str, Resource] = field(default_factory=dict)  # kernel name -> any link kind
    static_addresses: list[Resource] = field(default_factory=list)
    # Peer's kernel name -> the veth Interface that makes it.
    veths: dict[str, Resource] = field(default_factory=dict)
    # Family, prefix length -> network -> kernel name and address artifact.
    subnets: dict[tuple[int, int], dict[int, list[tuple[str, Key]]]] = field(default_factory=dict)
    # Address -> kernel name, address artifact.
    hosts: dict[Address, list[tuple[str, Key]]] = field(default_factory=dict)
    # Kernel name -> table of the VRF it is, or is a member of.
    vrf_tables: dict[str, int] = field(default_factory=dict)
    # Made by `routes.gateway_links` once they are asked for: what is declared to be on links, by
    # routing table; and the links of gateways, by gateway and table.
    on_link: dict[int, OnLink] = field(default_factory=dict)
    gateways: dict[tuple[str, int], str] = field(default_factory=dict)
    # By `routes.nexthops`: the addresses that a gateway needs, by gateway and link.
    covers: dict[tuple[str, str], tuple[Key, ...]] = field(default_factory=dict)

    # By `routes.route_checks`: what is declared to be on each link.
    reached: list[Any] = field(default_factory=list)

    def of(self, *kinds: type[Spec]) -> list[Resource]:
        """All resources of these kinds, kind by kind."""
        return [resource for kind in kinds for resource in self.by_kind.get(kind.__name__, ())]

    def having(self, asked: registry.Asked) -> list[Resource]:
        """All resources of the kinds that have a property, kind by kind."""
        return [
            resource
            for name, resources in self.by_kind.items()
            if asked(registry.kind(name))
            for resource in resources
        ]

    def get(self, kind: type[Spec], name: str) -> Resource:
        """A resource that is referred to; references must have been checked."""
        return self.named[kind.__name__, name]

    def find(self, kind: type[Spec], name: str | None) -> Resource | None:
        """As `get`, where nothing was checked yet or nothing may be referred to."""
        return self.named.get((kind.__name__, name or ""))

    def under(self, path: str) -> str:
        """An absolute path as programs have to be told it."""
        return self.root + path

    def addresses(self, ifname: str) -> Iterator[Interface]:
        """The static addresses declared for a link, in the order declared."""
        for resource in self.static_addresses:
            if self.ifnames.get(resource.spec.interface) == ifname:
                yield resource.spec.address

    def is_primary(self, dev: str, interface: Interface) -> bool:
        """Whether it is the first of several IPv4 addresses declared in one subnet of a link: the
        one that packets are sent from."""
        if interface.version != 4:
            return False
        length = interface.network.prefixlen
        network = int(interface.ip) >> (32 - length) if length else 0
        alike = self.subnets.get((4, length), {}).get(network, [])
        here = [key for link, key in alike if link == dev]
        return len(here) > 1 and here[0] == address_key(interface, dev)

    def ifname(self, name: str) -> str:
        """The kernel name that a resource of a link kind stands for."""
        return self.ifnames[name]

    def device(self, name: str) -> str:
        """As `ifname`; a name that no resource has is a kernel name itself."""
        return self.ifnames.get(name, name)

    def link_key(self, ifname: str) -> tuple[Key, ...]:
        """The link artifact of a kernel name, if the configuration declares it."""
        return (link_key(ifname),) if ifname in self.links else ()

    def covering(self, gateway: Address, ifname: str) -> Iterator[Key]:
        """Declared addresses whose subnet holds a gateway, one of each subnet.

        `ifname` "": on any link.
        """
        bits = 32 if gateway.version == 4 else 128
        for (family, length), networks in self.subnets.items():
            if family == gateway.version:
                network = int(gateway) >> (bits - length) if length else 0
                for dev, key in networks.get(network, ()):
                    if ifname in ("", dev):
                        yield key
                        break

    def holding(self, source: Address) -> Iterator[Key]:
        """The declared address artifacts for exactly this address."""
        for _dev, key in self.hosts.get(source, ()):
            yield key


def ifname_of(resource: Resource) -> str:
    """The kernel name of the link that a resource stands for; "" of one that stands for none."""
    link = registry.kind(resource.kind).link
    return link.ifname(resource) if link is not None else ""


def site_of(resources: Iterable[Resource], facts: Facts = NOTHING_KNOWN, root: str = "") -> Site:
    found = Site(facts, root)
    for resource in resources:
        found.by_kind.setdefault(resource.kind, []).append(resource)
        found.named.setdefault((resource.kind, resource.name), resource)
    for name, alike in found.by_kind.items():
        kind = registry.kind(name)
        if kind.link is not None:
            _add_links(found, alike, kind.link)
        if kind.static_address:
            found.static_addresses.extend(alike)
    _add_vrfs(found)
    for resource in found.static_addresses:
        interface: Interface = resource.spec.address
        dev = found.ifnames.get(resource.spec.interface)
        if dev is not None:
            _add(found, interface, dev)
    return found


def _add_links(found: Site, resources: Iterable[Resource], kind: Link) -> None:
    for resource in resources:
        ifname = kind.ifname(resource)
        found.ifnames.setdefault(resource.name, ifname)
        found.links.setdefault(ifname, resource)
        if kind.device:
            found.interfaces.setdefault(ifname, resource)
            if resource.spec.veth is not None:
                found.veths.setdefault(resource.spec.veth.peer, resource)


def _add_vrfs(found: Site) -> None:
    tables = {
        resource.name: resource.spec.vrf.table
        for resource in found.interfaces.values()
        if resource.spec.vrf is not None
    }
    for ifname, resource in found.interfaces.items():
        table = tables.get(resource.name) or tables.get(resource.spec.master)
        if table is not None:
            found.vrf_tables[ifname] = table


def _add(found: Site, interface: Interface, dev: str) -> None:
    key = address_key(interface, dev)
    length = interface.network.prefixlen
    bits = 32 if interface.version == 4 else 128
    networks = found.subnets.setdefault((interface.version, length), {})
    network = int(interface.ip) >> (bits - length) if length else 0
    networks.setdefault(network, []).append((dev, key))
    found.hosts.setdefault(interface.ip, []).append((dev, key))
