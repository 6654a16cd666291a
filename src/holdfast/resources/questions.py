"""What has to be asked outside before resources can be turned into intents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.resources import registry
from holdfast.resources.facts import Address, Lookup

if TYPE_CHECKING:
    from holdfast.resources.router import Router


def fact_kinds(router: Router) -> frozenset[str]:
    """The kinds of a configuration that depend on facts."""
    kinds = {resource.kind for resource in router.resources}
    return frozenset(name for name in kinds if registry.kind(name).needs_facts)


def gateways(router: Router) -> frozenset[tuple[int, Address]]:
    """Those whose link the kernel has to tell, each with a routing table it may be told by."""
    if not registry.having(router.resources, lambda kind: kind.lone_gateways):
        return frozenset()
    from holdfast.resources.routes.gateway_links import undeclared

    return undeclared(router.resources)


def lookups(router: Router) -> tuple[Lookup, ...]:
    """Names to be looked up in the DNS, each once."""
    found: dict[Lookup, None] = {}
    for resource in registry.having(router.resources, lambda kind: kind.lookups):
        asked = registry.kind(resource.kind).lookups
        found |= dict.fromkeys(asked(resource) if asked is not None else ())
    return tuple(found)
