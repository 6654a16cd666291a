"""Links of others that went with one of ours, and what the kernel changed of those that stayed.

A link that was made anew, ours or theirs, has an index and a MAC of its own, and nobody chose how
else it is: it becomes what it was. Of one that stayed only what follows other links is set: its
place in a bridge, whether it is up, its MTU, the MAC of what has none of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from holdfast.dataclass import dataclass
from holdfast.host import steps
from holdfast.host.foreign_state.replay import Indexes, Unmapped
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links import link_codec
from holdfast.host.netlink.links.link_codec import (
    IFF_UP,
    IFLA_ADDRESS,
    IFLA_GROUP,
    IFLA_IFALIAS,
    IFLA_MASTER,
    IFLA_MTU,
    header,
)
from holdfast.host.netlink.links.link_names import IFLA_IFNAME
from holdfast.host.netlink.links.link_types import (
    IFLA_LINK,
    IFLA_LINK_NETNSID,
    IFLA_LINKINFO,
    INFO_DATA,
    INFO_KIND,
    kind_of,
)
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkError, NetlinkSocket

_RTM_NEWLINK, _RTM_NEWLINKPROP = 16, 108
_IFLA_PROP_LIST, _IFLA_ALT_IFNAME = 52, 53
_IFF_RUNNING = 0x40
_IFLA_TXQLEN = 13
# What anybody may say of a link, in the words of `ip link`.
_FLAGS = {0x80: "arp", 0x100: "promisc", 0x200: "allmulticast", 0x1000: "multicast"}
# How much is sent or taken at once: gso_max_segs, gso_max_size, gro_max_size, and of IPv4 alone.
_SIZES = (40, 41, 58, 63, 64)
# Where an index of a link stands inside of what a type says of itself.
_INNER_LINK = {"vxlan": 3, "ip6tnl": 1, "sit": 1, "ipip": 1, "gre": 1, "gretap": 1}
_FOLLOWERS = ("bridge", "bond", "vlan")
_UPPERS = ("vlan", "macvlan", "macvtap", "ipvlan")
# What others may have chosen for a link of ours of this type and can be changed: not the timers and
# counters of a bridge, nor what it makes of its ports.
_CHANGEABLE = {
    "bridge": frozenset((*range(1, 10), 20, *range(22, 26), *range(27, 40), *range(41, 47), 49)),
    "vlan": frozenset((2, 3, 4)),  # flags, and how priorities are mapped
}


@dataclass(frozen=True, slots=True)
class _Setting:
    told: str
    attribute: bytes = b""
    flags: int = 0
    change: int = 0  # which of the flags
    message: int = _RTM_NEWLINK


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it was told."""

    body: bytes
    index: int
    name: str
    kind: str
    up: bool
    runs: bool  # it is up and has a carrier
    flags: int
    said: Mapping[int, bytes]

    def number(self, attribute: int) -> int:
        return attributes.to_int(self.said.get(attribute, b""))


def decode(body: bytes) -> Link:
    said = attributes.parse(body, 16)
    flags = attributes.to_int(body[8:12])
    up, runs = bool(flags & IFF_UP), bool(flags & _IFF_RUNNING)
    name = attributes.to_text(said[IFLA_IFNAME])
    return Link(body, attributes.to_int(body[4:8]), name, kind_of(said), up, runs, flags, said)


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
    """Its place, and what others chose for it; tells what was set, or "cannot …"."""
    settings: list[_Setting] = []
    master = before.number(IFLA_MASTER)
    if master and not now.number(IFLA_MASTER):
        try:
            packed = indexes.now(before.said[IFLA_MASTER])
            told = f"its place in {indexes.before[master]}"
            settings.append(_Setting(told, attributes.attribute(IFLA_MASTER, packed)))
        except Unmapped as missing:
            yield f"cannot put it back where it was: {missing}"
    if now.index != before.index:
        settings += (*_chosen(before, now), *_chosen_of_type(before, now))
        settings += _alternative_names(before, now)
    yield from _send(sock, now, settings)


