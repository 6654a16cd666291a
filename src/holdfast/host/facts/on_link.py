"""Which links have a gateway in a network of theirs, by the kernel's routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from holdfast.host.facts.kernel import LEARNED_BY
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.routes.route_decode import Reader, select
from holdfast.host.netlink.routes.route_read import dump_routes
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.resources.facts import Address
from holdfast.resources.routes.gateway_links import around

OnLink = Mapping[tuple[int, Address], tuple[str, ...]]


def read_on_link(sock: NetlinkSocket, asked: Collection[tuple[int, Address]]) -> OnLink:
    """asked: routing tables and gateways. The kernel is not asked for its way to a gateway: rules
    and default routes have a say in that, and it changes with every link that goes."""
    tables: dict[tuple[int, int], list[Address]] = defaultdict(list)
    for table, gateway in asked:
        tables[gateway.version, table].append(gateway)
    if not tables:
        return {}
    reader = Reader(read_names(sock).names)
    return {
        (table, gateway): links
        for (family, table), gateways in tables.items()
        for gateway, links in _of_table(sock, reader, family, table, gateways).items()
    }


def _of_table(
    sock: NetlinkSocket, reader: Reader, family: int, table: int, gateways: Collection[Address]
) -> dict[Address, tuple[str, ...]]:
    """Longest prefix first, then lowest metric, then in the order of the kernel."""
    holding: dict[bytes, list[Address]] = defaultdict(list)
    for gateway in gateways:
        for key in around(gateway):
            holding[key].append(gateway)
    found: dict[Address, list[tuple[int, int, str]]] = defaultdict(list)
    for protocol in LEARNED_BY.values():
        bodies = dump_routes(sock, family, table=table, protocol=protocol)
        for body in select(bodies, family, set(holding)):
            shared, key = reader.read(body)
            for leg in shared.nexthops if shared.type == "unicast" else ():
                if leg.dev and not leg.gateway:
                    for gateway in holding[key]:
                        found[gateway].append((-key[0], shared.metric, leg.dev))
    return {
        gateway: tuple(dict.fromkeys(dev for _, _, dev in sorted(ways, key=lambda way: way[:2])))
        for gateway, ways in found.items()
    }
