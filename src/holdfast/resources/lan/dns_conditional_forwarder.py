"""DNSConditionalForwarder: questions about one domain go to name servers of their own."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import SERVICE
from holdfast.resources.lan.upstream import check_servers, learned, spelled
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.dns_name import domain
from holdfast.resources.spec.shape import Spec, choice, link_reference, listed, optional, required
from holdfast.resources.spec.values import Address, address


class DNSConditionalForwarder(Spec):
    domain: str = required(domain(), "the domain, with all that is below it")
    upstream_source: str = optional(
        choice("static", "dhcp4", "dhcp6"),
        "`upstreamServers`, or the servers that `upstreamInterface` was given by DHCP",
        default="static",
    )
    upstream_interface: str | None = optional(link_reference(), "for `dhcp4` and `dhcp6`")
    upstream_servers: tuple[Address, ...] = optional(
        listed(address(), least=0), "for `static`", default=()
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: DNSConditionalForwarder = resource.spec
    yield from check_servers(
        (), spec.upstream_source, spec.upstream_interface, spec.upstream_servers
    )


def lines(resource: Resource, site: Site) -> str:
    """For dnsmasq's file of servers. Raises Unknown while the servers are not known."""
    spec: DNSConditionalForwarder = resource.spec
    servers = [str(server) for server in spec.upstream_servers]
    if spec.upstream_interface is not None:
        dev = site.ifname(spec.upstream_interface)
        found = learned(spec.upstream_source, spec.upstream_interface, site)
        servers = [spelled(server, dev) for server in found]
    return "".join(f"server=/{spec.domain}/{server}\n" for server in servers)


KINDS = (
    Kind(
        DNSConditionalForwarder,
        "Sends DNS questions about one domain to servers of its own. They are answered by the"
        " dnsmasq of IPv4DHCPServer; in a file without one, by a dnsmasq for the router alone.",
        (FILE.name, SERVICE.name),
        "domain: corp.example.net\nupstreamServers: [192.0.2.10]\n",
        nothing_alone,
        check,
        combiner="lan.dnsmasq",
        cross_checks="lan.dhcp_checks",
        needs_facts=True,
    ),
)
