"""Ports of bridges: their settings and VLANs, which a port loses when it leaves. Holdfast sets none
of them. A bridge has VLANs of its own, which it loses when it is made anew.

As the kernel tells them to whoever asks with the family of bridges: ifinfomsg (16 bytes), then
attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from holdfast.host.foreign_state.replay import Indexes
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.forwarding import AF_BRIDGE
from holdfast.host.netlink.links.link_codec import IFLA_MASTER
from holdfast.host.netlink.links.link_names import IFLA_EXT_MASK, RTM_GETLINK
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

_RTM_DELLINK, _RTM_SETLINK = 17, 19
_WITH_VLANS = 1 << 1
_IFLA_PROTINFO, _IFLA_AF_SPEC = 12, 26
_BRIDGE_FLAGS, _VLAN_INFO = 0, 2
_SELF = 2
_VLAN = struct.Struct("=HH")
_PVID, _UNTAGGED = 0x2, 0x4
_LOWER_UP = 0x10000
_PRIORITY, _COST, _BACKUP_PORT = 2, 3, 34
# By their numbers: what can be set of a port, in the words of `bridge link`.
_SETTINGS = {
    _PRIORITY: "priority", _COST: "cost", 4: "hairpin", 5: "guard", 6: "root_block",
    7: "fastleave", 8: "learning", 9: "flood", 10: "proxy_arp", 12: "proxy_arp_wifi",
    25: "mcast_router", 27: "mcast_flood", 28: "mcast_to_unicast", 29: "vlan_tunnel",
    30: "bcast_flood", 31: "group_fwd_mask", 32: "neigh_suppress", 33: "isolated",
    _BACKUP_PORT: "backup_port", 37: "mcast_eht_hosts_limit", 39: "locked", 40: "mab",
    42: "mcast_max_groups", 43: "neigh_vlan_suppress", 44: "backup_nhid",
}  # fmt: skip
# What the kernel counts for a port by its speed, once it has a carrier.
_COUNTED = (2, 4, 19, 100)


def dump(sock: NetlinkSocket) -> list[bytes]:
    """Of all ports, and of all bridges."""
    asking = bytes((AF_BRIDGE,)) + bytes(15) + attributes.u32(IFLA_EXT_MASK, _WITH_VLANS)
    return sock.dump(RTM_GETLINK, asking, "ports of bridges")


def index(body: bytes) -> int:
    return attributes.to_int(body[4:8])


def master(body: bytes) -> int:
    """The bridge, which is its own."""
    return attributes.to_int(attributes.parse(body, 16).get(IFLA_MASTER, body[4:8]))


def set_back(sock: NetlinkSocket, before: bytes, now: bytes, indexes: Indexes) -> Iterator[str]:
    """Sets what is to be; tells what was set, or "cannot …". Raises Unmapped."""
    for number, value in _differing(before, now, indexes):
        protocol = attributes.nested(_IFLA_PROTINFO, attributes.attribute(number, value))
        yield _told(_SETTINGS[number], _send(sock, _RTM_SETLINK, now, protocol))
    wanted, there = dict(_vlans(before)), dict(_vlans(now))
    for vlan in there.keys() - wanted.keys():
        error = _send(sock, _RTM_DELLINK, now, _vlan_info(now, vlan, 0))
        yield _told(f"no VLAN {vlan}", error)
    for vlan, flags in wanted.items():
        if there.get(vlan) != flags:
            error = _send(sock, _RTM_SETLINK, now, _vlan_info(now, vlan, flags))
            yield _told(f"VLAN {vlan}", error)


def _differing(before: bytes, now: bytes, indexes: Indexes) -> Iterator[tuple[int, bytes]]:
    wanted, there = _settings(before), _settings(now)
    if attributes.to_int(wanted.get(_BACKUP_PORT, b"")):
        wanted[_BACKUP_PORT] = indexes.now(wanted[_BACKUP_PORT])
    for number, value in wanted.items():
        if number not in _SETTINGS or there.get(number) == value:
            continue
        carrier = attributes.to_int(now[8:12]) & _LOWER_UP
        if number == _COST and not carrier and attributes.to_int(value) in _COUNTED:
            continue  # one that is set would no longer follow the speed
        yield number, value


def _settings(body: bytes) -> dict[int, bytes]:
    return attributes.parse(attributes.parse(body, 16).get(_IFLA_PROTINFO, b""))


def _vlans(body: bytes) -> Iterator[tuple[int, int]]:
    """With how they leave a port, and whether what comes without one belongs to it."""
    for number, said in attributes.each(attributes.parse(body, 16).get(_IFLA_AF_SPEC, b"")):
        if number == _VLAN_INFO and len(said) == _VLAN.size:
            flags, vlan = _VLAN.unpack(said)
            yield vlan, flags & (_PVID | _UNTAGGED)


def _vlan_info(now: bytes, vlan: int, flags: int) -> bytes:
    own = attributes.u16(_BRIDGE_FLAGS, _SELF) if master(now) == index(now) else b""
    said = attributes.attribute(_VLAN_INFO, _VLAN.pack(flags, vlan))
    return attributes.nested(_IFLA_AF_SPEC, own + said)


def _send(sock: NetlinkSocket, kind: int, port: bytes, said: bytes) -> NetlinkError | None:
    header = bytes((AF_BRIDGE, 0, 0, 0)) + port[4:8] + bytes(8)
    return sock.transact([Request(kind, 0, header + said)]).get(0)


def _told(what: str, error: NetlinkError | None) -> str:
    return what if error is None else f"cannot set {what}: {error}"
