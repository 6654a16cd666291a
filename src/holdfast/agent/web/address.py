"""The local address that the console and the metrics are served on."""

from __future__ import annotations

import ipaddress

from holdfast.web.address import Listen

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
