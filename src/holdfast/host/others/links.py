"""Links of others that went with one of ours, and what the kernel changed of those that stayed.

A link that was made anew, ours or theirs, has an index and a MAC of its own, and nobody chose how
else it is: it becomes what it was. Of one that stayed only what follows other links is set: its
place in a bridge, whether it is up, its MTU, the MAC of what has none of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.dataclass import dataclass
from holdfast.host.netlink import attributes, link_codec, steps
from holdfast.host.netlink.link_codec import (
    IFF_UP,
    IFLA_ADDRESS,
    IFLA_GROUP,
    IFLA_IFALIAS,
    IFLA_MASTER,
    IFLA_MTU,
    header,
)
from holdfast.host.netlink.link_types import (
    IFLA_LINK,
    IFLA_LINK_NETNSID,
    IFLA_LINKINFO,
    INFO_DATA,
    INFO_KIND,
    kind_of,
)
from holdfast.host.netlink.names import IFLA_IFNAME
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkError, NetlinkSocket
from holdfast.host.others.replay import Indexes, Unmapped

_RTM_NEWLINK = 16
_IFLA_TXQLEN = 13
# Where an index of a link stands inside of what a type says of itself.
_INNER_LINK = {"vxlan": 3, "ip6tnl": 1, "sit": 1, "ipip": 1, "gre": 1, "gretap": 1}
_FOLLOWERS = ("bridge", "bond", "vlan")
_UPPERS = ("vlan", "macvlan", "macvtap", "ipvlan")


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it was told."""

    body: bytes
    index: int
    name: str
    kind: str
    up: bool
    said: Mapping[int, bytes]

    def number(self, attribute: int) -> int:
        return attributes.to_int(self.said.get(attribute, b""))


def decode(body: bytes) -> Link:
    said = attributes.parse(body, 16)
    up = bool(attributes.to_int(body[8:12]) & IFF_UP)
    name = attributes.to_text(said[IFLA_IFNAME])
    return Link(body, attributes.to_int(body[4:8]), name, kind_of(said), up, said)


def make(sock: NetlinkSocket, link: Link, indexes: Indexes) -> str:
    """A link of others that is gone; answers why it cannot be made, or "". Raises Unmapped."""
    if not link.kind:
        return "it is no link that can be made"
    if IFLA_LINK_NETNSID in link.said:
        return "it was tied to a link of another network namespace"
    base = attributes.text(IFLA_IFNAME, link.name)
    lower = link.said.get(IFLA_LINK)
    if lower is not None and link.kind in _UPPERS:
        base += attributes.attribute(IFLA_LINK, indexes.now(lower))
    for name in (IFLA_ADDRESS, IFLA_MTU, _IFLA_TXQLEN):
        if name in link.said:
            base += attributes.attribute(name, link.said[name])
    error: NetlinkError | None = None
    # A kernel may tell more of a type than it takes: then it is made with its defaults.
    for data in (_data(link, indexes), _essentials(link, indexes)):
        info = attributes.text(INFO_KIND, link.kind)
        if data:
            info += attributes.nested(INFO_DATA, data)
        message = header() + base + attributes.nested(IFLA_LINKINFO, info)
        error = steps.send(sock, _RTM_NEWLINK, CREATE | EXCL, message)
        if error is None:
            return ""
    return str(error)


def _data(link: Link, indexes: Indexes) -> bytes:
    found = _said_of_type(link)
    inner = _INNER_LINK.get(link.kind)
    if inner is not None and any(found.get(inner, b"")):
        found[inner] = indexes.now(found[inner])
    return b"".join(attributes.attribute(name, value) for name, value in found.items())


def _essentials(link: Link, indexes: Indexes) -> bytes:
    """What a link of its type cannot be made without: the number of a VLAN, vxlan or VRF, the mode
    of a macvlan, and the link below. In all of them these come first."""
    found = _said_of_type(link)
    kept = {name: value for name, value in found.items() if name in (1, _INNER_LINK.get(link.kind))}
    inner = _INNER_LINK.get(link.kind)
    if inner in kept and any(kept[inner]):
        kept[inner] = indexes.now(kept[inner])
    return b"".join(attributes.attribute(name, value) for name, value in kept.items())


def _said_of_type(link: Link) -> dict[int, bytes]:
    return attributes.parse(attributes.parse(link.said[IFLA_LINKINFO]).get(INFO_DATA, b""))


def set_back(sock: NetlinkSocket, before: Link, now: Link, indexes: Indexes) -> Iterator[str]:
    """Sets what is to be; tells what was set, or "cannot …"."""
    anew = now.index != before.index
    settings: list[tuple[str, bytes, int]] = []
    master = before.number(IFLA_MASTER)
    if master and not now.number(IFLA_MASTER):
        try:
            packed = indexes.now(before.said[IFLA_MASTER])
            told = f"its place in {indexes.before[master]}"
            settings.append((told, attributes.attribute(IFLA_MASTER, packed), 0))
        except Unmapped as missing:
            yield f"cannot put it back where it was: {missing}"
    lower_mtu = before.kind in _UPPERS and now.number(IFLA_MTU) < before.number(IFLA_MTU)
    if lower_mtu or (anew and now.said.get(IFLA_MTU) != before.said.get(IFLA_MTU)):
        told = f"MTU {before.number(IFLA_MTU)}"
        settings.append((told, attributes.attribute(IFLA_MTU, before.said[IFLA_MTU]), 0))
    if anew:
        settings += _chosen(before, now)
    yield from _send(sock, now, settings)


def take_up(sock: NetlinkSocket, before: Link, now: Link) -> Iterator[str]:
    """Once all are in their places: its MAC may follow its ports by now, and a link-local address
    is made of that when it comes up."""
    anew = now.index != before.index
    yield from _send(sock, now, _mac(sock, before, now, anew=anew))
    if before.up and not now.up and (anew or before.kind in _UPPERS):
        yield from _send(sock, now, [("up", b"", IFF_UP)])


def _chosen(before: Link, now: Link) -> Iterator[tuple[str, bytes, int]]:
    for told, name in (("alias", IFLA_IFALIAS), ("txqlen", _IFLA_TXQLEN), ("group", IFLA_GROUP)):
        # A link of ours carries a mark in its group until its claim is settled.
        marked = name == IFLA_GROUP and now.number(IFLA_GROUP)
        if not marked and name in before.said and now.said.get(name) != before.said[name]:
            yield told, attributes.attribute(name, before.said[name]), 0


def _mac(
    sock: NetlinkSocket, before: Link, now: Link, *, anew: bool
) -> list[tuple[str, bytes, int]]:
    mac = before.said.get(IFLA_ADDRESS, b"")
    if not any(mac) or not (anew or before.kind in _FOLLOWERS):
        return []
    body = link_codec.get_link(sock, now.index)
    if body is None or decode(body).said.get(IFLA_ADDRESS) == mac:
        return []
    return [(f"MAC {mac.hex(':')}", attributes.attribute(IFLA_ADDRESS, mac), 0)]


def _send(sock: NetlinkSocket, link: Link, settings: list[tuple[str, bytes, int]]) -> Iterator[str]:
    for told, attribute, flags in settings:
        message = header(link.index, flags, flags) + attribute
        error = steps.send(sock, _RTM_NEWLINK, 0, message)
        yield told if error is None else f"cannot set {told}: {error}"
