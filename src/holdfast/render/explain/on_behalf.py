"""What is not Holdfast's own and still there because of it: what the kernel makes for an address of
ours, and what a DHCP client or pppd that we run brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_interface, ip_network

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.route import ROUTE, parse_nexthop
from holdfast.engine.observed import Sighting
from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.facts import Facts, Lease, LinkAddress
from holdfast.resources.locate import declarations
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site, site_of
from holdfast.resources.wan.dhcpcd import FAMILIES
from holdfast.runtime.load import Loaded

# By which the programs that we run for it say who made a route.
_DHCP, _KERNEL, _BOOT = "protocol dhcp", "protocol kernel", "protocol boot"
_ADVERTISED = ("protocol ra", "protocol kernel_ra")


def made_for(
    paths: Paths, loaded: Loaded, key: Key, sightings: Sequence[Sighting]
) -> dict[str, list[Sighting]]:
    """Who made it, and for which resource ("" where that is not known), and which of those that
    were seen: each link has a route to fe80::/64, and only some of them are ours."""
    if key.kind not in _TOLD:
        return {"": [*sightings]}
    facts = read_facts(paths, ())
    found: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        found.setdefault(who_made(loaded, facts, key, [sighting]), []).append(sighting)
    return found


def who_made(loaded: Loaded, facts: Facts, key: Key, sightings: Sequence[Sighting]) -> str:
    """The same of an address or a route, by what is known."""
    telling = _Telling(loaded, facts, site_of(loaded.router.resources, facts))
    told = _TOLD[key.kind]
    return next((said for sighting in sightings if (said := told(telling, key, sighting))), "")


class _Telling:
    def __init__(self, loaded: Loaded, facts: Facts, site: Site) -> None:
        self._loaded, self._facts, self._site = loaded, facts, site

    def address(self, key: Key, seen: Sighting) -> str:
        text, _, dev = key.name.partition(" dev ")
        return self._of_address(ip_interface(text), dev, seen.holder)

    def route(self, key: Key, seen: Sighting) -> str:
        network = ip_network(key.name.split()[0])
        hops = seen.artifact.fields.get("nexthops")
        for text in hops if isinstance(hops, tuple | list) else ():
            dev = parse_nexthop(str(text)).dev
            said = self._of_route(str(network), network.version, dev, seen)
            if said:
                return said
        return ""

    def _of_route(self, prefix: str, version: int, dev: str, seen: Sighting) -> str:
        if seen.holder in _ADVERTISED:
            return self._advertised(dev)
        if seen.holder == _DHCP:
            return self._client(dev, version)
        if seen.holder == _BOOT and self._session(dev) is not None:
            return f"pppd made it, for {self._site.links[dev].id}"
        if seen.holder != _KERNEL:
            return ""
        for address in self._addresses(dev):
            if str(address.network) == prefix:
                whose = self._owner(address, dev) or self._of_address(address, dev, "")
                return (
                    f"the kernel made it, as address {address} is on {dev}: {whose}"
                    if whose
                    else ""
                )
        return ""

    def _of_address(self, link_address: LinkAddress, dev: str, holder: str) -> str:
        lease = (self._facts.leases4 if link_address.version == 4 else self._facts.leases6).get(dev)
        if isinstance(lease, Lease) and link_address.ip in {each.ip for each in lease.addresses}:
            return self._client(dev, link_address.version)
        session = self._session(dev)
        if session is not None and link_address.ip in {each.ip for each in session.addresses}:
            return f"pppd made it, for {self._site.links[dev].id}"
        if holder in _ADVERTISED:
            return self._advertised(dev)
        if link_address.ip.is_link_local and dev in self._site.links:
            return f"the kernel made it, as every link has one, for {self._site.links[dev].id}"
        return ""

    def _addresses(self, dev: str) -> Iterator[LinkAddress]:
        yield from self._site.addresses(dev)
        yield from self._facts.addresses.get(dev, ())

    def _owner(self, link_address: LinkAddress, dev: str) -> str:
        loaded, key = self._loaded, Key(ADDRESS.name, f"{link_address} dev {dev}")
        found = declarations(loaded.router, key, loaded.facts, loaded.root)
        return ", and ".join(f"{each.owner} at {each.place}" for each in found)

    def _session(self, dev: str) -> Lease | None:
        found = self._facts.sessions.get(dev)
        return found if isinstance(found, Lease) and dev in self._site.links else None

    def _client(self, dev: str, version: int) -> str:
        for client in self._clients(dev, version):
            return f"the DHCP client of {client.id} at {client.place} made it"
        return ""

    def _clients(self, dev: str, version: int) -> Iterator[Resource]:
        for resource in self._site.of(
            *(kind for kind, family in FAMILIES.items() if family == version)
        ):
            if self._site.ifnames.get(resource.spec.interface) == dev:
                yield resource

    def _advertised(self, dev: str) -> str:
        if dev not in self._site.links:
            return ""
        link = self._site.links[dev]
        return f"router advertisements on {dev} led to it, the link of {link.id} at {link.place}"


# The kernel and the programs that we run make no others by themselves.
_TOLD = {ADDRESS.name: _Telling.address, ROUTE.name: _Telling.route}
