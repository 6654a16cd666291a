"""DS-Lite tunnels against each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from holdfast.resources.checks.clashes import Finding, taken
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.site import Site
from holdfast.resources.wan.dslite_tunnel import DSLiteTunnel


def check(site: Site) -> Iterator[Finding]:
    """The kernel has one tunnel between two addresses over one link. The ends of these may not be
    known yet, but are the same."""
    tunnels = site.of(DSLiteTunnel)
    ends: dict[Hashable, Resource] = {}
    for resource in tunnels:
        spec: DSLiteTunnel = resource.spec
        remote = spec.remote_address or (
            spec.lookup,
            spec.aftr_address_ordinal,
            spec.aftr_address_selection,
        )
        local = (
            spec.local_address_source,
            spec.local_address,
            spec.local_delegated_address,
            spec.local_address_suffix,
        )
        first = ends.setdefault((spec.interface, remote, local), resource)
        if first is not resource:
            yield resource, Fault((), f"{first} has the same local end, remote end and interface")
    yield from taken(
        (resource for resource in tunnels if resource.spec.default_route),
        ("routeMetric",),
        lambda r: r.spec.route_metric,
        "a default route of metric {} is also that of",
    )
