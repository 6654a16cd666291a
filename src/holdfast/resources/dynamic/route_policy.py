"""What a policy says of routes that a source has advertised, and of whom it may speak to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from holdfast.resources.spec.values import Network

HOST_ONLY, SUBNET, ANY = "host_only", "subnet", "any"
_MOST_AS = (1 << 32) - 1
# Of IPv4; a subnet of IPv6 is anything but a host.
_WIDEST, _NARROWEST = 8, 28


class Numbers(NamedTuple):
    """AS numbers, both ends included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


EVERY = Numbers(1, _MOST_AS)


def parse_numbers(text: str) -> Numbers:
    found = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", text)
    if found is None:
        raise ValueError(f"{text!r} is neither the number of an AS nor a range such as 64512-65534")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 < first <= last <= _MOST_AS:
        raise ValueError(f"{text!r} is not within 1 to {_MOST_AS}, the lower number first")
    return Numbers(first, last)


def length_trouble(rule: str, network: Network) -> str:
    """Why a prefix is too short or too long to be advertised; empty where it is not."""
    length, most = network.prefixlen, network.max_prefixlen
    if rule == HOST_ONLY and length != most:
        return f"{network} is no single host (/{most})"
    if rule != SUBNET:
        return ""
    if network.version == 6:
        return f"{network} is a single host, and no subnet" if length == most else ""
    if _WIDEST <= length <= _NARROWEST:
        return ""
    return f"{network} is no subnet from /{_WIDEST} to /{_NARROWEST}"


def holds_peer(allowed: Iterable[Network], peer: str) -> bool:
    address = ip_address(peer)
    return any(address.version == one.version and address in one for one in allowed)


def holds_number(allowed: Iterable[Numbers], number: int) -> bool:
    return any(numbers.first <= number <= numbers.last for numbers in allowed)
