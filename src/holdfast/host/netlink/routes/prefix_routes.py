"""The routes that the kernel makes of addresses: to the prefix of each, straight over its link.

They come and go with their address, but anybody can delete them alone (`ip route flush table
main`). The address stays then, and nothing leads to its neighbours.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import chain

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import MAIN_TABLE, Nexthop, RouteTemplate, pack_key
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.addresses.address_codec import (
    NO_PREFIX_ROUTE,
    PERMANENT,
    SECONDARY,
    SeenAddress,
)
from holdfast.host.netlink.addresses.address_losses import LinkPlace
from holdfast.host.netlink.routes.route_codec import (
    RTA_GATEWAY,
    RTA_OIF,
    RTA_VIA,
    RTM_NEWROUTE,
    RTMSG,
    Leg,
    created,
)
from holdfast.host.netlink.routes.route_decode import key_of
from holdfast.host.netlink.routes.route_probe import FEW, look_at
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.socket import APPEND, CREATE, NetlinkError, NetlinkSocket, Request

# Of an IPv6 prefix route, where its address names none (IP6_RT_PRIO_ADDRCONF).
_IPV6_METRIC = 256

Subnet = tuple[int, bytes, int]


class PrefixRoutes:
    """Those of the addresses of one reading."""

    def __init__(
        self,
        sock: NetlinkSocket,
        everything: Sequence[SeenAddress],
        places: Mapping[int, LinkPlace],
    ) -> None:
        self._sock = sock
        self._places = places
        self._primaries: dict[Subnet, SeenAddress] = {}
        self._link_local: dict[int, list[SeenAddress]] = defaultdict(list)
        for address in everything:
            if address.version == 4 and not address.flags & SECONDARY:
                self._primaries[address.subnet] = address
            elif address.version == 6 and address.scope == "link":
                self._link_local[address.index].append(address)

    def lost(self, addresses: Sequence[SeenAddress]) -> Set[Key]:
        """Those of the addresses that the kernel made one for, and it is gone.

        A few are looked up one by one, which costs the same among a million routes. Where that does
        not show one, all that the kernel made in its table are read.
        """
        tables: dict[tuple[int, int], dict[Subnet, SeenAddress]] = defaultdict(dict)
        made = {address.key: self._makers(address) for address in addresses}
        for maker in chain.from_iterable(made.values()):
            tables[maker.version, self._table(maker)].setdefault(maker.subnet, maker)
        gone: set[Subnet] = set()
        for (version, table), makers in tables.items():
            doubtful = list(makers.values())
            if len(doubtful) <= FEW:
                doubtful = [address for address in doubtful if not self._leads(table, address)]
            if doubtful:
                bodies = dump_routes(self._sock, version, table=table, protocol=tags.KERNEL)
                there = {(_link(body), key_of(body)) for body in bodies}
                gone |= {
                    address.subnet
                    for address in doubtful
                    if (address.index, _key(address)) not in there
                }
        return {
            key for key, makers in made.items() if any(maker.subnet in gone for maker in makers)
        }

    def put_back(self, address: SeenAddress) -> NetlinkError | None:
        """As the kernel made it, which takes it for its own when the address goes."""
        requests = [self._request(maker) for maker in self._makers(address)]
        errors = self._sock.transact(requests).values()
        return next((error for error in errors if error.errno != errno.EEXIST), None)

    def _request(self, maker: SeenAddress) -> Request:
        nexthop = Nexthop(dev=self._places[maker.index].name)
        source, metric = str(maker.artifact.fields["address"]), maker.metric
        if maker.version == 6:
            source, metric = "", metric or _IPV6_METRIC
        shared = RouteTemplate(
            maker.version, self._table(maker), metric, nexthops=(nexthop,), prefsrc=source
        )
        (body,) = created(shared, [Leg(nexthop, maker.index)], tags.KERNEL).bodies([_key(maker)])
        # The kernel puts it behind what others have to the same prefix, and so do we.
        return Request(RTM_NEWROUTE, CREATE | APPEND, body)

    def _makers(self, address: SeenAddress) -> list[SeenAddress]:
        """The addresses whose prefix routes it takes for it to be of use: in IPv4 it may be a
        secondary, and its primary has the route; in IPv6 neighbours have link-local addresses, too.
        """
        if address.flags & NO_PREFIX_ROUTE or not self._places[address.index].connects:
            return []
        if address.version == 4:
            found = [self._primaries[address.subnet]] if address.subnet in self._primaries else []
        else:
            found = [address, *self._link_local[address.index]]
            # That of an address with a lifetime may be over before it is.
            found = [address for address in found if address.flags & PERMANENT]
        return [
            address
            for address in found
            if not address.flags & NO_PREFIX_ROUTE and address.prefix_length < len(address.ip) * 8
        ]

    def _leads(self, table: int, maker: SeenAddress) -> bool:
        """Whoever made the route, and whatever its metric: it leads where the kernel's would."""
        body = look_at(self._sock, table, _key(maker), maker.index).body
        if body is None:
            return False
        found = attributes.parse(body, RTMSG.size)
        direct = RTA_GATEWAY not in found and RTA_VIA not in found
        return direct and key_of(body) == _key(maker) and _link(body) == maker.index

    def _table(self, address: SeenAddress) -> int:
        return self._places[address.index].vrf_table or MAIN_TABLE


def _key(address: SeenAddress) -> bytes:
    return pack_key(address.network, address.prefix_length)


def _link(body: bytes) -> int:
    return attributes.to_int(attributes.parse(body, RTMSG.size).get(RTA_OIF, b""))
