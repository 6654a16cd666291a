"""The local address that the console and the metrics are served on."""

from __future__ import annotations

import ipaddress

from holdfast.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Listen:
    host: str
    port: int

    @property
    def shown(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def names(self) -> frozenset[str]:
        """What a browser on this machine may call it. Any other name is one that somebody else's
        page had resolve to here, to read what it shows."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset(f"{name}:{self.port}" for name in (host, "localhost")) | frozenset(
            (host, "localhost") if self.port == 80 else ()
        )


DEFAULT = Listen("127.0.0.1", 9473)


def parse_listen(text: str) -> Listen:
    """Raises ValueError that says what is expected."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(
            f"{text!r} is not an address and port such as 127.0.0.1:9473 or [::1]:9473"
        )
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(f"{host!r} is not an IP address") from None
    if not address.is_loopback:
        raise ValueError(
            f"{address} is not an address of the loopback: what is shown is for this machine alone."
            " To look from elsewhere, forward the port with ssh -L"
        )
    return Listen(str(address), int(port))
