"""IP addresses on links."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    Key,
    NamedBy,
    Naming,
    PartialLook,
    Value,
)
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb


class PrefixRoute(StrEnum):
    """Seen as `no_prefix_route` where it has one by right, and only that route was deleted."""

    LOST = "its route was deleted"


LOST = PrefixRoute.LOST


def matches(field: str, desired: Value, seen: Value) -> bool:
    """What is brought back is never a route that was lost."""
    return desired == seen or (field == "no_prefix_route" and (desired, seen) == (LOST, False))


def objection(wanted: Artifact, other: Artifact) -> str:
    """An address declared exclusive stands alone on its link; one prefix on two links leaves the
    kernel to guess which of them leads there, unless that was allowed."""
    mine, theirs = _interface(wanted), _interface(other)
    if mine.version != theirs.version or theirs.is_link_local or theirs.is_loopback:
        return ""
    if _dev(wanted) == _dev(other):
        return "declared exclusive" if wanted.fields.get("exclusive") else ""
    same_domain = wanted.fields.get("vrf", 0) == other.fields.get("vrf", 0)
    if same_domain and not wanted.fields.get("allow_overlap") and _overlap(mine, theirs):
        return "the prefixes overlap"
    return ""


def _interface(artifact: Artifact) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    shown = artifact.key.name.split(" ", 1)[0]
    length = "" if "/" in shown else f"/{artifact.fields.get('prefix_length', 128)}"
    return ipaddress.ip_interface(shown + length)


def _dev(artifact: Artifact) -> str:
    return artifact.key.name.split(" ")[2]


def _overlap(
    mine: ipaddress.IPv4Interface | ipaddress.IPv6Interface,
    theirs: ipaddress.IPv4Interface | ipaddress.IPv6Interface,
) -> bool:
    return mine.ip in theirs.network or theirs.ip in mine.network


def vital(artifact: Artifact) -> str:
    """A link without an address of a family is of no use to whoever lives behind it."""
    return f"IPv{_interface(artifact).version} on {_dev(artifact)}"


def purposes(artifact: Artifact) -> frozenset[str]:
    """The address itself, on whichever link; and the link's address, whichever it is."""
    return frozenset({str(_interface(artifact).ip), vital(artifact)})


def urgent(artifact: Artifact, operation: Operation) -> str:
    """One that somebody deleted, or the route of its prefix. One that is there and of no use is
    another's as well, as like as not (a duplicate): to put that back again and again helps
    nobody."""
    if operation.verb is Verb.CREATE or any(change.before == LOST for change in operation.changes):
        return vital(artifact)
    return ""


def risk(verb: Verb, subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if [change.before for change in changes] == [LOST]:
        return Risk.LOW, "the kernel's route to its prefix comes back"
    assert isinstance(subject, Artifact)  # noqa: S101 (addresses come one by one)
    return Risk.HIGH, f"connections to {subject.fields.get('address')} end"


def shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    """The name of an IPv6 address is without its prefix length: the kernel keeps only one."""
    address, _, rest = name.partition(" ")
    if "/" not in address and "prefix_length" in fields:
        address += f"/{fields['prefix_length']}"
    words = ["address", address, rest]
    if fields.get("scope", "global") != "global":
        words += ["scope", fields["scope"]]
    if fields.get("no_prefix_route") is True:
        words.append("noprefixroute")
    return words


ADDRESS = ArtifactKind(
    name="address",
    identity="address and link; for IPv4 the prefix length too (the kernel keeps 10.0.0.1/24 and"
    " 10.0.0.1/16 side by side, but only one prefix length for an IPv6 address)",
    fields=("prefix_length", "peer", "scope", "no_prefix_route", "duplicate", "secondary"),
    # Seen where the kernel's check found another with that address; and where it stands behind
    # another of ours that was declared after it.
    surplus=("duplicate", "secondary"),
    proof="the kernel tag IFA_PROTO; where the kernel has none (before 5.18), a claim",
    cleanup="deleted when tagged or claimed, re-read just before, and only if no other program's"
    " address or route would go with it",
    deletes_orphans=True,
    writer_field="protocol",
    after=("link",),
    immutable=lambda _seen, field, _desired: field in ("prefix_length", "peer"),
    matches=matches,
    objection=objection,
    vital=vital,
    urgent=urgent,
    risk=risk,
    purposes=purposes,
    partial_look=PartialLook.KIND,
    tagged=True,
    # Whether it could stand beside others' was asked when it was made.
    made_again_with={"allow_overlap": True},
    carrying_link=lambda key: key.name.rpartition(" dev ")[2],
    shown=shown,
    naming=Naming(aliases=("addr",), by=NamedBy.ADDRESS),
    tells_its_maker=True,
)


def address_key(interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface, dev: str) -> Key:
    shown = str(interface) if interface.version == 4 else str(interface.ip)
    return Key(ADDRESS.name, f"{shown} dev {dev}")


def scope_of(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The scope the kernel gives an IPv6 address, and `ip` an IPv4 one."""
    if ip.is_loopback:
        return "host"
    if ip.version == 6 and ip.is_link_local:
        return "link"
    if ip.version == 6 and ip.is_site_local:
        return "site"
    return "global"


def address(
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface,
    dev: str,
    *,
    scope: str = "",
    no_prefix_route: bool = False,
    vrf: int = 0,
    exclusive: bool = False,
    allow_overlap: bool = False,
    primary: bool = False,
) -> Artifact:
    """scope: "global", "link", "host"; derived from the address where not given. vrf: the table of
    the VRF that the link is in. exclusive, allow_overlap: what is declared about other addresses.
    primary: it comes before others that are declared in its subnet.
    """
    fields: dict[str, Value] = {
        "address": str(interface.ip),
        "dev": dev,
        "prefix_length": interface.network.prefixlen,
        "peer": "",  # the far end of a point-to-point address; Holdfast makes none
        "scope": scope or scope_of(interface.ip),
        "no_prefix_route": no_prefix_route,
    }
    # Not compared: what `objection` and the driver need to know.
    standing = {
        "vrf": vrf,
        "exclusive": exclusive,
        "allow_overlap": allow_overlap,
        "primary": primary,
    }
    fields.update((name, value) for name, value in standing.items() if value)
    return Artifact(address_key(interface, dev), fields)
