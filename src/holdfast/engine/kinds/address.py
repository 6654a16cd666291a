"""IP addresses on links."""

from __future__ import annotations

import ipaddress

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

ADDRESS = ArtifactKind(
    name="address",
    identity="address and link; for IPv4 the prefix length too (the kernel keeps 10.0.0.1/24 and"
    " 10.0.0.1/16 side by side, but only one prefix length for an IPv6 address)",
    fields=("prefix_length", "scope", "no_prefix_route"),
    proof="the kernel tag IFA_PROTO; where the kernel has none (before 5.18), a claim",
    cleanup="deleted when tagged or claimed, re-read just before, and only if no other program's"
    " address or route would go with it",
    deletes_orphans=True,
    writer_field="protocol",
    after=("link",),
    immutable=frozenset({"prefix_length"}),
)


def address_key(interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface, dev: str) -> Key:
    shown = str(interface) if interface.version == 4 else str(interface.ip)
    return Key("address", f"{shown} dev {dev}")


def scope_of(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The scope the kernel gives an IPv6 address, and `ip` an IPv4 one."""
    if ip.is_loopback:
        return "host"
    if ip.version == 6 and ip.is_link_local:
        return "link"
    return "global"


def address(
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface,
    dev: str,
    *,
    scope: str = "",
    no_prefix_route: bool = False,
) -> Artifact:
    """scope: "global", "link", "host"; derived from the address where not given."""
    return Artifact(
        address_key(interface, dev),
        {
            "address": str(interface.ip),
            "dev": dev,
            "prefix_length": interface.network.prefixlen,
            "scope": scope or scope_of(interface.ip),
            "no_prefix_route": no_prefix_route,
        },
    )
