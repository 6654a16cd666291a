"""Interfaces of OSPF against each other."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.resource import Fault, Finding
from holdfast.resources.routing.ospf_interface import OSPFInterface, vrf_of
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    ids: dict[tuple[int, str], tuple[str, str]] = {}
    for resource in site.of(OSPFInterface):
        spec: OSPFInterface = resource.spec
        if spec.router_id is None or spec.interface not in site.ifnames:
            continue
        router = spec.version, vrf_of(site.ifname(spec.interface), site)
        said, holder = ids.setdefault(router, (spec.router_id, str(resource)))
        if said != spec.router_id:
            message = f"is {said} by {holder}, and there is one of version {spec.version}"
            yield resource, Fault(("routerID",), message)
