"""SelfAddressPolicy: which of its addresses the router goes by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv6Address

from holdfast.engine.kinds.file import FILE
from holdfast.resources.lan.upstream import Unknown
from holdfast.resources.links.link_addresses import delegated, joined, missing, on_link
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    link_reference,
    listed,
    nested,
    optional,
    parsed,
    reference,
    required,
)
from holdfast.resources.spec.values import Address, address
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress, parse_suffix
from holdfast.resources.wan.prefix_delegation import SUBNET_LENGTH

# What each source of a candidate may be told, the first of which it needs.
_FIELDS = {
    "delegatedAddress": ("delegatedAddress", "addressSuffix"),
    "interfaceAddress": ("interface", "matchSuffix", "ordinal"),
    "static": ("address",),
}


class Candidate(Spec):
    source: str = required(choice(*_FIELDS), "where the address comes from")
    delegated_address: str | None = optional(
        reference(IPv6DelegatedAddress), "for `delegatedAddress`: that one"
    )
    address_suffix: IPv6Address | None = optional(
        parsed(parse_suffix, "end of an IPv6 address"),
        "for `delegatedAddress`: in its prefix, but with this end",
    )
    interface: str | None = optional(
        link_reference(), "for `interfaceAddress`: an address on this link"
    )
    match_suffix: IPv6Address | None = optional(
        parsed(parse_suffix, "end of an IPv6 address"),
        "for `interfaceAddress`: only one with this end",
    )
    ordinal: int | None = optional(
        integer(1, 1000), "for `interfaceAddress`: the first one, the second…; 1 if not given"
    )
    address: Address | None = optional(address(), "for `static`")


class SelfAddressPolicy(Spec):
    address_family: str = required(choice("ipv4", "ipv6"), "of the address")
    candidates: tuple[Candidate, ...] = required(
        listed(nested(Candidate)), "tried in this order; the first that leads to an address wins"
    )

    @property
    def family(self) -> int:
        return int(self.address_family[-1])


def check(resource: Resource) -> Iterator[Fault]:
    spec: SelfAddressPolicy = resource.spec
    for index, candidate in enumerate(spec.candidates):
        here = ("candidates", index)
        needed, *_ = allowed = _FIELDS[candidate.source]
        for entry in Candidate.entries:
            given = getattr(candidate, entry.attribute) is not None
            if entry.name == needed and not given:
                yield Fault((*here, needed), f"is missing; `source: {candidate.source}` needs it")
            elif given and entry.name not in (*allowed, "source"):
                message = f"has no meaning with `source: {candidate.source}`"
                yield Fault((*here, entry.name), message)
        if spec.family == 4 and candidate.source == "delegatedAddress":
            yield Fault((*here, "source"), "delegated addresses are IPv6, the policy is for IPv4")
        if spec.family == 4 and candidate.match_suffix is not None:
            yield Fault((*here, "matchSuffix"), "is for IPv6, the policy is for IPv4")
        if candidate.address is not None and candidate.address.version != spec.family:
            message = f"{candidate.address} is not an IPv{spec.family} address"
            yield Fault((*here, "address"), message)


def standard(interface: str, delegated_address: Resource | None) -> tuple[Candidate, ...]:
    """What holds for an IPv6 link where no policy is named."""
    on_it = Candidate(source="interfaceAddress", interface=interface)
    if delegated_address is None:
        return (on_it,)
    suffix = delegated_address.spec.address_suffix
    return (
        Candidate(source="delegatedAddress", delegated_address=delegated_address.name),
        Candidate(source="interfaceAddress", interface=interface, match_suffix=suffix),
        on_it,
    )


def resolve(candidates: Iterable[Candidate], family: int, site: Site) -> Address:
    """The address of the first candidate that leads to one. Raises Unknown where none does."""
    misses: list[Unknown] = []
    for candidate in candidates:
        try:
            return _address(candidate, family, site)
        except Unknown as miss:
            misses.append(miss)
    first = next((miss for miss in misses if miss.keeps), misses[0])
    raise first


def elsewhere(
    candidates: Iterable[Candidate], family: int, served: Collection[str], site: Site
) -> Iterator[Address]:
    """Addresses the candidates may lead to that are on none of the served links."""
    for candidate in candidates:
        link = candidate.interface
        if candidate.delegated_address is not None:
            link = site.get(IPv6DelegatedAddress, candidate.delegated_address).spec.interface
        if link is None or site.ifname(link) not in served:
            with suppress(Unknown):
                yield _address(candidate, family, site)


def _address(candidate: Candidate, family: int, site: Site) -> Address:
    if candidate.address is not None:
        return candidate.address
    if candidate.delegated_address is not None:
        found = delegated(candidate.delegated_address, site)
        suffix = candidate.address_suffix
        return found.ip if suffix is None else joined(found.network, suffix)
    dev = site.ifname(str(candidate.interface))
    fitting = [
        one.ip
        for one in on_link(dev, family, site)
        if not one.ip.is_link_local
        and (candidate.match_suffix is None or _host(one.ip) == int(candidate.match_suffix))
    ]
    ordinal = candidate.ordinal or 1
    if len(fitting) < ordinal:
        what = f"an IPv{family} address on {dev}"
        if candidate.match_suffix is not None:
            what += f" that ends in {candidate.match_suffix}"
        raise missing(dev, what, site)
    return fitting[ordinal - 1]


def _host(ip: Address) -> int:
    return int(ip) & ((1 << (128 - SUBNET_LENGTH)) - 1)


KINDS = (
    Kind(
        SelfAddressPolicy,
        "Which address of the router a scope gives its clients as their DNS server. Used by"
        " scopes with `dnsSource: self`, and of no use without one.",
        (FILE.name,),
        """\
addressFamily: ipv6
candidates:
  - {source: interfaceAddress, interface: lan, matchSuffix: "::1"}
  - {source: interfaceAddress, interface: lan, ordinal: 1}
""",
        nothing_alone,
        check,
    ),
)
