"""Checks of DHCP clients and delegated addresses against each other and the rest of the file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from holdfast.resources.checks.clashes import Finding
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.site import Site
from holdfast.resources.wan import dhcpcd
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress, subnet_number
from holdfast.resources.wan.dhcp_address import IPv6DHCPAddress
from holdfast.resources.wan.prefix_delegation import IPv6PrefixDelegation

# What may stand in a configuration file of dhcpcd, in the name of a unit and in one of a file.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check(site: Site) -> Iterator[Finding]:
    yield from _clients(site)
    yield from _exclusive(site)
    yield from _without_addresses(site)
    yield from _subnets(site)
    for resource in site.of(IPv6DelegatedAddress):
        yield from _advertised(resource, site)


def _clients(site: Site) -> Iterator[Finding]:
    seen: dict[Hashable, Resource] = {}
    for resource in site.of(*dhcpcd.FAMILIES):
        ifname = site.ifnames.get(resource.spec.interface)
        if ifname is None:
            continue
        if not _PLAIN.fullmatch(ifname):
            message = f"dhcpcd cannot be run for {ifname!r}: letters, digits, '.', '_' and '-' only"
            yield resource, Fault(("interface",), message)
        first = seen.setdefault((resource.kind, ifname), resource)
        if first is not resource:
            yield resource, Fault(("interface",), f"{ifname} has it from {first} already")


def _exclusive(site: Site) -> Iterator[Finding]:
    """What a client puts on a link would be taken off it again and again. One that asks for a
    prefix listens to advertisements too, and makes addresses of them."""
    holders: dict[tuple[str | None, int], Resource] = {}
    for resource in site.static_addresses:
        if resource.spec.exclusive:
            at = site.ifnames.get(resource.spec.interface), resource.spec.address.version
            holders.setdefault(at, resource)
    for resource in site.of(*dhcpcd.FAMILIES, IPv6DelegatedAddress):
        family = dhcpcd.FAMILIES.get(type(resource.spec), 6)
        holder = holders.get((site.ifnames.get(resource.spec.interface), family))
        if holder is not None:
            message = f"{resource.spec.interface} is held exclusively by {holder}"
            yield resource, Fault(("interface",), message)


def _without_addresses(site: Site) -> Iterator[Finding]:
    """The servers of NTT have prefixes to give, and addresses come by advertisement."""
    for delegation in site.of(IPv6PrefixDelegation):
        for resource in site.of(IPv6DHCPAddress):
            if delegation.spec.ntt and resource.spec.interface == delegation.spec.interface:
                message = (
                    f"no address is given with profile {delegation.spec.profile} of {delegation};"
                    " router advertisements bring one"
                )
                yield resource, Fault(("interface",), message, warning=resource.alias)


def _subnets(site: Site) -> Iterator[Finding]:
    """One /64 on two links: the kernel would have to guess which of them leads there."""
    seen: dict[Hashable, Resource] = {}
    for resource in site.of(IPv6DelegatedAddress):
        spec: IPv6DelegatedAddress = resource.spec
        number = subnet_number(resource)
        first = seen.setdefault((spec.prefix_delegation, number), resource)
        if first.spec.interface != spec.interface:
            message = f"subnet {number:#x} is on {first.spec.interface} by {first}"
            yield resource, Fault(("subnetID",), message)


def _advertised(resource: Resource, site: Site) -> Iterator[Finding]:
    from holdfast.resources.lan.dhcp_scope import IPv6DHCPScope  # a kind of another area

    spec: IPv6DelegatedAddress = resource.spec
    scope = next(
        (
            scope
            for scope in site.of(IPv6DHCPScope)
            if scope.spec.delegated_address == resource.name
            or scope.spec.interface == spec.interface
        ),
        None,
    )
    for field, value in (("sendRA", spec.send_ra), ("announce", spec.announce)):
        if value and scope is None:
            message = (
                f"nothing sends router advertisements on {spec.interface}: declare an IPv6DHCPScope"
                f" with `delegatedAddress: {resource.name}`"
            )
            yield resource, Fault((field,), message)
        elif value is False and scope is not None:
            message = f"{scope} sends router advertisements with this prefix"
            yield resource, Fault((field,), message, warning=resource.alias)
