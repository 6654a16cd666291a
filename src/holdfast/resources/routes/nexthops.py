"""Where routes lead: the rules a route template obeys, and what it needs to be in place.

Until `resolve`, the `dev` of a nexthop is as it was written: the name of an Interface resource,
or the kernel's name of a link that no Interface resource declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.link import link_key
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from holdfast.resources.routes.gateway_links import link_of
from holdfast.resources.site import Site


def faults(template: RouteTemplate) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a template: which nexthop (from 0), which field of it, and why.

    Nexthop -1 stands for the route itself.
    """
    if template.type != "unicast":
        if template.nexthops:
            yield 0, "gateway", f"a {template.type} route leads nowhere: no gateway or interface"
        if template.mtu:
            yield -1, "mtu", f"an MTU has no meaning for a {template.type} route"
        if template.prefsrc:
            yield -1, "preferredSource", f"a source has no meaning for a {template.type} route"
        return
    if not template.nexthops:
        yield 0, "", "leads nowhere: give a gateway or an interface"
    several = len(template.nexthops) > 1
    for index, nexthop in enumerate(template.nexthops):
        for field, message in _nexthop_faults(nexthop, template.family, several):
            yield index, field, message
        if any(_same(nexthop, other) for other in template.nexthops[:index]):
            yield index, "", f"nexthop {nexthop} is there twice; use its weight"


def _same(nexthop: Nexthop, other: Nexthop) -> bool:
    return (nexthop.gateway, nexthop.dev) == (other.gateway, other.dev)


def _nexthop_faults(nexthop: Nexthop, family: int, several: bool) -> Iterator[tuple[str, str]]:
    if not nexthop.gateway:
        if not nexthop.dev:
            yield "", "leads nowhere: give a gateway or an interface"
        elif several and family == 6:
            # The kernel refuses to spread IPv6 over device-only legs.
            yield "", "each nexthop of an IPv6 route over several needs a gateway"
        if nexthop.onlink:
            yield "onlink", "has no meaning without a gateway"
        return
    gateway = ip_address(nexthop.gateway)
    if family == 6 and gateway.version == 4:
        yield "gateway", f"{gateway} is an IPv4 address, IPv6 is needed"
    if gateway.is_unspecified or gateway.is_multicast:
        yield "gateway", f"{gateway} cannot be a gateway"
    if not nexthop.dev:
        if gateway.version == 6 and gateway.is_link_local:
            yield "gateway", f"{gateway} is link-local: the interface has to be given too"
        if nexthop.onlink:
            yield "onlink", "needs the interface the gateway is on"


def resolve(template: RouteTemplate, site: Site) -> RouteTemplate:
    """With the kernel's name of the link of every nexthop, as far as they are known (`lacks`)."""
    found = tuple([_resolved(hop, template.table, site) for hop in template.nexthops])
    if found == template.nexthops:
        return template
    # Thousands of resources may be routes, and `replace` takes ten times as long.
    return RouteTemplate(
        template.family,
        template.table,
        template.metric,
        template.type,
        found,
        template.prefsrc,
        template.mtu,
    )


def _resolved(hop: Nexthop, table: int, site: Site) -> Nexthop:
    dev = site.device(hop.dev) if hop.dev else link_of(hop.gateway, table, site)
    return Nexthop(hop.gateway, dev, hop.weight, hop.onlink) if dev != hop.dev else hop


def lacks(resolved: RouteTemplate) -> str:
    """What is to be known before such routes can be made; empty if all is."""
    unknown = [hop.gateway for hop in resolved.nexthops if not hop.dev]
    if not unknown:
        return ""
    which = f"gateway{'s' if len(unknown) > 1 else ''} {' and '.join(unknown)}"
    return (
        f"waits for the link of {which}: no network on any link holds it, and a default route does"
        " not tell; name the interface where it is known"
    )


def requires(template: RouteTemplate, site: Site) -> tuple[Key, ...]:
    """The links, and the declared addresses, that a resolved template cannot do without."""
    keys: dict[Key, None] = {}
    for nexthop in template.nexthops:
        if nexthop.dev:
            keys[link_key(nexthop.dev)] = None
        if nexthop.gateway and not nexthop.onlink:
            keys.update(dict.fromkeys(_covering(nexthop, site)))
    if template.prefsrc:
        keys.update(dict.fromkeys(site.holding(ip_address(template.prefsrc))))
    return tuple(keys)


def _covering(nexthop: Nexthop, site: Site) -> tuple[Key, ...]:
    named = nexthop.gateway, nexthop.dev
    known = site.covers.get(named)
    if known is None:
        known = site.covers[named] = tuple(site.covering(ip_address(nexthop.gateway), nexthop.dev))
    return known
