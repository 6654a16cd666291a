"""Gateways that cannot be, as far as the file itself shows it. Warnings: addresses may come from
elsewhere, and the kernel has the last word."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from holdfast.config.document import Location
from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import Nexthop
from holdfast.resources.prefixes import Prefixes
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.routes import route
from holdfast.resources.routes.route import IPv4Route, IPv6Route
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Address, Network

_SHOWN = 5


def warns(resource: Resource, site: Site) -> bool:
    """Whether `check` has anything to say of one route, beside those that are declared."""
    if not site.reached:
        site.reached.append(_links(site))
    links = site.reached[0]
    return any(
        leg.gateway and (_own(ip_address(leg.gateway), site) or _off_link(leg, site, links))
        for _, leg in _legs(resource)
    )


@dataclass(frozen=True, slots=True)
class _Links:
    """What is declared to be on each link, by its kernel name: gone through once for all routes."""

    networks: dict[tuple[str, int], list[Network]]  # of its addresses, by family
    reached: dict[str, Prefixes]  # by its addresses, and by routes without a gateway
    brought: set[str]  # links whose addresses are not all declared


def check(site: Site) -> Iterator[Finding]:
    links = _links(site)
    for resource in site.having(lambda kind: kind.lone_gateways):
        for location, leg in _legs(resource):
            if not leg.gateway:
                continue
            message = _own(ip_address(leg.gateway), site) or _off_link(leg, site, links)
            if message:
                yield resource, Fault(location, message, warning=True)


def _links(site: Site) -> _Links:
    found = _Links({}, {}, set())
    for one in site.static_addresses:
        dev, network = site.device(one.spec.interface), one.spec.address.network
        found.networks.setdefault((dev, network.version), []).append(network)
        found.reached.setdefault(dev, Prefixes()).add(network)
    for one in site.of(IPv4Route, IPv6Route):
        if one.spec.gateway is None and one.spec.interface is not None:
            dev = site.device(one.spec.interface)
            found.reached.setdefault(dev, Prefixes()).add(one.spec.destination)
    bringing = site.having(lambda kind: kind.brings_addresses)
    found.brought.update(site.device(one.spec.interface) for one in bringing)
    return found


def _legs(resource: Resource) -> Iterator[tuple[Location, Nexthop]]:
    if not isinstance(resource.spec, IPv4Route | IPv6Route):
        groups = resource.content.groups if resource.content is not None else ()
        legs = dict.fromkeys(leg for template in groups for leg in template.nexthops)
        at: Location = ("gateway",) if resource.spec.gateway is not None else ()
        yield from ((at, leg) for leg in legs)
        return
    several = resource.spec.nexthops is not None
    for index, leg in enumerate(route.template(resource.spec).nexthops):
        yield ("nexthops", index, "gateway") if several else ("gateway",), leg


def _own(gateway: Address, site: Site) -> str:
    if gateway not in site.hosts:
        return ""
    dev, _ = site.hosts[gateway][0]
    return f"{gateway} is the router's own address, on {dev}: nothing is sent on from there"


def _off_link(leg: Nexthop, site: Site, links: _Links) -> str:
    """Only where all addresses of the link are declared: others may bring a network along."""
    gateway = ip_address(leg.gateway)
    dev = site.device(leg.dev) if leg.dev else ""
    if leg.onlink or gateway.is_link_local or dev not in site.interfaces or dev in links.brought:
        return ""
    networks = links.networks.get((dev, gateway.version))
    if not networks or links.reached[dev].hold(gateway):
        return ""
    shown = ", ".join(map(str, networks[:_SHOWN])) + (" …" if len(networks) > _SHOWN else "")
    return (
        f"{gateway} is in no network of {leg.dev} ({shown}), so that the kernel refuses it; if it"
        " is on the link all the same, say `onlink: true`"
    )
