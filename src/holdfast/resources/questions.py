"""What has to be asked outside before resources can be turned into intents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.resources.facts import Address, Lookup

if TYPE_CHECKING:
    from holdfast.resources.router import Router

_ROUTES = frozenset({"IPv4Route", "IPv6Route", "RouteList"})


def gateways(router: Router) -> frozenset[tuple[int, Address]]:
    """Those whose link the kernel has to tell, each with a routing table it may be told by."""
    if not any(resource.kind in _ROUTES for resource in router.resources):
        return frozenset()
    from holdfast.resources.routes.gateway_links import undeclared

    return undeclared(router.resources)


def lookups(router: Router) -> tuple[Lookup, ...]:
    """Names to be looked up in the DNS, each once."""
    found: dict[Lookup, None] = {}
    for resource in router.resources:
        if resource.kind == "DSLiteTunnel" and (lookup := resource.spec.lookup) is not None:
            found[lookup] = None
        if resource.kind == "WireGuardInterface":
            found |= dict.fromkeys(one for peer in resource.spec.peers for one in peer.lookups)
    return tuple(found)
