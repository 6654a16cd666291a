"""Static entries in the tables of bridges and vxlans: where to forward a MAC (`bridge fdb`) or a
multicast group (`bridge mdb`) to; and those that a program learnt elsewhere, as EVPN daemons do
(`extern_learn`), which do not age either. Holdfast makes none: all are others'. The kernel deletes
those of a port when it leaves its bridge; that it goes down they outlive."""

from __future__ import annotations

import errno
import ipaddress
import struct
from collections.abc import Container, Iterator

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.socket import NetlinkSocket

_RTM_GETNEIGH, _RTM_GETMDB = 30, 86
_NDA_DST, _NDA_LLADDR, _NDA_VLAN, _NDA_VNI, _NDA_MASTER, _NDA_SRC_VNI = 1, 2, 5, 7, 9, 11
_NDA_FLAGS_EXT = 15
_NUD_PERMANENT, _NUD_NOARP = 0x80, 0x40
_EXT_LEARNED, _OFFLOADED, _EXT_LOCKED = 0x10, 0x20, 0x2
AF_BRIDGE = 7

_MDBA_MDB, _MDBA_ENTRY, _MDBA_ENTRY_INFO = 1, 1, 1
EATTR_SOURCES, EATTR_MODE, EATTR_SOURCE, EATTR_PROTOCOL = 2, 3, 4, 5
EATTR_DST, EATTR_DST_PORT, EATTR_VNI, EATTR_IFINDEX, EATTR_SRC_VNI = 6, 7, 8, 9, 10
# br_mdb_entry: port, state, flags, VLAN, the group in as many bytes as it has, its protocol.
ENTRY = struct.Struct("=IBBH16sHxx")
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD
_PERMANENT = 1


def dump(sock: NetlinkSocket) -> list[bytes]:
    """Each an ndmsg (12 bytes), then attributes."""
    asking = bytes((AF_BRIDGE,)) + bytes(11)
    return sock.dump(_RTM_GETNEIGH, asking, "forwarding entries")


def is_static(body: bytes, own: Container[bytes], remote: str = "") -> bool:
    """Somebody's entry in the table of a bridge or vxlan. own: the MACs of links, for which the
    kernel makes entries itself, as it does for the other end that a vxlan was made with; and a
    link lists the addresses that it listens to in the same way, which are no entries."""
    found = attributes.parse(body, 12)
    mac = found.get(_NDA_LLADDR, b"")
    # That of the loopback, no MAC, is what a vxlan sends to that has no entry.
    if not is_lasting(body) or (any(mac) and mac in own):
        return False
    if not any(mac) and _NDA_DST in found and remote:
        return str(ipaddress.ip_address(found[_NDA_DST])) != remote
    in_table = _NDA_MASTER in found or _NDA_DST in found
    return in_table and not (mac and mac[0] & 1)


def is_lasting(body: bytes) -> bool:
    """Not what the kernel learnt from packets and forgets again, nor what the hardware did."""
    if body[10] & _EXT_LEARNED:
        locked = attributes.to_int(attributes.parse(body, 12).get(_NDA_FLAGS_EXT, b""))
        return not (body[10] & _OFFLOADED or locked & _EXT_LOCKED)
    return bool(attributes.to_int(body[8:10]) & (_NUD_NOARP | _NUD_PERMANENT))


def index(body: bytes) -> int:
    """Of the link that an entry forwards to."""
    return attributes.to_int(body[4:8])


def key(body: bytes, dev: str) -> Key:
    """One MAC may stand there once for each VLAN, and in a vxlan once for each other end."""
    found = attributes.parse(body, 12)
    name = f"{found.get(_NDA_LLADDR, b'').hex(':')} dev {dev}"
    for told, attribute in (("vlan", _NDA_VLAN), ("vni", _NDA_VNI), ("src_vni", _NDA_SRC_VNI)):
        if attribute in found:
            name += f" {told} {attributes.to_int(found[attribute])}"
    if _NDA_DST in found:
        name += f" dst {ipaddress.ip_address(found[_NDA_DST])}"
    return Key("forwarding entry", name)


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """A port that a multicast group is sent to, as it was told: after the index of the bridge, an
    `ENTRY` and attributes."""

    body: bytes

    @property
    def bridge(self) -> int:
        return attributes.to_int(self.body[:4])

    @property
    def port(self) -> int:
        return attributes.to_int(self.body[4:8])

    @property
    def said(self) -> dict[int, bytes]:
        return attributes.parse(self.body, 4 + ENTRY.size)

    @property
    def protocol(self) -> int:
        return attributes.to_int(self.said.get(EATTR_PROTOCOL, b""))

    @property
    def is_static(self) -> bool:
        """Made by somebody to stay; the kernel makes some of its own for the sources of others."""
        _port, state, _flags, _vlan, _group, _kind = ENTRY.unpack_from(self.body, 4)
        return state == _PERMANENT and self.protocol != tags.KERNEL

    def key(self, bridge: str, port: str) -> Key:
        _port, _state, _flags, vlan, group, _kind = ENTRY.unpack_from(self.body, 4)
        name = f"{self._shown(group)} dev {bridge} port {port}"
        for told, attribute in (("src", EATTR_SOURCE), ("dst", EATTR_DST)):
            if self.said.get(attribute):
                name += f" {told} {ipaddress.ip_address(self.said[attribute])}"
        return Key("multicast entry", f"{name} vlan {vlan}" if vlan else name)

    def _shown(self, group: bytes) -> str:
        kind = struct.unpack_from("!H", self.body, 4 + 24)[0]
        if kind == _ETH_P_IP:
            return str(ipaddress.ip_address(group[:4]))
        return str(ipaddress.ip_address(group)) if kind == _ETH_P_IPV6 else group[:6].hex(":")


def groups(sock: NetlinkSocket) -> Iterator[GroupEntry]:
    """Those that are static, of all bridges."""
    try:
        bodies = sock.dump(_RTM_GETMDB, bytes((AF_BRIDGE,)) + bytes(7), "multicast entries")
    except DriverError as error:
        if error.code != errno.EOPNOTSUPP:
            raise
        return  # a kernel whose bridges know no multicast has none
    for body in bodies:
        table = attributes.parse(body, 8).get(_MDBA_MDB, b"")
        for _, listed in attributes.each(table):
            for name, told in attributes.each(listed):
                entry = GroupEntry(body[4:8] + told)
                if name == _MDBA_ENTRY_INFO and entry.is_static:
                    yield entry
