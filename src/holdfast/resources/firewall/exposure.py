"""What ExposeServices come to: which links each is reached through, and by whom from inside."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from holdfast.dataclass import dataclass
from holdfast.resources.firewall.expose_service import ExposeService
from holdfast.resources.firewall.zone import Zone, zone_links
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Network


@dataclass(frozen=True, slots=True)
class Exposure:
    resource: Resource
    spec: ExposeService
    outside: tuple[str, ...]  # kernel names of the links it is reached through
    inside: tuple[str, ...]  # those of its hairpin clients
    sources: tuple[Network, ...]  # none: all

    @property
    def translated(self) -> bool:
        """Whether packets get another destination on their way."""
        return self.spec.version == 4 or self.spec.port != self.spec.external_port

    @property
    def target(self) -> str:
        """Where its packets go, as an element of a set."""
        return f"{self.spec.internal_address} . {self.spec.protocol} . {self.spec.port}"


def outside_links(spec: ExposeService, site: Site) -> tuple[str, ...]:
    if spec.via_interface is not None:
        return (site.ifname(spec.via_interface),)
    return zone_links(site, spec.from_zone)


def inside_links(spec: ExposeService, site: Site) -> tuple[str, ...]:
    """The links of all zones but the service's own. A link in no zone may well be an untrusted
    one, such as the wire below a PPPoE session."""
    return tuple(
        link
        for zone in site.of(Zone)
        if zone.name != spec.from_zone
        for link in zone_links(site, zone.name)
    )


def exposures(site: Site) -> Iterator[Exposure]:
    inside: dict[str, tuple[str, ...]] = {}
    for resource in site.of(ExposeService):
        spec: ExposeService = resource.spec
        if spec.hairpin and spec.from_zone not in inside:
            inside[spec.from_zone] = inside_links(spec, site)
        clients = inside[spec.from_zone] if spec.hairpin else ()
        yield Exposure(resource, spec, outside_links(spec, site), clients, _merged(spec))


def _merged(spec: ExposeService) -> tuple[Network, ...]:
    """Elements of a set with intervals must not overlap."""
    if spec.version == 4:
        merged4 = (net for net in spec.sources if isinstance(net, IPv4Network))
        found: tuple[Network, ...] = tuple(collapse_addresses(merged4))
    else:
        merged6 = (net for net in spec.sources if isinstance(net, IPv6Network))
        found = tuple(collapse_addresses(merged6))
    return () if any(net.prefixlen == 0 for net in found) else found
