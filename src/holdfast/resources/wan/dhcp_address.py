"""IPv4DHCPAddress and IPv6DHCPAddress: the address of a link comes from a DHCP server."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import SERVICE
from holdfast.resources.facts import Gone, Lease
from holdfast.resources.resource import Kind, Resource, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    device_reference,
    flag,
    link_reference,
    optional,
    required,
)
from holdfast.resources.wan import dhcp_client

_INTERFACE = "the link towards the server"
_REQUIRED = "a pass without the address has not converged, and `apply` says so"


class IPv4DHCPAddress(Spec):
    interface: str = required(device_reference(), _INTERFACE)
    client: str = dhcp_client.client()
    required: bool = optional(flag(), _REQUIRED, default=False)


class IPv6DHCPAddress(Spec):
    interface: str = required(link_reference(), _INTERFACE)
    client: str = dhcp_client.client()
    required: bool = optional(flag(), _REQUIRED, default=False)


def lease(
    resource: Resource, leases: Mapping[str, Lease | Gone], site: Site
) -> tuple[str, Lease | Gone | None]:
    ifname = site.ifname(resource.spec.interface)
    return ifname, leases.get(ifname)


_TAKEN_CARE_OF = (
    " Address, default route and their renewal are the client's (dhcpcd), which Holdfast"
    " configures and keeps running, one for each link. It writes no resolv.conf. Removing the"
    " resource stops the client, and the address goes with it."
)

KINDS = (
    Kind(
        IPv4DHCPAddress,
        "An IPv4 address and default route from a DHCP server." + _TAKEN_CARE_OF,
        (FILE.name, SERVICE.name),
        "interface: wan\nrequired: true\n",
        nothing_alone,
        dhcp_client.check,
        combiner="wan.dhcpcd",
        cross_checks="wan.dhcp_client_checks",
        needs_facts=True,
        brings_addresses=True,
        lease=lambda resource, site: lease(resource, site.facts.leases4, site),
        leads_out="interface",
    ),
    Kind(
        IPv6DHCPAddress,
        "An IPv6 address from a DHCP server; the default route comes from router advertisements,"
        " which the client listens to." + _TAKEN_CARE_OF,
        (FILE.name, SERVICE.name),
        "interface: wan\n",
        nothing_alone,
        dhcp_client.check,
        combiner="wan.dhcpcd",
        cross_checks="wan.dhcp_client_checks",
        needs_facts=True,
        brings_addresses=True,
        behind=lambda _resource, version: None if version == 6 else (),
        lease=lambda resource, site: lease(resource, site.facts.leases6, site),
        leads_out="interface",
    ),
)
