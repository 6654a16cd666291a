"""Which link keeps another one from being made. The kernel says that there is one, or not even
that, and never which: after a rename it is most often the link under its old name."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.driver import Result
from holdfast.engine.kinds.link import link_key
from holdfast.engine.plan import Operation
from holdfast.host import steps
from holdfast.host.netlink.links import link_codec, link_losses
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket

Links = Mapping[str, Fields]  # as the kernel has them, by name

# Fields that no two links of a type can share: all of them together, as far as they are declared.
_SHARED_BY_NONE = {
    "vlan": ("parent", "vlan_id", "vlan_protocol"),
    "vxlan": ("vni", "port"),
    "ip6tnl": ("local", "remote", "parent"),
}


class Obstacle(NamedTuple):
    name: str
    has: str
    owner: str = ""  # the link that it comes and goes with, where that is another one


def not_made(
    sock: NetlinkSocket, operation: Operation, error: NetlinkError, is_ours: Callable[[Key], bool]
) -> Result:
    """EEXIST is also said of a peer's name, a VNI or a VLAN that is taken, and EINVAL of a MACVLAN
    beside one that shares its parent with no other."""
    artifact, met = steps.single(operation), error.errno == errno.EEXIST
    if met and link_codec.find_link(sock, artifact.key.name) is not None:
        return steps.failed(operation, str(error), exists=True)
    links = link_losses.read_links(sock) if met or error.errno == errno.EINVAL else {}
    found = obstacle(artifact, links)
    said = f"{error}; {told(found, is_ours)}" if found is not None else str(error)
    return steps.failed(operation, said, obstructed=met or found is not None)


def obstacle(wanted: Artifact, links: Links) -> Obstacle | None:
    """None: none that shows."""
    fields = wanted.fields
    kind, peer, parent = (str(fields.get(name, "")) for name in ("type", "peer", "parent"))
    if kind == "veth" and peer in links:
        return Obstacle(peer, "has the name of its peer", str(links[peer].get("peer", "")))
    others = {
        name: seen
        for name, seen in links.items()
        if name != wanted.key.name and seen["type"] == kind
    }
    if kind == "macvlan":
        for name, seen in others.items():
            modes = (fields.get("mode"), seen["mode"])
            if seen["parent"] == parent and "passthru" in modes:
                return Obstacle(name, f"is on {parent}, which passthru shares with no other")
        return None
    said = {name: fields[name] for name in _SHARED_BY_NONE.get(kind, ()) if name in fields}
    shown = ", ".join(f"{name} {value}" for name, value in said.items() if value)
    for name, seen in others.items() if said else ():
        if all(seen[field] == value for field, value in said.items()):
            return Obstacle(name, f"has {shown}")
    return None


def told(found: Obstacle, is_ours: Callable[[Key], bool]) -> str:
    """What is in the way, and what to do about it."""
    ours = next((one for one in (found.name, found.owner) if one and is_ours(link_key(one))), "")
    said = f"link {found.name} {found.has}"
    if not ours:
        return f"{said}: remove it by hand, or change the configuration"
    through = "" if ours == found.name else f", as the other end of {ours}"
    return (
        f"{said}{through}, and Holdfast made it: give the link its old name `{ours}` again, or"
        f" declare an Interface with `ifname: {ours}` and `state: absent`, which deletes that one"
    )
