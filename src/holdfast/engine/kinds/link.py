"""Links: network interfaces, existing or created."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Fields, Key, Value

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
}


def matches(field: str, desired: Value, seen: Value) -> bool:
    """The peer of a veth has no name here once it was moved to another network namespace."""
    return desired == seen or (field == "peer" and seen == "")


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
    " `state: absent` deletes a link that Holdfast created",
    deletes_orphans=False,
    pins=("type", "ifindex"),
    matches=matches,
    immutable=frozenset(
        {
            "type",
            "parent",
            "vlan_id",
            "vlan_protocol",
            "vni",
            "local",
            "remote",
            "port",
            "table",
            "peer",
            "mode",
        }
    ),
)


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
    return Artifact(Key("link", name), fields)
