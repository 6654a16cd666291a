"""Link names and indexes, read fresh whenever they matter: an index dies with its link."""

from __future__ import annotations

import socket

from holdfast.dataclass import dataclass
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import NetlinkSocket

RTM_GETLINK = 18
IFLA_IFNAME, IFLA_EXT_MASK = 3, 29
_SKIP_STATS = 1 << 3


@dataclass(frozen=True, slots=True)
class LinkNames:
    indexes: dict[str, int]
    names: dict[int, str]


def dump_links(sock: NetlinkSocket) -> list[bytes]:
    """Every link of this network namespace: ifinfomsg (16 bytes), then attributes."""
    header = bytes(16) + attributes.u32(IFLA_EXT_MASK, _SKIP_STATS)
    return sock.dump(RTM_GETLINK, header, "links")


def name_now(index: int) -> str:
    """Of one link, without a netlink socket; "" where there is none."""
    try:
        return socket.if_indextoname(index)
    except OSError:
        return ""


def read_names(sock: NetlinkSocket) -> LinkNames:
    indexes: dict[str, int] = {}
    for body in dump_links(sock):
        index = attributes.to_int(body[4:8])
        indexes[attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])] = index
    return LinkNames(indexes, {index: name for name, index in indexes.items()})
