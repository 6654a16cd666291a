"""IPv4StaticAddress and IPv6StaticAddress: one address on one interface."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv6Interface

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.address import ADDRESS, address
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    flag,
    link_reference,
    no_networks,
    optional,
    required,
    text,
)
from holdfast.resources.spec.values import interface_address

_INTERFACE = "the interface the address stands on"
_ADDRESS = (
    "the address; of several in one subnet of an interface, packets are sent from the one that is"
    " declared first"
)
_EXCLUSIVE = "no other address of this family may be on the interface, whoever put it there"
_OVERLAP = (
    "let its prefix overlap one on another interface, declared or not; needs `allowOverlapReason`"
)
_REASON = "why the overlap is wanted"


class IPv4StaticAddress(Spec):
    interface: str = required(link_reference(), _INTERFACE)
    address: IPv4Interface = required(interface_address(4), _ADDRESS)
    exclusive: bool = optional(flag(), _EXCLUSIVE, default=False)
    allow_overlap: bool = optional(flag(), _OVERLAP, default=False)
    allow_overlap_reason: str | None = optional(text(reach=no_networks), _REASON)


class IPv6StaticAddress(Spec):
    interface: str = required(link_reference(), _INTERFACE)
    address: IPv6Interface = required(interface_address(6), "the address")
    exclusive: bool = optional(flag(), _EXCLUSIVE, default=False)
    allow_overlap: bool = optional(flag(), _OVERLAP, default=False)
    allow_overlap_reason: str | None = optional(text(reach=no_networks), _REASON)


StaticAddress = IPv4StaticAddress | IPv6StaticAddress


def check(resource: Resource) -> Iterator[Fault]:
    spec: StaticAddress = resource.spec
    if spec.allow_overlap and spec.allow_overlap_reason is None:
        yield Fault(("allowOverlap",), "needs allowOverlapReason to say why")
    if spec.allow_overlap_reason is not None and not spec.allow_overlap:
        yield Fault(("allowOverlapReason",), "has no meaning without `allowOverlap: true`")


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: StaticAddress = resource.spec
    dev = site.ifname(spec.interface)
    artifact = address(
        spec.address,
        dev,
        vrf=site.vrf_tables.get(dev, 0),
        exclusive=spec.exclusive,
        allow_overlap=spec.allow_overlap,
        primary=site.is_primary(dev, spec.address),
    )
    yield Intent(resource.id, artifact, resource.place, requires=site.link_key(dev))


KINDS = (
    Kind(
        IPv4StaticAddress,
        "An IPv4 address on an interface.",
        (ADDRESS.name,),
        "interface: lan\naddress: 192.0.2.1/24\n",
        intents,
        check,
        open_to_others=nothing_against,
        static_address=True,
    ),
    Kind(
        IPv6StaticAddress,
        "An IPv6 address on an interface.",
        (ADDRESS.name,),
        "interface: lan\naddress: 2001:db8::1/64\n",
        intents,
        check,
        open_to_others=nothing_against,
        static_address=True,
    ),
)
