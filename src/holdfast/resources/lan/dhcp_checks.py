"""Servers, scopes, reservations and forwarders against each other, and against the addresses of
the links they are about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from ipaddress import IPv6Address

from holdfast.resources.lan.dhcp_reservation import DHCPReservation, identity
from holdfast.resources.lan.dhcp_scope import DHCPScope, IPv4DHCPScope, IPv6DHCPScope, link_of
from holdfast.resources.lan.dhcp_server import Dns, IPv4DHCPServer
from holdfast.resources.lan.dns_conditional_forwarder import DNSConditionalForwarder
from holdfast.resources.lan.dnsmasq_lan import (
    RESERVATIONS,
    SCOPES,
    SERVERS,
    Named,
    resolver_of,
    scope_of,
    server_of,
)
from holdfast.resources.lan.self_address_policy import SelfAddressPolicy
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Interface
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress

# dnsmasq takes a star for a pattern, and others for punctuation of its file.
_IFNAME = re.compile(r"[A-Za-z0-9_.@+-]+")
_HOST_BITS = 64
_HOST_MASK = (1 << _HOST_BITS) - 1
_OWN = "the router's own address"


def check(site: Site) -> Iterator[Finding]:
    yield from _servers(site)
    on_link: dict[Named, list[Resource]] = defaultdict(list)
    for scope in site.of(*SCOPES):
        yield from _scope(scope, site)
        on_link[type(scope.spec), link_of(scope, site)].append(scope)
    for (kind, link), scopes in on_link.items():
        if link and len(scopes) > 1:
            yield from _ranges(scopes) if kind is IPv4DHCPScope else _one_each(scopes)
    yield from _agree_on_authority(site.of(IPv4DHCPScope))
    yield from _reservations(site)
    yield from _forwarders(site)


def _servers(site: Site) -> Iterator[Finding]:
    for server in site.of(*SERVERS):
        for index, name in enumerate(server.spec.listen_interfaces or ()):
            wrong = _unspeakable(name, site)
            if wrong:
                yield server, Fault(("listenInterfaces", index), wrong)
    resolving = [
        resource
        for resource in site.of(IPv4DHCPServer)
        if resource.spec.managed and _answers(resource.spec.dns)
    ]
    for resource in resolving[1:]:
        if resource.spec.dns != resolving[0].spec.dns:
            message = f"one dnsmasq answers for all, and {resolving[0]} says how already"
            yield resource, Fault(("dns",), message)


def _unspeakable(link: str, site: Site) -> str:
    dev = site.ifnames.get(link, "")
    if not dev or _IFNAME.fullmatch(dev):
        return ""
    return f"dnsmasq cannot be told of a link that is called {dev!r}"


def _answers(dns: Dns | None) -> bool:
    return dns is not None and dns.enabled


def _scope(scope: Resource, site: Site) -> Iterator[Finding]:
    spec: DHCPScope = scope.spec
    link = link_of(scope, site)
    server = site.find(*server_of(scope))
    if server is not None:
        listed = server.spec.listen_interfaces
        message = _unspeakable(link, site) if listed is None else ""
        if link and listed is not None and link not in listed:
            message = f"{link} is not one of the listenInterfaces of {server}"
        if message:
            yield scope, Fault(("interface" if spec.interface else "delegatedAddress",), message)
        yield from _silent(scope, server, site)
    policy = site.find(SelfAddressPolicy, spec.self_address_policy)
    family = 4 if isinstance(spec, IPv4DHCPScope) else 6
    if policy is not None and policy.spec.family != family:
        message = f"{policy} is for IPv{policy.spec.family}, the scope for IPv{family}"
        yield scope, Fault(("selfAddressPolicy",), message)
    if isinstance(spec, IPv4DHCPScope):
        found: Iterable[Fault] = _in_subnet(spec, _declared(link, 4, site))
    else:
        found = _own_suffixes(spec, link, site)
    for fault in found:
        yield scope, fault


def _silent(scope: Resource, server: Resource, site: Site) -> Iterator[Finding]:
    """Clients are told to ask a router that was told not to answer."""
    servers = [resource for resource in site.of(IPv4DHCPServer) if resource.spec.managed]
    mute = next(
        (server for server in servers if server.spec.dns and not server.spec.dns.enabled), None
    )
    if (
        scope.spec.dns_source == "self"
        and server.spec.managed
        and mute is not None
        and resolver_of(servers) is None
    ):
        message = f"names the router as DNS server, but {mute} says `dns.enabled: false`"
        yield scope, Fault(("dnsSource",), message)


def _declared(link: str, family: int, site: Site) -> list[Interface]:
    dev = site.ifnames.get(link, "")
    return [address for address in site.addresses(dev) if address.version == family] if dev else []


def _in_subnet(spec: IPv4DHCPScope, addresses: list[Interface]) -> Iterator[Fault]:
    """Where no address is declared, the one the link has when the time comes is the measure."""
    own = [address.ip for address in addresses]
    routers = {spec.router} if spec.router is not None and spec.router not in own else set()
    for router in (*own, *routers):
        if int(spec.range_start) <= int(router) <= int(spec.range_end):
            whose = "the `router` of the clients" if router in routers else _OWN
            message = f"the range holds {router}, which is {whose}"
            yield Fault(("rangeStart",), message, warning=True)
    if not addresses:
        return
    around = next((address for address in addresses if spec.range_start in address.network), None)
    shown = ", ".join(str(address.network) for address in addresses)
    if around is None:
        message = f"{spec.range_start} is in no subnet of {spec.interface}: {shown}"
        yield Fault(("rangeStart",), message)
        return
    if spec.range_end not in around.network:
        yield Fault(("rangeEnd",), f"{spec.range_end} is outside of {around.network}")
    for name, address in (("rangeStart", spec.range_start), ("rangeEnd", spec.range_end)):
        if address in _ends(around):
            yield Fault((name,), f"{address} is the first or last address of {around.network}")
    if spec.router is not None and spec.router not in around.network:
        message = f"{spec.router} is outside of {around.network}: clients could not reach it"
        yield Fault(("router",), message)


def _own_suffixes(spec: IPv6DHCPScope, link: str, site: Site) -> Iterator[Fault]:
    """The range holds ends of addresses, for every prefix on the link alike."""
    if spec.mode != "stateful" or spec.range_start is None or spec.range_end is None:
        return
    own = [int(one.ip) & _HOST_MASK for one in _declared(link, 6, site)]
    own += [
        int(resource.spec.address_suffix)
        for resource in site.of(IPv6DelegatedAddress)
        if link and site.device(resource.spec.interface) == site.device(link)
    ]
    for number in dict.fromkeys(own):
        if int(spec.range_start) <= number <= int(spec.range_end):
            message = f"the range holds {IPv6Address(number)}, the end of {_OWN}"
            yield Fault(("rangeStart",), message, warning=True)


def _ends(own: Interface) -> tuple[object, ...]:
    """The addresses of an IPv4 subnet that no host may have."""
    network = own.network
    if own.version == 6 or network.prefixlen > 30:
        return ()
    return network.network_address, network.broadcast_address


def _ranges(scopes: list[Resource]) -> Iterator[Finding]:
    ordered = sorted(scopes, key=lambda scope: (scope.spec.range_start, scope.index))
    last = ordered[0]
    for scope in ordered[1:]:
        if scope.spec.range_start <= last.spec.range_end:
            first, second = sorted((last, scope), key=lambda resource: resource.index)
            message = f"the range overlaps that of {first}"
            yield second, Fault(("rangeStart",), message)
        if scope.spec.range_end > last.spec.range_end:
            last = scope


def _one_each(scopes: list[Resource]) -> Iterator[Finding]:
    for scope in scopes[1:]:
        message = f"{scopes[0]} announces every prefix of that link already"
        yield scope, Fault((), message)


def _agree_on_authority(scopes: Iterable[Resource]) -> Iterator[Finding]:
    said: list[Resource] = [scope for scope in scopes if scope.spec.authoritative is not None]
    for resource in said[1:]:
        if resource.spec.authoritative != said[0].spec.authoritative:
            message = f"holds for all scopes together, and {said[0]} says otherwise"
            yield resource, Fault(("authoritative",), message)


def _reservations(site: Site) -> Iterator[Finding]:
    grouped: dict[Named, list[Resource]] = defaultdict(list)
    for resource in site.of(*RESERVATIONS):
        grouped[scope_of(resource)].append(resource)
    for key, reservations in grouped.items():
        scope = site.find(*key)
        yield from _twice(reservations)
        if scope is None:
            continue
        if isinstance(scope.spec, IPv6DHCPScope) and scope.spec.mode != "stateful":
            for resource in reservations:
                message = f"{scope} gives no addresses: its mode is {scope.spec.mode}"
                yield resource, Fault(("scope",), message)
            continue
        family = 4 if isinstance(scope.spec, IPv4DHCPScope) else 6
        addresses = _declared(link_of(scope, site), family, site)
        own = {int(address.ip): address for address in addresses}
        spans = [
            (int(address.network.network_address), int(address.network.broadcast_address), address)
            for address in addresses
            if family == 6 or scope.spec.range_start in address.network
        ]
        for resource in reservations:
            fault = _misplaced(resource.spec, scope, own, spans)
            if fault:
                yield resource, Fault(("address",), fault)


def _misplaced(
    spec: DHCPReservation,
    scope: Resource,
    own: dict[int, Interface],
    spans: list[tuple[int, int, Interface]],
) -> str:
    """What is wrong with a reserved address; numbers, since there may be thousands of them."""
    number = int(spec.address)
    if number in own:
        return f"{spec.address} is the router's own address"
    if spec.address.version == 6 and number >> _HOST_BITS == 0:
        return "" if number else ":: cannot be the address of a client"
    around = next((one for low, high, one in spans if low <= number <= high), None)
    if around is None:
        if spec.address.version == 6:
            hint = "; give its end alone, such as ::20"
            return f"{spec.address} is in no declared subnet of the link of {scope.id}{hint}"
        shown = ", ".join(str(one.network) for _, _, one in spans)
        return f"{spec.address} is outside the subnet of {scope.id}: {shown}" if spans else ""
    if spec.address in _ends(around):
        return f"{spec.address} is the first or last address of {around.network}"
    return ""


def _twice(reservations: list[Resource]) -> Iterator[Finding]:
    seen: dict[Hashable, Resource] = {}
    for reservation in reservations:
        spec: DHCPReservation = reservation.spec
        field, client = identity(spec)
        wanted = ((field, client), ("address", int(spec.address)), ("hostname", spec.hostname))
        for what in wanted:
            first = seen.setdefault(what, reservation) if what[1] is not None else reservation
            if first is not reservation:
                shown = spec.address if what[0] == "address" else what[1]
                yield reservation, Fault((what[0],), f"{shown} is reserved by {first} already")


def _forwarders(site: Site) -> Iterator[Finding]:
    seen: dict[str, Resource] = {}
    servers = site.of(*SERVERS)
    theirs = servers[0] if servers and not any(server.spec.managed for server in servers) else None
    managed = [server for server in servers if server.spec.managed]
    mute = next(
        (
            resource
            for resource in managed
            if getattr(resource.spec, "dns", None) and not resource.spec.dns.enabled
        ),
        None,
    )
    for resource in site.of(DNSConditionalForwarder):
        first = seen.setdefault(resource.spec.domain, resource)
        if first is not resource:
            message = f"{resource.spec.domain} is forwarded by {first} already"
            yield resource, Fault(("domain",), message)
        if theirs is not None:
            message = f"is not applied: {theirs} is `managed: false`, so its DNS is not ours"
            yield resource, Fault((), message, warning=True)
        elif mute is not None and resolver_of(managed) is None:
            yield resource, Fault((), f"has no effect: {mute} says `dns.enabled: false`")
