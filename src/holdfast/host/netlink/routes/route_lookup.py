"""Which way the kernel would send a packet."""

from __future__ import annotations

import errno
from ipaddress import IPv4Address, IPv6Address

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.path.lookup import NOWHERE, TCP, Packet, Path
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.routes.route_codec import (
    ADDRESS_FAMILY,
    RTA_DST,
    RTA_GATEWAY,
    RTA_OIF,
    RTA_PRIORITY,
    RTA_SRC,
    RTA_TABLE,
    RTA_VIA,
    RTM_GETROUTE,
    RTMSG,
    TYPES,
    address_text,
)
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

# Answer with the route itself, not with what it comes to for the address.
_RTM_F_FIB_MATCH = 0x2000
_RTA_MARK, _RTA_UID, _RTA_IP_PROTO, _RTA_SPORT, _RTA_DPORT = 16, 25, 27, 28, 29
# What the kernel answers in place of a route that ends a packet.
_ENDS = {errno.EACCES: "prohibit", errno.EHOSTUNREACH: "unreachable", errno.EINVAL: "blackhole"}


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    type: str  # "unicast", "local", "blackhole"
    ifname: str  # the link it leaves through, "" for none


def look_up(sock: NetlinkSocket, address: IPv4Address | IPv6Address) -> RouteAnswer | None:
    """None: no route leads there."""
    answer = _ask(sock, address, _message(address))
    if isinstance(answer, int):
        return None
    index = attributes.to_int(attributes.parse(answer, RTMSG.size).get(RTA_OIF, b""))
    names = read_names(sock).names
    return RouteAnswer(TYPES.get(answer[7], "unknown"), names.get(index, ""))


def matched(
    sock: NetlinkSocket, address: IPv4Address | IPv6Address
) -> tuple[str, int, int, int] | None:
    """Prefix, family, table and metric of the route that the kernel takes to an address; None where
    there is none, or it ends in what is local."""
    answer = _ask(sock, address, _message(address, flags=_RTM_F_FIB_MATCH))
    if isinstance(answer, int) or TYPES.get(answer[7]) == "local":
        return None
    found = attributes.parse(answer, RTMSG.size)
    length = answer[1]
    prefix = found.get(RTA_DST) or bytes(len(address.packed))
    table = attributes.to_int(found.get(RTA_TABLE, b"")) or answer[4]
    metric = attributes.to_int(found.get(RTA_PRIORITY, b""))
    return f"{address_text(prefix)}/{length}", address.version, table, metric


def path(sock: NetlinkSocket, packet: Packet, bound: str = "") -> Path:
    """Of a packet that this host sends, from an address of its own. bound: the link or the VRF that
    its socket is bound to."""
    links = read_names(sock)
    more = attributes.attribute(RTA_SRC, packet.source.packed) + attributes.u32(_RTA_UID, 0)
    if packet.mark:
        more += attributes.u32(_RTA_MARK, packet.mark)
    if bound in links.indexes:
        more += attributes.u32(RTA_OIF, links.indexes[bound])
    if packet.source_port and packet.destination_port:
        more += attributes.u8(_RTA_IP_PROTO, TCP)
        for kind, port in (
            (_RTA_SPORT, packet.source_port),
            (_RTA_DPORT, packet.destination_port),
        ):
            more += attributes.attribute(kind, port.to_bytes(2, "big"))
    asked = _message(packet.destination, packet.source.max_prefixlen) + more
    answer = _ask(sock, packet.destination, asked)
    if isinstance(answer, int):
        return Path(_ENDS[answer]) if answer in _ENDS else NOWHERE
    found = attributes.parse(answer, RTMSG.size)
    ended = TYPES.get(answer[7], "unknown")
    if ended != "unicast":
        return Path(ended)
    gateway = found.get(RTA_GATEWAY) or found.get(RTA_VIA, b"")[2:]
    dev = links.names.get(attributes.to_int(found.get(RTA_OIF, b"")), "")
    return Path("unicast", frozenset({Nexthop(address_text(gateway) if gateway else "", dev)}))


def _message(address: IPv4Address | IPv6Address, source_length: int = 0, flags: int = 0) -> bytes:
    family = ADDRESS_FAMILY[address.version]
    header = RTMSG.pack(family, address.max_prefixlen, source_length, 0, 0, 0, 0, 0, flags)
    return header + attributes.attribute(RTA_DST, address.packed)


def _ask(sock: NetlinkSocket, address: IPv4Address | IPv6Address, asked: bytes) -> bytes | int:
    """The answer, or what the kernel says instead."""
    answer = sock.get(Request(RTM_GETROUTE, 0, asked))
    if isinstance(answer, NetlinkError):
        if not answer.errno:  # the kernel's answer was lost
            raise DriverError(f"cannot look up the route to {address}: {answer}")
        return answer.errno
    return answer
