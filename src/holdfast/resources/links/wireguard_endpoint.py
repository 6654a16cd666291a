"""Where a WireGuard peer is: an address, or a name to be looked up, and a port."""

from __future__ import annotations

import re

from holdfast.dataclass import dataclass
from holdfast.resources.facts import Lookup
from holdfast.resources.site import Site
from holdfast.resources.spec.dns_name import parse_domain
from holdfast.resources.spec.shape import Shape, parsed
from holdfast.resources.spec.values import Address, parse_address

_WHOLE = re.compile(r"(?:\[([^][]+)\]|([^][:]+)):([0-9]{1,5})")
_FAMILIES = {None: (4, 6), "ipv4": (4,), "ipv6": (6,)}


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: Address | str  # a str is a name
    port: int

    def at(self, address: Address) -> str:
        return f"[{address}]:{self.port}" if address.version == 6 else f"{address}:{self.port}"

    def lookups(self, family: str | None) -> tuple[Lookup, ...]:
        """The questions to the DNS, in the order in which their answers are preferred."""
        if not isinstance(self.host, str):
            return ()
        return tuple(Lookup(self.host, version) for version in _FAMILIES[family])

    def resolve(self, family: str | None, site: Site) -> str | None:
        """None while it is not known. Of several addresses the lowest, so that an answer in
        another order is no other answer."""
        if not isinstance(self.host, str):
            return self.at(self.host)
        for lookup in self.lookups(family):
            answers = site.facts.answers.get(lookup)
            if answers is None:
                return None
            fitting = [answer for answer in answers if answer.version == lookup.family]
            if fitting:
                return self.at(min(fitting, key=int))
        return None


def parse_endpoint(text: str) -> Endpoint:
    found = _WHOLE.fullmatch(text)
    if found is None or not 1 <= int(found[3]) <= 65535:
        raise ValueError(
            f"{text!r} is not an endpoint such as 192.0.2.1:51820, [2001:db8::1]:51820 or"
            " vpn.example.net:51820"
        )
    six, host, port = found.groups()
    if six is None and re.search(r"[^0-9.]", host):
        return Endpoint(parse_domain(host), int(port))
    address = parse_address(six or host, 4 if six is None else 6)
    if address.is_unspecified or address.is_multicast or address.is_link_local:
        raise ValueError(f"{address} cannot be where a peer is")
    return Endpoint(address, int(port))


def endpoint() -> Shape:
    return parsed(parse_endpoint, "address or name, and port", {"pattern": ":[0-9]{1,5}$"})
