"""One route looked at among very many. The kernel has no question for it: it tells which route
counts for an address, which is the one meant unless something hides it."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import MAIN_TABLE
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.routes.route_codec import (
    ADDRESS_FAMILY,
    RTA_DST,
    RTA_OIF,
    RTM_GETROUTE,
    RTMSG,
    TYPES,
)
from holdfast.host.netlink.routes.route_decode import key_of, settle, table_of
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request

# From linux/rtnetlink.h: answer with the route itself, not with what a packet makes of it, and with
# the table it is in. IPv6 always says the table, and refuses to be asked for it.
_FIB_MATCH, _LOOKUP_TABLE = 0x2000, 0x1000
_FLAGS = {4: _FIB_MATCH | _LOOKUP_TABLE, 6: _FIB_MATCH}
# More of them cost more than one dump of them all.
FEW = 32


@dataclass(frozen=True, slots=True)
class RouteProbe:
    """What counts at a destination: the first of the routes there with the lowest metric."""

    known: bool  # False: more specific routes, rules or other tables hide it
    # As in a dump, but that the legs of an IPv6 route may begin with any of them. None: no route
    # that is fit for use has this destination. One over a link without a carrier may be there all
    # the same, so that this is no proof of anything.
    body: bytes | None = None


def look_at(sock: NetlinkSocket, table: int, key: bytes, link: int = 0) -> RouteProbe:
    """The route to a destination (a prefix, packed as a key) in a table. link: the index of the
    one that it has to lead over."""
    family = 4 if len(key) == 5 else 6
    for address in _addresses(key):
        length = len(address) * 8
        header = RTMSG.pack(ADDRESS_FAMILY[family], length, 0, 0, 0, 0, 0, 0, _FLAGS[family])
        asked = header + attributes.attribute(RTA_DST, address)
        asked += attributes.u32(RTA_OIF, link) if link else b""
        answer = sock.get(Request(RTM_GETROUTE, 0, asked))
        if isinstance(answer, NetlinkError):
            if not answer.errno:  # the kernel's answer was lost
                raise DriverError(f"cannot look at a route: {answer}")
            if answer.errno == errno.ENETUNREACH and table == MAIN_TABLE:
                # By default rules that means that no route in the main table leads there.
                return RouteProbe(known=True)
            continue  # it leads nowhere, by whatever route or rule
        if table_of(answer) != table or TYPES[answer[7]] != "unicast":
            continue  # an address of this machine, a broadcast, a multicast
        (body,) = settle([answer], family)
        if key_of(body) == key:
            return RouteProbe(known=True, body=body)
        if body[1] < key[0]:
            return RouteProbe(known=True)
    return RouteProbe(known=False)


def _addresses(key: bytes) -> Iterator[bytes]:
    """Some of a prefix: more specific routes are at its ends more often than anywhere else."""
    bits = (len(key) - 1) * 8 - key[0]
    first = int.from_bytes(key[1:], "big")
    last = (1 << bits) - 1
    for offset in dict.fromkeys((last // 3, 2 * last // 3, last, 0)):
        yield (first + offset).to_bytes(len(key) - 1, "big")
