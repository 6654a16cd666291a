"""What resources need to know of each other: interface names and the addresses on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.address import address_key
from holdfast.resources.resource import Resource

if TYPE_CHECKING:
    from holdfast.resources.values import Address, Interface


@dataclass(frozen=True, slots=True)
class Topology:
    ifnames: dict[str, str]  # Interface resource name -> kernel name
    interfaces: dict[str, Resource]  # kernel name -> the Interface that declares it
    veths: dict[str, Resource]  # peer's kernel name -> the veth Interface that makes it
    subnets: dict[tuple[int, int], dict[int, list[tuple[str, Key]]]]  # family, length -> network
    hosts: dict[Address, list[tuple[str, Key]]]  # address -> kernel name, address artifact
    vrf_tables: dict[str, int]  # kernel name -> table of the VRF it is, or is a member of

    def ifname(self, name: str) -> str:
        """The kernel name an Interface resource stands for."""
        return self.ifnames[name]

    def device(self, name: str) -> str:
        """As `ifname`; a name that no Interface resource has is a kernel name itself."""
        return self.ifnames.get(name, name)

    def link_key(self, ifname: str) -> tuple[Key, ...]:
        """The link artifact of a kernel name, if the configuration declares it."""
        return (Key("link", ifname),) if ifname in self.interfaces else ()

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


def topology(resources: Iterable[Resource]) -> Topology:
    found = Topology({}, {}, {}, {}, {}, {})
    addresses: list[Resource] = []
    for resource in resources:
        if resource.kind == "Interface":
            found.ifnames[resource.name] = resource.spec.ifname
            found.interfaces.setdefault(resource.spec.ifname, resource)
            if resource.spec.veth is not None:
                found.veths.setdefault(resource.spec.veth.peer, resource)
        elif resource.kind in ("IPv4StaticAddress", "IPv6StaticAddress"):
            addresses.append(resource)
    _add_vrfs(found)
    for resource in addresses:
        interface: Interface = resource.spec.address
        dev = found.ifnames.get(resource.spec.interface)
        if dev is not None:
            _add(found, interface, dev)
    return found


def _add_vrfs(found: Topology) -> None:
    tables = {
        resource.name: resource.spec.vrf.table
        for resource in found.interfaces.values()
        if resource.spec.vrf is not None
    }
    for ifname, resource in found.interfaces.items():
        table = tables.get(resource.name) or tables.get(resource.spec.master)
        if table is not None:
            found.vrf_tables[ifname] = table


def _add(found: Topology, interface: Interface, dev: str) -> None:
    key = address_key(interface, dev)
    length = interface.network.prefixlen
    bits = 32 if interface.version == 4 else 128
    networks = found.subnets.setdefault((interface.version, length), {})
    network = int(interface.ip) >> (bits - length) if length else 0
    networks.setdefault(network, []).append((dev, key))
    found.hosts.setdefault(interface.ip, []).append((dev, key))
