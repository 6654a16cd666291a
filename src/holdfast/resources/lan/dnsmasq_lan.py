"""What one dnsmasq serves: the managed servers of a file, with all that belongs to them."""

from __future__ import annotations

from holdfast.dataclass import dataclass, field
from holdfast.resources.firewall.path_mtu_policy import PathMTUPolicy, ra_mtu
from holdfast.resources.lan.dhcp_reservation import (
    DHCPReservation,
    IPv4DHCPReservation,
    IPv6DHCPReservation,
)
from holdfast.resources.lan.dhcp_scope import DHCPScope, IPv4DHCPScope, IPv6DHCPScope, link_of
from holdfast.resources.lan.dhcp_server import Dns, IPv4DHCPServer, IPv6DHCPServer
from holdfast.resources.lan.dns_conditional_forwarder import DNSConditionalForwarder
from holdfast.resources.lan.self_address_policy import Candidate, SelfAddressPolicy, standard
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress

SERVERS = (IPv4DHCPServer, IPv6DHCPServer)
SCOPES = (IPv4DHCPScope, IPv6DHCPScope)
RESERVATIONS = (IPv4DHCPReservation, IPv6DHCPReservation)
Named = tuple[type[Spec], str]


@dataclass(frozen=True, slots=True)
class Lan:
    servers: list[Resource]
    scopes: list[Resource]
    forwarders: list[Resource]
    dns: Dns | None  # None: questions are not answered
    resolver: Resource | None  # the server that says how they are answered
    # Scope -> reservations in it.
    reservations: dict[Named, list[Resource]] = field(default_factory=dict)
    # Policies that put an MTU into the advertisements on a link (kernel name), and the MTU.
    mtus: dict[str, list[tuple[Resource, int]]] = field(default_factory=dict)

    @property
    def main(self) -> list[Resource]:
        """Those without whom the program or its configuration would not be what they are."""
        announcing = [policy for found in self.mtus.values() for policy, _ in found]
        return [*self.servers, *self.scopes, *self.forwarders, *announcing]


def lan_of(site: Site) -> Lan | None:
    """None where there is nothing to serve."""
    servers = [resource for resource in site.of(*SERVERS) if resource.spec.managed]
    ours = {(type(server.spec), server.name) for server in servers}
    scopes = [resource for resource in site.of(*SCOPES) if server_of(resource) in ours]
    # Where all servers are somebody else's, so is the one that would forward.
    forwarders = site.of(DNSConditionalForwarder) if servers or not site.of(*SERVERS) else []
    if not servers and not forwarders:
        return None
    resolver = resolver_of(servers)
    dns = resolver.spec.dns if resolver is not None else None
    if dns is None and (forwarders or any(scope.spec.dns_source == "self" for scope in scopes)):
        dns = Dns()
    lan = Lan(servers, scopes, forwarders, dns, resolver)
    within = {(type(scope.spec), scope.name) for scope in scopes}
    for resource in site.of(*RESERVATIONS):
        scope = scope_of(resource)
        if scope in within:
            lan.reservations.setdefault(scope, []).append(resource)
    for policy in site.of(PathMTUPolicy):
        mtu = ra_mtu(policy, site)
        advertising = site.find(IPv6DHCPScope, policy.spec.ipv6_ra.scope)
        if mtu and advertising is not None and advertising in scopes:
            dev = site.ifname(link_of(advertising, site))
            lan.mtus.setdefault(dev, []).append((policy, mtu))
    return lan


def resolver_of(servers: list[Resource]) -> Resource | None:
    """The server that answers DNS by its own word."""
    for server in servers:
        dns: Dns | None = getattr(server.spec, "dns", None)
        if dns is not None and dns.enabled:
            return server
    return None


def server_of(scope: Resource) -> Named:
    """The server that a scope belongs to."""
    kind = IPv4DHCPServer if isinstance(scope.spec, IPv4DHCPScope) else IPv6DHCPServer
    return kind, scope.spec.server


def scope_of(reservation: Resource) -> Named:
    """The scope that a reservation is in."""
    spec: DHCPReservation = reservation.spec
    kind = IPv4DHCPScope if isinstance(spec, IPv4DHCPReservation) else IPv6DHCPScope
    return kind, spec.scope


def tag(scope: Resource) -> str:
    """What dnsmasq knows a scope by."""
    return f"{'ipv4' if isinstance(scope.spec, IPv4DHCPScope) else 'ipv6'}-{scope.name}"


def candidates(scope: Resource, site: Site) -> tuple[Candidate, ...]:
    """How the router's own address is found for the clients of a scope."""
    spec: DHCPScope = scope.spec
    if spec.self_address_policy is not None:
        found: tuple[Candidate, ...] = site.get(
            SelfAddressPolicy, spec.self_address_policy
        ).spec.candidates
        return found
    delegated = None
    if isinstance(spec, IPv6DHCPScope) and spec.delegated_address is not None:
        delegated = site.get(IPv6DelegatedAddress, spec.delegated_address)
    return standard(link_of(scope, site), delegated)
