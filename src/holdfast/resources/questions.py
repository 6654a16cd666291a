"""What has to be asked outside before resources can be turned into intents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.resources.facts import Lookup

if TYPE_CHECKING:
    from holdfast.resources.router import Router


def lookups(router: Router) -> tuple[Lookup, ...]:
    """Names to be looked up in the DNS, each once."""
    found: dict[Lookup, None] = {}
    for resource in router.resources:
        if resource.kind == "DSLiteTunnel" and (lookup := resource.spec.lookup) is not None:
            found[lookup] = None
        if resource.kind == "WireGuardInterface":
            found |= dict.fromkeys(one for peer in resource.spec.peers for one in peer.lookups)
    return tuple(found)
