"""Which way the kernel would send a packet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import route_key
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.names import read_names
from holdfast.host.netlink.route_codec import (
    ADDRESS_FAMILY,
    RTA_DST,
    RTA_OIF,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_GETROUTE,
    RTMSG,
    TYPES,
)
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

# From linux/rtnetlink.h: answer with the route itself, not with what a packet makes of it.
_FIB_MATCH = 0x2000


@dataclass(frozen=True, slots=True)
class Way:
    type: str  # "unicast", "local", "blackhole"
    ifname: str  # the link it leaves through, "" for none


def look_up(sock: NetlinkSocket, address: IPv4Address | IPv6Address) -> Way | None:
    """None: no route leads there."""
    answer = _ask(sock, address, 0)
    if answer is None:
        return None
    index = attributes.to_int(attributes.parse(answer, RTMSG.size).get(RTA_OIF, b""))
    names = read_names(sock).names
    return Way(TYPES.get(answer[7], "unknown"), names.get(index, ""))


def matching(sock: NetlinkSocket, address: IPv4Address | IPv6Address) -> Key | None:
    """The route that counts for an address. None: no route leads there."""
    answer = _ask(sock, address, _FIB_MATCH)
    if answer is None:
        return None
    found = attributes.parse(answer, RTMSG.size)
    network = ip_address(found.get(RTA_DST, bytes(address.max_prefixlen // 8)))
    table = attributes.to_int(found.get(RTA_TABLE, b"")) or answer[4]
    metric = attributes.to_int(found.get(RTA_PRIORITY, b""))
    return route_key(f"{network}/{answer[1]}", address.version, table, metric)


def _ask(sock: NetlinkSocket, address: IPv4Address | IPv6Address, flags: int) -> bytes | None:
    family = ADDRESS_FAMILY[address.version]
    header = RTMSG.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, flags)
    asked = header + attributes.attribute(RTA_DST, address.packed)
    answer = sock.get(Request(RTM_GETROUTE, 0, asked))
    if isinstance(answer, NetlinkError):
        if not answer.errno:  # the kernel's answer was lost
            raise DriverError(f"cannot look up the route to {address}: {answer}")
        return None
    return answer
