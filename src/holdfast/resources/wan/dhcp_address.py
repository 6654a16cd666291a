"""IPv4DHCPAddress and IPv6DHCPAddress: the address of a link comes from a DHCP server."""

from __future__ import annotations

from holdfast.resources.resource import Kind, nothing_alone
from holdfast.resources.shape import Spec, flag, optional, reference, required
from holdfast.resources.site import LINK_KINDS
from holdfast.resources.wan import dhcp_client

_INTERFACE = "the link towards the server"
_REQUIRED = "a pass without the address has not converged, and `apply` says so"


class IPv4DHCPAddress(Spec):
    interface: str = required(reference("Interface"), _INTERFACE)
    client: str = dhcp_client.client()
    required: bool = optional(flag(), _REQUIRED, default=False)


class IPv6DHCPAddress(Spec):
    interface: str = required(reference(*LINK_KINDS), _INTERFACE)
    client: str = dhcp_client.client()
    required: bool = optional(flag(), _REQUIRED, default=False)


_TAKEN_CARE_OF = (
    " Address, default route and their renewal are the client's (dhcpcd), which Holdfast"
    " configures and keeps running, one for each link. It writes no resolv.conf. Removing the"
    " resource stops the client, and the address goes with it."
)

KINDS = {
    "IPv4DHCPAddress": Kind(
        "IPv4DHCPAddress",
        IPv4DHCPAddress,
        "An IPv4 address and default route from a DHCP server." + _TAKEN_CARE_OF,
        ("file", "service"),
        "interface: wan\nrequired: true\n",
        nothing_alone,
        dhcp_client.check,
    ),
    "IPv6DHCPAddress": Kind(
        "IPv6DHCPAddress",
        IPv6DHCPAddress,
        "An IPv6 address from a DHCP server; the default route comes from router advertisements,"
        " which the client listens to." + _TAKEN_CARE_OF,
        ("file", "service"),
        "interface: wan\n",
        nothing_alone,
        dhcp_client.check,
    ),
}
