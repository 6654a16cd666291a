"""Questions to the kernel about routes, and what it has to be told of their links."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from holdfast.engine.kinds.route import RouteTemplate
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import Dump
from holdfast.host.netlink.routes.route_codec import (
    ADDRESS_FAMILY,
    RTA_TABLE,
    RTM_GETROUTE,
    RTMSG,
    Leg,
)
from holdfast.host.netlink.socket import NetlinkSocket


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


def legs_of(shared: RouteTemplate, indexes: Mapping[str, int]) -> list[Leg] | str:
    """The nexthops of a template with the indexes of their links, or why there can be none."""
    legs = []
    for nexthop in shared.nexthops:
        if not nexthop.dev:
            return f"the link that gateway {nexthop.gateway} is behind is not known"
        if nexthop.dev not in indexes:
            return f"link {nexthop.dev} does not exist"
        legs.append(Leg(nexthop, indexes[nexthop.dev]))
    return legs
