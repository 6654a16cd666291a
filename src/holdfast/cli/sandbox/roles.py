"""Which links of a router file lead to a provider, and which to clients."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv6Interface, ip_address

from holdfast.cli.sandbox import pppoe
from holdfast.cli.sandbox.pppoe import Concentrator
from holdfast.dataclass import dataclass
from holdfast.resources import registry
from holdfast.resources.router import Router
from holdfast.resources.routes.route import IPv4Route, IPv6Route
from holdfast.resources.site import Site, site_of
from holdfast.resources.uplinks.default_route_policy import IPv4DefaultRoutePolicy


@dataclass(frozen=True, slots=True)
class Nic:
    """A link that has to exist before the router is applied."""

    ifname: str
    name: str  # of the Interface
    uplink: bool
    # What the other end is called by: gateways and neighbours the file names.
    far_ends: tuple[str, ...]
    concentrators: tuple[Concentrator, ...] = ()  # of PPPoE, that sessions over it dial


def nics(router: Router) -> list[Nic]:
    site = site_of(router.resources)
    uplinks = set(_uplinks(site))
    return [
        Nic(
            ifname,
            resource.name,
            resource.name in uplinks,
            tuple(_far_ends(ifname, site)),
            pppoe.wanted(site, resource.name),
        )
        for ifname, resource in site.interfaces.items()
        if ifname != "lo"  # which every network has
        and resource.spec.type is None
        and resource.spec.state != "absent"
        and ifname not in site.veths
    ]


def _uplinks(site: Site) -> Iterator[str]:
    for resource in site.having(lambda kind: kind.leads_out):
        named = getattr(resource.spec, registry.kind(resource.kind).leads_out)
        for one in named if isinstance(named, tuple) else (named,):
            link = one if isinstance(one, str) else getattr(one, "interface", None)
            if link is not None:
                yield link


def _far_ends(ifname: str, site: Site) -> Iterator[str]:
    """Addresses that the file expects to find behind a link, inside the subnets declared on it."""
    declared = list(site.addresses(ifname))
    wanted: dict[str, None] = {}
    for resource in site.of(IPv4Route, IPv6Route, IPv4DefaultRoutePolicy):
        spec = resource.spec
        candidates = getattr(spec, "candidates", None) or (spec,)
        for candidate in candidates:
            gateway = getattr(candidate, "gateway", None)
            if gateway is not None:
                wanted[str(gateway)] = None
    for text in wanted:
        for own in declared:
            if isinstance(own, IPv4Interface | IPv6Interface) and ip_address(text) in own.network:
                yield f"{text}/{own.network.prefixlen}"