def resize(sock: NetlinkSocket, before: Link, now: Link) -> Iterator[str]:
    """Once all are in their places, as the MTU of a bridge may follow its ports by now: one that is
    set does so no longer. Lower links first."""
    body = link_codec.get_link(sock, now.index)
    mtu, there = before.number(IFLA_MTU), decode(body).number(IFLA_MTU) if body else 0
    lowered = before.kind in _UPPERS and there < mtu
    followed = before.kind == "bridge" and there != mtu
    if there and (lowered or followed or (now.index != before.index and there != mtu)):
        packed = attributes.attribute(IFLA_MTU, before.said[IFLA_MTU])
        yield from _send(sock, now, [_Setting(f"MTU {mtu}", packed)])


def take_up(sock: NetlinkSocket, before: Link, now: Link) -> Iterator[str]:
    """Once all are in their places: its MAC may follow its ports by now, and a link-local address
    is made of that when it comes up."""
    anew = now.index != before.index
    yield from _send(sock, now, _mac(sock, before, now, anew=anew))
    if anew:
        yield from _send(sock, now, _differing_flags(before, now))
    if before.up and not now.up and (anew or before.kind in _UPPERS):
        yield from _send(sock, now, [_Setting("up", flags=IFF_UP, change=IFF_UP)])


def _differing_flags(before: Link, now: Link) -> Iterator[_Setting]:
    for flag, told in _FLAGS.items():
        if (before.flags ^ now.flags) & flag:
            yield _Setting(told, flags=before.flags & flag, change=flag)


def _chosen(before: Link, now: Link) -> Iterator[_Setting]:
    for told, name in (("alias", IFLA_IFALIAS), ("txqlen", _IFLA_TXQLEN), ("group", IFLA_GROUP)):
        # A link of ours carries a mark in its group until its claim is settled.
        marked = name == IFLA_GROUP and now.number(IFLA_GROUP)
        if not marked and name in before.said and now.said.get(name) != before.said[name]:
            yield _Setting(told, attributes.attribute(name, before.said[name]))
    sizes = [name for name in _SIZES if name in before.said and name in now.said]
    # Together, as the kernel sets that of IPv4 along with the other.
    if any(before.said[name] != now.said[name] for name in sizes):
        packed = (attributes.attribute(name, before.said[name]) for name in sizes)
        yield _Setting("gso and gro sizes", b"".join(packed))


def _alternative_names(before: Link, now: Link) -> Iterator[_Setting]:
    """One by one: another link may have one of them by now."""
    there = set(_names(now))
    for name in _names(before):
        if name not in there:
            told = f"altname {attributes.to_text(name)}"
            packed = attributes.attribute(_IFLA_ALT_IFNAME, name)
            listed = attributes.nested(_IFLA_PROP_LIST, packed)
            yield _Setting(told, listed, message=_RTM_NEWLINKPROP)


def _names(link: Link) -> list[bytes]:
    listed = attributes.each(link.said.get(_IFLA_PROP_LIST, b""))
    return [value for kind, value in listed if kind == _IFLA_ALT_IFNAME]


def _chosen_of_type(before: Link, now: Link) -> Iterator[_Setting]:
    """One by one: a kernel that takes one of them not may take the others."""
    if not before.kind or before.kind != now.kind:
        return
    there = _said_of_type(now)
    for name, value in _said_of_type(before).items():
        if name in _CHANGEABLE.get(before.kind, ()) and there.get(name) != value:
            data = attributes.nested(INFO_DATA, attributes.attribute(name, value))
            info = attributes.text(INFO_KIND, before.kind) + data
            yield _Setting(f"setting {name}", attributes.nested(IFLA_LINKINFO, info))


def _mac(sock: NetlinkSocket, before: Link, now: Link, *, anew: bool) -> list[_Setting]:
    mac = before.said.get(IFLA_ADDRESS, b"")
    if not any(mac) or not (anew or before.kind in _FOLLOWERS):
        return []
    body = link_codec.get_link(sock, now.index)
    if body is None or decode(body).said.get(IFLA_ADDRESS) == mac:
        return []
    return [_Setting(f"MAC {mac.hex(':')}", attributes.attribute(IFLA_ADDRESS, mac))]


def _send(sock: NetlinkSocket, link: Link, settings: Iterable[_Setting]) -> Iterator[str]:
    for setting in settings:
        message = header(link.index, setting.flags, setting.change) + setting.attribute
        error = steps.send(sock, setting.message, 0, message)
        yield setting.told if error is None else f"cannot set {setting.told}: {error}"
