"""Which hosts a declared network holds or a declared route leads to, asked of very many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.resources import registry
from holdfast.resources.prefixes import Prefixes, keys_around
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Address, Network

if TYPE_CHECKING:  # modules of kinds are imported only for files that hold them
    from holdfast.resources.routes.route_list import RouteLines


class Reach:
    """Of one family."""

    def __init__(self, site: Site, version: int) -> None:
        subnets = [
            static_address.spec.address.network
            for static_address in site.static_addresses
            if static_address.spec.address.version == version
        ]
        led_to = list(_led_to(site, version))
        # Where no network is declared, or some come from elsewhere, any host may be there.
        self._all = not subnets or None in led_to
        self._declared = Prefixes()
        for network in () if self._all else (*subnets, *filter(None, led_to)):
            self._declared.add(network)
        lists = site.having(lambda kind: kind.lines_declaring)
        self._lists: list[RouteLines | None] = [resource.content for resource in lists]

    def holds(self, host: Address) -> bool:
        if self._all or self._declared.hold(host):
            return True
        return any(_leads_to(lines, host) for lines in self._lists)


def _led_to(site: Site, version: int) -> Iterator[Network | None]:
    """By routes, default routes aside, and behind links; None where any network may be."""
    for resource in site.having(lambda kind: kind.behind):
        behind = registry.kind(resource.kind).behind
        found = behind(resource, version) if behind is not None else ()
        yield from (None,) if found is None else found


def _leads_to(lines: RouteLines | None, host: Address) -> bool:
    """Whether a route of a list does, a default route aside; of one that could not be read it may
    be so."""
    if lines is None:
        return True
    around = list(keys_around(host, range(1, host.max_prefixlen + 1)))
    return any(
        template.family == host.version
        and template.type == "unicast"
        and any(key in keys for key in around)
        for template, keys in lines.groups.items()
    )
