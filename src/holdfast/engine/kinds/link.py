"""Links: network interfaces, existing or created."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    Fields,
    Key,
    Naming,
    Value,
    in_words,
)
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

# Link types Holdfast can create, and the fields each takes besides those every link has.
TYPES: dict[str, tuple[str, ...]] = {
    "bridge": ("stp", "vlan_filtering"),
    "vlan": ("parent", "vlan_id", "vlan_protocol"),
    "vxlan": ("vni", "local", "remote", "port", "parent", "learning"),
    "vrf": ("table",),
    "dummy": (),
    "veth": ("peer",),
    "bond": ("mode", "miimon"),
    "macvlan": ("parent", "mode"),
    "ip6tnl": ("local", "remote", "parent", "mode", "encap_limit", "hop_limit"),
    "wireguard": (),
}

# What the kernel changes only by another link, whatever it says when asked: a vxlan that is given
# another parent floods through the old one still.
_IMMUTABLE = frozenset(
    {
        "type", "parent", "vlan_id", "vlan_protocol", "vni", "local", "remote", "port", "table",
        "peer", "mode",
    }
)  # fmt: skip


_IPV6_LEAST_MTU = 1280


# What some links let be changed only while they are down.
_WHILE_DOWN = frozenset({"mac", "master"})


# What can wait in a fight.
_AT_LEISURE = frozenset({"alias", "mtu", "mac"})


# An end of these that nobody wants any more still takes packets in, or stands in the way of another
# tunnel between the same ends.
_TUNNELS = frozenset({"ip6tnl", "wireguard"})


# The MAC of these is the one of a port or of the link below. Once it was set it no longer follows.
_FOLLOWERS = frozenset({"bridge", "bond", "vlan"})


def follows(seen: Fields) -> frozenset[str]:
    return frozenset({"mac"}) if seen.get("type") in _FOLLOWERS else frozenset()


def is_tunnel(seen: Fields) -> bool:
    return seen.get("type") in _TUNNELS


def matches(field: str, desired: Value, seen: Value) -> bool:
    """The peer of a veth has no name here once it was moved to another network namespace."""
    return desired == seen or (field == "peer" and seen == "")


def immutable(seen: Fields, field: str, desired: Value) -> bool:
    if field not in _IMMUTABLE:
        return False
    if seen.get("type") == "ip6tnl":
        return field not in TYPES["ip6tnl"]
    if seen.get("type") == "vxlan" and field in ("local", "remote"):
        return not _is_other_unicast(seen.get(field), desired)
    return True


def _is_other_unicast(before: Value, after: Value) -> bool:
    """An end of a vxlan can move within its family. Kernels before 6.15 leave and join no
    multicast group for it, and which family a vxlan without ends is of cannot be seen."""
    if not before or not after:
        return False
    old, new = (ipaddress.ip_address(str(end)) for end in (before, after))
    return old.version == new.version and not (old.is_multicast or new.is_multicast)


def interrupts(operation: Operation) -> str:
    """Bonds and VRFs take no link that is up, and some drivers no MAC while it is."""
    if operation.verb is Verb.DELETE:
        return "goes"
    if operation.verb is Verb.REPLACE:
        return "goes, and comes again"
    changed = {change.field: change for change in operation.changes}
    if "up" in changed and changed["up"].after is False:
        return "goes down"
    seen = operation.observed
    is_up = isinstance(seen, Artifact) and seen.fields.get("up") is True
    return "may go down for a moment" if is_up and changed.keys() & _WHILE_DOWN else ""


def urgent(artifact: Artifact, operation: Operation) -> str:
    """Addresses, routes and tunnels stand on a link, or on the bridge that it is a port of. What it
    is called and how large its packets are takes nothing away with it; and to set a MAC again may
    take the link down each time."""
    changed = {change.field for change in operation.changes}
    if operation.verb is Verb.UPDATE and changed <= _AT_LEISURE:
        return ""
    return f"what is behind {artifact.key.name}"


def risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb in (Verb.REPLACE, Verb.DELETE):
        return Risk.HIGH, "its addresses and routes go with it"
    changed = {change.field: change.after for change in changes}
    if changed.get("up") is False:
        return Risk.HIGH, "traffic through it stops"
    if changed.keys() & {"master", "mac"}:
        return Risk.HIGH, "traffic through it is interrupted"
    mtu = changed.get("mtu")
    if isinstance(mtu, int) and mtu < _IPV6_LEAST_MTU:
        return Risk.HIGH, "there is no IPv6 over it with an MTU that small"
    if mtu is not None:
        return Risk.MEDIUM, "large packets are treated differently at once"
    return Risk.LOW, ""


def shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    words = ["link", name]
    if fields.get("type"):
        words += ["type", fields["type"]]
    for field, given in fields.items():
        if field in ("type", "up", "ifindex") or given in (None, ""):
            continue
        words += [field, in_words(given)]
    if "up" in fields:
        words.append("up" if fields["up"] else "down")
    return words


LINK = ArtifactKind(
    name="link",
    identity="interface name",
    fields=(
        "type",
        "up",
        "mtu",
        "mac",
        "master",
        "alias",
        *sorted({f for t in TYPES.values() for f in t}),
    ),
    proof="a claim: links carry no kernel tag. A created link is found again after a crash by a"
    " random number in its group field, until the claim is settled",
    cleanup="never deleted as an orphan: other programs may have come to depend on it."
    " `state: absent` deletes a link that Holdfast created. Only a tunnel (ip6tnl, wireguard) that"
    " Holdfast created is deleted with what declared it, unless something of others depends on it",
    deletes_orphans=False,
    deletes_created=is_tunnel,
    pins=("type", "ifindex"),
    matches=matches,
    immutable=immutable,
    follows=follows,
    urgent=urgent,
    interrupts=interrupts,
    risk=risk,
    carrying_link=lambda key: key.name,
    shown=shown,
    # A VLAN link and a kernel setting may both have dots in their names.
    naming=Naming(aliases=("dev", "interface"), guessed=lambda _word: True),
)


def link_key(name: str) -> Key:
    return Key(LINK.name, name)


def link(name: str, fields: Fields) -> Artifact:
    """A link with the fields given; an absent field is not managed.

    type: a key of TYPES, "" for a link Holdfast cannot create (a NIC). up: bool. mtu: int.
    mac: lower case, colons. master, parent, peer: link names ("" for none). alias: str.
    stp, vlan_filtering, learning: bool. vlan_id, vni, port, table, miimon, hop_limit: int.
    encap_limit: "none" or a number as text.
    vlan_protocol: "802.1q" | "802.1ad". local, remote: addresses ("" for none).
    mode: bond ("balance-rr" "active-backup" "balance-xor" "broadcast" "802.3ad" "balance-tlb"
    "balance-alb"), macvlan ("private" "vepa" "bridge" "passthru") or ip6tnl ("ipip6" "ip6ip6"
    "any").
    """
    return Artifact(link_key(name), fields)
