"""IPv6DelegatedAddress: an address in one subnet of a delegated prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface, IPv6Network
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.engine.intent import Intent, Waiting
from holdfast.engine.kinds.address import ADDRESS, address
from holdfast.resources.facts import GONE
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    flag,
    link_reference,
    no_networks,
    optional,
    parsed,
    reference,
    required,
)
from holdfast.resources.spec.values import any_ipv6
from holdfast.resources.wan.prefix_delegation import SUBNET_LENGTH, IPv6PrefixDelegation


def parse_suffix(text: str) -> IPv6Address:
    try:
        found = IPv6Address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not the end of an IPv6 address, such as ::1") from None
    if int(found) >> SUBNET_LENGTH:
        raise ValueError(f"{text} is more than the last {128 - SUBNET_LENGTH} bits of an address")
    if not int(found):
        raise ValueError(f"{text} is the address of all routers of a subnet; give another, as ::1")
    return found


def _subnet_id() -> Shape:
    def read(value: Any) -> str:
        shown = str(value) if type(value) is int else value
        if not isinstance(shown, str) or not re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,16}", shown):
            raise ValueError(f"{value!r} is not the number of a subnet, such as 0, 12 or 0xc")
        return shown

    pattern = "^(0[xX])?[0-9a-fA-F]{1,16}$"
    json = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": pattern}]}
    return Shape(read, json, "number, also as 0x…", reach=no_networks)


class IPv6DelegatedAddress(Spec):
    prefix_delegation: str = required(reference(IPv6PrefixDelegation), "whose prefix")
    interface: str = required(link_reference(), "the link the address stands on")
    subnet_id: str = optional(
        _subnet_id(),
        "which /64 of the prefix, counted from 0. In files of routerd.net it is hexadecimal even"
        " without 0x",
        default="0",
        name="subnetID",
    )
    address_suffix: IPv6Address = required(
        parsed(parse_suffix, "end of an IPv6 address", reach=any_ipv6),
        "the last 64 bits of the address",
    )
    send_ra: bool | None = optional(
        flag(),
        "router advertisements are sent on the link: an IPv6DHCPScope for it has to be declared",
        name="sendRA",
    )
    announce: bool | None = optional(
        flag(), "its prefix is in the router advertisements of that IPv6DHCPScope"
    )


def subnet_number(resource: Resource) -> int:
    text = resource.spec.subnet_id
    return int(text, 10 if text.isdecimal() and not resource.alias else 16)


def check(resource: Resource) -> Iterator[Fault]:
    text = resource.spec.subnet_id
    if not resource.alias and text[:2] not in ("0x", "0X") and not text.isdecimal():
        yield Fault(("subnetID",), f"{text!r} is hexadecimal: write 0x{text}")


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no address now."""

    reason: str
    keeps: bool  # as in Waiting


def resolve(resource: Resource, site: Site) -> IPv6Interface | Missing:
    """The address that an IPv6DelegatedAddress stands for."""
    spec: IPv6DelegatedAddress = resource.spec
    uplink = site.ifname(site.get(IPv6PrefixDelegation, spec.prefix_delegation).spec.interface)
    found = site.facts.delegations.get(uplink)
    if found is None:
        return Missing(f"waits for a delegated prefix on {uplink}", keeps=True)
    if found is GONE or not found:
        reason = f"waits for a delegated prefix on {uplink}; none is given at present"
        return Missing(reason, keeps=False)
    return within(found[0], subnet_number(resource), spec.address_suffix)


def within(prefix: IPv6Network, subnet: int, suffix: IPv6Address) -> IPv6Interface | Missing:
    """The address of this end in one subnet of a prefix."""
    spare = SUBNET_LENGTH - prefix.prefixlen
    if spare < 0:
        reason = f"the delegated prefix {prefix} is smaller than a /{SUBNET_LENGTH}"
        return Missing(reason, keeps=False)
    if subnet >> spare:
        last = (1 << spare) - 1
        has = f"subnets 0 to {last:#x}" if last else "subnet 0 only"
        reason = f"subnet {subnet:#x} is outside of the delegated prefix {prefix}, which has {has}"
        return Missing(reason, keeps=False)
    number = int(prefix.network_address) | subnet << SUBNET_LENGTH | int(suffix)
    return IPv6Interface((number, SUBNET_LENGTH))


def intents(resource: Resource, site: Site) -> Iterator[Intent | Waiting]:
    found = resolve(resource, site)
    if isinstance(found, Missing):
        yield Waiting(resource.id, resource.place, found.reason, found.keeps)
        return
    dev = site.ifname(resource.spec.interface)
    artifact = address(found, dev, vrf=site.vrf_tables.get(dev, 0))
    yield Intent(resource.id, artifact, resource.place, requires=site.link_key(dev))


KINDS = (
    Kind(
        IPv6DelegatedAddress,
        "An address of the router in one /64 of a delegated prefix. Where several prefixes are"
        " delegated it is in the first. With another prefix comes another address, and the old one"
        " is removed.",
        (ADDRESS.name,),
        "prefixDelegation: wan\ninterface: lan\nsubnetID: 0\naddressSuffix: ::1\n",
        intents,
        check,
        open_to_others=nothing_against,
        cross_checks="wan.dhcp_client_checks",
        needs_facts=True,
        brings_addresses=True,
        behind=lambda _resource, version: None if version == 6 else (),
    ),
)
