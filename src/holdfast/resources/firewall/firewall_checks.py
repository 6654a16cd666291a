"""Zones, policies and exposed services that do not go together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from ipaddress import IPv4Address

from holdfast.config.document import Location
from holdfast.resources.firewall.expose_service import ExposeService
from holdfast.resources.firewall.firewall_policy import FirewallPolicy, unsaid_zones
from holdfast.resources.firewall.reach import Reach
from holdfast.resources.firewall.source_nat import IPv4SourceNAT
from holdfast.resources.firewall.zone import Zone
from holdfast.resources.nft_text import ifname_trouble
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import LINK, references

Finding = tuple[Resource, Fault]
_HERE = "firewall.firewall_checks"  # of the kinds that name it, interfaces stand in nftables rules


def check(site: Site) -> Iterator[Finding]:
    yield from _names(site)
    zones = {zone.name: zone for zone in site.of(Zone)}
    yield from _shared_links(zones.values())
    yield from _policies(site.of(FirewallPolicy), set(zones))
    yield from _services(site, zones)
    yield from _nat(site.of(IPv4SourceNAT))
    for resource in site.of(IPv4SourceNAT):
        yield from _unanswered(resource, site)


def _names(site: Site) -> Iterator[Finding]:
    for resource in site.having(lambda kind: kind.cross_checks == _HERE):
        for location, asked, name in references(resource.spec):
            trouble = ifname_trouble(site.ifnames.get(name, "")) if asked == LINK else ""
            if trouble:
                yield resource, Fault(location, trouble)


def _shared_links(zones: Iterable[Resource]) -> Iterator[Finding]:
    seen: dict[str, Resource] = {}
    for zone in zones:
        for index, name in enumerate(zone.spec.interfaces):
            first = seen.setdefault(name, zone)
            if first is not zone:
                yield zone, Fault(("interfaces", index), f"{name} is also in {first}")


def _policies(policies: list[Resource], zones: set[str]) -> Iterator[Finding]:
    for policy in policies:
        for location, message in unsaid_zones(policy, zones):
            yield policy, Fault(location, message)


def _services(site: Site, zones: Mapping[str, Resource]) -> Iterator[Finding]:
    taken: dict[Hashable, Resource] = {}
    hairpins: dict[Hashable, Resource] = {}
    reach: dict[int, Reach] = {}
    filtered = bool(site.of(FirewallPolicy))
    for resource in site.of(ExposeService):
        spec: ExposeService = resource.spec
        zone = zones.get(spec.from_zone)
        if zone is None:
            continue  # said as a dangling reference
        via = spec.via_interface
        if via is not None and via not in zone.spec.interfaces:
            yield resource, Fault(("viaInterface",), f"{via} is not in {zone}")
            continue
        yield from _same_port(resource, (via,) if via else zone.spec.interfaces, taken)
        if spec.hairpin:
            yield from _hairpin(resource, len(zones) > 1, hairpins)
        yield from _own_suffix(resource, site)
        if spec.version not in reach:
            reach[spec.version] = Reach(site, spec.version)
        yield from _unreached(resource, reach[spec.version])
        if not filtered and spec.version == 6 and spec.port == spec.external_port:
            message = "does nothing: without a FirewallPolicy all connections are let through"
            yield resource, Fault((), message, warning=True)


def _own_suffix(resource: Resource, site: Site) -> Iterator[Finding]:
    spec: ExposeService = resource.spec
    if not spec.suffix:
        return
    from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress  # few need it

    for own in site.of(IPv6DelegatedAddress):
        if own.spec.address_suffix == spec.internal_address:
            message = (
                f"{spec.internal_address} is the end of the router's own address by {own}: open a"
                " port of the router under `routerAccess.other` of the FirewallPolicy"
            )
            yield resource, Fault(("internalAddress",), message)
            return


def _unreached(resource: Resource, reach: Reach) -> Iterator[Finding]:
    host = resource.spec.internal_address
    if not resource.spec.suffix and not reach.holds(host):
        message = f"{host} is in no network that is declared, and no route leads there"
        yield resource, Fault(("internalAddress",), message, warning=True)


def _same_port(
    resource: Resource, links: Iterable[str], taken: dict[Hashable, Resource]
) -> Iterator[Finding]:
    spec: ExposeService = resource.spec
    host = spec.internal_address if spec.version == 6 else None
    for link in links:
        at = (link, spec.family, host, spec.protocol, spec.external_port)
        first = taken.setdefault(at, resource)
        if first is not resource:
            port = f"{spec.protocol} port {spec.external_port}"
            of = f" of {host}" if host else ""
            yield resource, Fault(("externalPort",), f"{port}{of} on {link} is also for {first}")
            return


def _hairpin(
    resource: Resource, clients: bool, hairpins: dict[Hashable, Resource]
) -> Iterator[Finding]:
    spec: ExposeService = resource.spec
    if not clients:
        message = "there is no other Zone; declare the one that the clients are in"
        yield resource, Fault(("hairpin",), message)
    if spec.version == 6:
        return
    first = hairpins.setdefault((spec.protocol, spec.external_port), resource)
    if first is not resource:
        message = f"from inside it cannot be told from {first}, which has the same port"
        yield resource, Fault(("hairpin",), message)


def _nat(resources: Iterable[Resource]) -> Iterator[Finding]:
    seen: dict[Hashable, Resource] = {}
    for resource in resources:
        location: Location
        for index, cidr in enumerate(resource.spec.source_cidrs):
            location = ("sourceCIDRs", index)
            first = seen.setdefault((resource.spec.outbound_interface, cidr), resource)
            if first is not resource:
                yield resource, Fault(location, f"{cidr} is also translated by {first}")


def _unanswered(resource: Resource, site: Site) -> Iterator[Finding]:
    """Addresses on the link outside that nobody there would find, so that no answer comes back.
    Others are for the provider to send here."""
    translation = resource.spec.translation
    link = site.ifnames.get(resource.spec.outbound_interface, "")
    on_link = [address for address in site.addresses(link) if link and address.version == 4]
    found: list[tuple[Location, IPv4Address]] = []
    if translation.address is not None:
        found.append((("translation", "address"), translation.address))
    for index, address in enumerate(translation.addresses or ()):
        found.append((("translation", "addresses", index), address))
    for location, address in found:
        if address not in site.hosts and any(
            address in ipv4_interface.network for ipv4_interface in on_link
        ):
            message = (
                f"is no address of the router, so nobody on {resource.spec.outbound_interface}"
                f" answers for {address}: declare it there, as an IPv4StaticAddress {address}/32"
            )
            yield resource, Fault(location, message, warning=True)
