"""Permanent neighbour entries (static ARP and ND)."""

from __future__ import annotations

import ipaddress

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, NamedBy, Naming, PartialLook

NEIGHBOUR = ArtifactKind(
    name="neighbour",
    identity="address and link",
    fields=("mac", "state"),
    surplus=("state",),  # seen where it is not permanent
    proof="the kernel tag NDA_PROTOCOL; where the kernel has none, a claim",
    cleanup="deleted when tagged or claimed, re-read just before",
    deletes_orphans=True,
    purposes=lambda entry: frozenset({str(entry.fields.get("address"))}),
    writer_field="protocol",
    after=("link",),
    # A gateway whose MAC is not right is not reached.
    urgent=lambda neighbour, _operation: f"what goes to {neighbour.key.name}",
    tells_its_maker=True,
    partial_look=PartialLook.KIND,
    tagged=True,
    shown=lambda name, fields: ["neighbour", name, "lladdr", str(fields.get("mac"))],
    naming=Naming(aliases=("neigh", "neighbor"), by=NamedBy.ADDRESS),
)


def neighbour_key(ip: ipaddress.IPv4Address | ipaddress.IPv6Address | str, dev: str) -> Key:
    return Key(NEIGHBOUR.name, f"{ip} dev {dev}")


def neighbour(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, dev: str, mac: str) -> Artifact:
    """mac: lower case, colons."""
    return Artifact(neighbour_key(ip, dev), {"address": str(ip), "dev": dev, "mac": mac})
