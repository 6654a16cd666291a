"""WireGuard interfaces that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.links.wireguard_interface import WireGuardInterface
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    ports: dict[int, Resource] = {}
    for resource in site.of(WireGuardInterface):
        port = resource.spec.listen_port
        if port is None:
            continue
        first = ports.setdefault(port, resource)
        if first is not resource:
            yield resource, Fault(("listenPort",), f"{port} is also the port of {first}")
