"""Gateways that cannot be, as far as the file itself shows it. Warnings: addresses may come from
elsewhere, and the kernel has the last word."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from holdfast.config.document import Location
from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import Nexthop
from holdfast.resources import registry
from holdfast.resources.prefixes import Prefixes
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.routes import route
from holdfast.resources.routes.gateway_links import LEAST_LENGTH, around
from holdfast.resources.routes.route import IPv4Route, IPv6Route
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Address, Network

_SHOWN = 5
_ONLINK = "if it is on the link all the same, say `onlink: true`"


def warns(resource: Resource, site: Site) -> bool:
    """Whether `check` has anything to say of one route, beside those that are declared."""
    return any(doubt(leg, site) for _, leg in _legs(resource))


def check(site: Site) -> Iterator[Finding]:
    for resource in site.having(lambda kind: kind.lone_gateways):
        for location, leg in _legs(resource):
            message = doubt(leg, site)
            if message:
                yield resource, Fault(location, message, warning=True)


def doubt(leg: Nexthop, site: Site, remedy: str = _ONLINK) -> str:
    """Why a leg cannot lead anywhere; empty where it may. remedy: for a gateway off its link."""
    if not leg.gateway:
        return ""
    if not site.reached:
        site.reached.append(_links(site))
    links: _Links = site.reached[0]
    gateway = ip_address(leg.gateway)
    own = _own(gateway, leg, site)
    if own or leg.onlink or gateway.is_link_local:
        return own
    if not leg.dev:
        return _nowhere(gateway, links)
    off_link = _off_link(gateway, leg, site, links)
    return f"{off_link}; {remedy}" if off_link else ""


@dataclass(frozen=True, slots=True)
class _Links:
    """What is declared to be on each link, by its kernel name: gone through once for all routes."""

    networks: dict[tuple[str, int], list[Network]]  # of its addresses, by family
    reached: dict[str, Prefixes]  # by its addresses, and by routes without a gateway
    lists: list[tuple[str, list[bytes]]]  # by long lists of such routes, as packed keys
    brought: set[str]  # links whose addresses are not all declared
    anywhere: Prefixes  # what is reached by any link, default routes aside
    families: set[int]  # those of which all networks are declared, and some are


def _links(site: Site) -> _Links:
    found = _Links({}, {}, [], set(), Prefixes(), set())
    for resource in site.static_addresses:
        dev, network = site.device(resource.spec.interface), resource.spec.address.network
        found.networks.setdefault((dev, network.version), []).append(network)
        _add(found, dev, network)
        found.families.add(network.version)
    for resource in site.having(lambda kind: kind.on_link):
        declared = registry.kind(resource.kind).on_link
        for _table, reached, dev in declared(resource, site) if declared is not None else ():
            if isinstance(reached, list):
                found.lists.append((dev, reached))
            else:
                _add(found, dev, reached)
    bringing = site.having(lambda kind: kind.brings_addresses)
    found.brought.update(site.device(resource.spec.interface) for resource in bringing)
    if found.brought:
        found.families.clear()
    for resource in site.having(lambda kind: kind.behind and not kind.lone_gateways):
        _add_behind(found, resource)
    return found


def _add(links: _Links, dev: str, network: Network) -> None:
    links.reached.setdefault(dev, Prefixes()).add(network)
    if network.prefixlen >= LEAST_LENGTH:
        links.anywhere.add(network)


def _add_behind(links: _Links, resource: Resource) -> None:
    """What a link leads to by itself, as WireGuard does to its peers."""
    behind = registry.kind(resource.kind).behind
    for version in (4, 6):
        networks = behind(resource, version) if behind is not None else ()
        if networks is None:
            links.families.discard(version)
            continue
        for network in networks:
            if network.prefixlen >= LEAST_LENGTH:
                links.anywhere.add(network)


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


def _own(gateway: Address, leg: Nexthop, site: Site) -> str:
    """In a VRF of its own an address is another router's, as far as the kernel goes."""
    for dev, _ in site.hosts.get(gateway, ()):
        via = site.device(leg.dev) if leg.dev else dev
        if site.vrf_tables.get(dev) == site.vrf_tables.get(via):
            return f"{gateway} is the router's own address, on {dev}: nothing is sent on from there"
    return ""


def _off_link(gateway: Address, leg: Nexthop, site: Site, links: _Links) -> str:
    """Only where all addresses of the link are declared: others may bring a network along."""
    dev = site.device(leg.dev)
    if dev not in site.interfaces or dev in links.brought:
        return ""
    networks = links.networks.get((dev, gateway.version))
    if not networks or links.reached[dev].hold(gateway) or _listed(gateway, links, dev):
        return ""
    shown = ", ".join(map(str, networks[:_SHOWN])) + (" …" if len(networks) > _SHOWN else "")
    return f"{gateway} is in no network of {leg.dev} ({shown}), so that the kernel refuses it"


def _nowhere(gateway: Address, links: _Links) -> str:
    """Only where nothing that is declared brings networks along that the file does not name."""
    if gateway.version not in links.families:
        return ""
    if links.anywhere.hold(gateway) or _listed(gateway, links):
        return ""
    return (
        f"{gateway} is in no network that is declared, so that nothing tells the link it is on; if"
        " it is on one all the same, name it as the `interface`, and say `onlink: true`"
    )


def _listed(gateway: Address, links: _Links, dev: str = "") -> bool:
    """Whether a list of routes without a gateway leads there, by one link or by any."""
    return any(
        key in keys for link, keys in links.lists if dev in ("", link) for key in around(gateway)
    )
