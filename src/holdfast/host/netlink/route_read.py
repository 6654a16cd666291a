"""Questions to the kernel about routes: filtered dumps, and which link a gateway is behind."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from holdfast.dataclass import dataclass, field
from holdfast.engine.kinds.route import RouteTemplate
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.route_codec import (
    ADDRESS_FAMILY,
    RTA_DST,
    RTA_GATEWAY,
    RTA_OIF,
    RTA_TABLE,
    RTA_VIA,
    RTM_GETROUTE,
    RTMSG,
    TYPES,
    Leg,
    packed_address,
)
from holdfast.host.netlink.socket import NetlinkError, NetlinkSocket, Request


def dump_routes(
    sock: NetlinkSocket, family: int, *, table: int = 0, protocol: int = 0
) -> list[bytes]:
    """Routes of one family; the kernel leaves out other tables and protocols where one is named.

    Strict dumps also leave out cached exceptions (path MTU), which in IPv6 carry the protocol of
    the route they were cloned from.
    """
    return dump_runs(sock, family, table=table, protocol=protocol).bodies()


def dump_runs(sock: NetlinkSocket, family: int, *, table: int = 0, protocol: int = 0) -> Dump:
    """As `dump_routes`, of very many."""
    header = RTMSG.pack(ADDRESS_FAMILY[family], 0, 0, 0, 0, protocol, 0, 0, 0)
    if table:
        header += attributes.u32(RTA_TABLE, table)
    try:
        return sock.dump_runs(RTM_GETROUTE, header, f"IPv{family} routes")
    except DriverError as error:
        # A table comes into being with its first route.
        if error.code == errno.ENOENT:
            return Dump([])
        raise


@dataclass(slots=True)
class Gateways:
    """The link each gateway is directly reachable through, asked once."""

    sock: NetlinkSocket
    names: Mapping[int, str]
    _known: dict[str, str] = field(default_factory=dict)

    def link(self, gateway: str) -> str:
        """Empty where it is not reachable, or only through another gateway."""
        if gateway not in self._known:
            self._known[gateway] = self._ask(gateway)
        return self._known[gateway]

    def _ask(self, gateway: str) -> str:
        packed = packed_address(gateway)
        if len(packed) == 16 and packed[0] == 0xFE and packed[1] & 0xC0 == 0x80:
            return ""  # link-local: it may be on any link
        family = ADDRESS_FAMILY[4 if len(packed) == 4 else 6]
        header = RTMSG.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0)
        answer = self.sock.get(
            Request(RTM_GETROUTE, 0, header + attributes.attribute(RTA_DST, packed))
        )
        if isinstance(answer, NetlinkError):
            if not answer.errno:  # nothing was said of the gateway
                raise DriverError(f"cannot look up gateway {gateway}: {answer}")
            return ""
        if TYPES[answer[7]] != "unicast":
            return ""
        found = attributes.parse(answer, 12)
        if RTA_GATEWAY in found or RTA_VIA in found or RTA_OIF not in found:
            return ""
        return self.names.get(attributes.to_int(found[RTA_OIF]), "")


def legs_of(
    shared: RouteTemplate,
    indexes: Mapping[str, int],
    link_of: Callable[[str], str] | None = None,
) -> list[Leg] | str:
    """The nexthops of a template with the indexes of their links, or why there can be none.

    Without `link_of`, the link of a gateway that is declared alone is left to the kernel.
    """
    legs = []
    for nexthop in shared.nexthops:
        dev = nexthop.dev
        if not dev and link_of is not None:
            dev = link_of(nexthop.gateway)
            if not dev:
                return f"gateway {nexthop.gateway} is not directly reachable"
        if dev and dev not in indexes:
            return f"link {dev} does not exist"
        legs.append(Leg(nexthop, indexes[dev] if dev else 0))
    return legs
