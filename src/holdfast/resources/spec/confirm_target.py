"""What has to answer after a change as it did before: targets of `spec.confirm`."""

from __future__ import annotations

import re

from holdfast.dataclass import dataclass
from holdfast.resources.spec.values import Address, parse_address

_WITH_PORT = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfirmTarget:
    address: Address
    port: int = 0  # 0: it answers a ping; else it takes a TCP connection there

    def __str__(self) -> str:
        if not self.port:
            return str(self.address)
        shown = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{shown}:{self.port}"


def parse_target(text: str) -> ConfirmTarget:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = parse_address((found["v6"] or found["v4"]) if found else text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a target: an address, or an address and a port such as"
            " 192.0.2.1:443 or [2001:db8::1]:443"
        ) from None
    port = int(found["port"]) if found else 0
    if found and not 1 <= port <= 65535:
        raise ValueError(f"{text!r}: {port} is not a port from 1 to 65535")
    if address.is_multicast or address.is_unspecified or address.is_link_local:
        raise ValueError(f"{text!r} cannot be asked: it must be the address of one host")
    return ConfirmTarget(address, port)
