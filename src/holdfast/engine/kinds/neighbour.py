"""Permanent neighbour entries (static ARP and ND)."""

from __future__ import annotations

import ipaddress

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

NEIGHBOUR = ArtifactKind(
    name="neighbour",
    identity="address and link",
    fields=("mac", "state"),
    surplus=("state",),  # seen where it is not permanent
    proof="the kernel tag NDA_PROTOCOL; where the kernel has none, a claim",
    cleanup="deleted when tagged or claimed, re-read just before",
    deletes_orphans=True,
    purpose=lambda fields: fields.get("address"),
    writer_field="protocol",
    after=("link",),
    tells_its_maker=True,
)


def neighbour(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, dev: str, mac: str) -> Artifact:
    """mac: lower case, colons."""
    return Artifact(
        Key("neighbour", f"{ip} dev {dev}"), {"address": str(ip), "dev": dev, "mac": mac}
    )
