"""Link names and indexes, read fresh whenever they matter: an index dies with its link."""

from __future__ import annotations

import socket

from holdfast.dataclass import dataclass
from holdfast.host.netlink import attributes
from holdfast.host.netlink.socket import NetlinkSocket

RTM_GETLINK = 18
IFLA_IFNAME, IFLA_EXT_MASK = 3, 29
_SKIP_STATS = 1 << 3
_UP = 1  # IFF_UP


@dataclass(frozen=True, slots=True)
class LinkNames:
    indexes: dict[str, int]
    names: dict[int, str]
    down: frozenset[str] = frozenset()


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
    down: set[str] = set()
    for body in dump_links(sock):
        name = attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])
        indexes[name] = attributes.to_int(body[4:8])
        if not attributes.to_int(body[8:12]) & _UP:
            down.add(name)
    return LinkNames(indexes, {index: name for name, index in indexes.items()}, frozenset(down))
