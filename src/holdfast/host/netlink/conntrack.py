"""The mark that connection tracking holds for a connection: ctnetlink's messages."""

from __future__ import annotations

import socket
import struct
from functools import partial
from ipaddress import IPv4Address, IPv6Address

from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import (
    NETFILTER,
    NetlinkError,
    NetlinkSocket,
    Request,
    open_transport,
)

_GET = 0x0101  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET
_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}
_TUPLE_REPLY, _MARK = 2, 8
_TUPLE_IP, _TUPLE_PROTO = 1, 2
_SOURCE = {4: 1, 6: 3}
_DESTINATION = {4: 2, 6: 4}
_PROTO_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3
_GENERIC = struct.Struct("!BBH")  # nfgenmsg

End = tuple[IPv4Address | IPv6Address, int]


def mark_of(local: End, remote: End) -> int:
    """0 where it has none, or nothing is tracked. The answers are what is known of it here: before
    they came in, its packets may have been to another address of ours."""
    version = local[0].version
    addresses = attributes.nested(
        _TUPLE_IP,
        attributes.attribute(_SOURCE[version], local[0].packed),
        attributes.attribute(_DESTINATION[version], remote[0].packed),
    )
    protocol = attributes.nested(
        _TUPLE_PROTO,
        attributes.u8(_PROTO_NUMBER, socket.IPPROTO_TCP),
        attributes.attribute(_SOURCE_PORT, local[1].to_bytes(2, "big")),
        attributes.attribute(_DESTINATION_PORT, remote[1].to_bytes(2, "big")),
    )
    body = _GENERIC.pack(_FAMILY[version], 0, 0)
    body += attributes.nested(_TUPLE_REPLY, addresses, protocol)
    try:
        sock = NetlinkSocket(partial(open_transport, NETFILTER))
    except (DriverError, OSError):
        return 0  # a kernel without it
    try:
        answer = sock.get(Request(_GET, 0, body))
    except DriverError:
        return 0
    finally:
        sock.close()
    if isinstance(answer, NetlinkError):
        return 0
    return int.from_bytes(attributes.parse(answer, _GENERIC.size).get(_MARK, b""), "big")
