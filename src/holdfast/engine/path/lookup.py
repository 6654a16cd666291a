"""The kernel's look-up of a route: rules in order, in a table the longest prefix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.path.network import IPAddress, IPNetwork, Network, Route, Rule

TCP = 6


@dataclass(frozen=True, slots=True)
class Packet:
    """Of a TCP connection."""

    source: IPAddress
    destination: IPAddress
    source_port: int = 0
    destination_port: int = 0
    iif: str = "lo"  # the kernel takes packets of its own to come in by the loopback
    oif: str = ""  # where it is bound to a link
    mark: int = 0
    vrf_table: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    type: str  # "unicast", "local", "prohibit", …; "" where no route leads there
    nexthops: frozenset[Nexthop] = frozenset()  # any of them, where there are several

    @property
    def links(self) -> frozenset[str]:
        return frozenset(nexthop.dev for nexthop in self.nexthops)

    def told(self, packet: Packet) -> str:
        """In the words of `ip route get`."""
        if not self.type:
            return f"no route to {packet.destination}"
        if self.type not in ("unicast", "local"):
            return f"{self.type} {packet.destination} from {packet.source}"
        legs = " or ".join(sorted(map(str, self.nexthops)))
        kind = "local " if self.type == "local" else ""
        return f"{kind}{packet.destination} from {packet.source} {legs}".rstrip()


NOWHERE = Path("")


def look_up(network: Network, packet: Packet, *, unsure: bool = False) -> Path:
    """unsure: whether rules are taken to match of which that is not known."""
    rules = iter(network.rules)
    while (rule := next(rules, None)) is not None:
        if not _matches(rule, packet, unsure=unsure):
            continue
        if rule.action == "goto":
            rules = _from(network.rules, rule.target) or rules
        elif rule.action == "lookup":
            table = packet.vrf_table if rule.vrf else rule.table
            found = _best(network, table, packet)
            if found is None or found.type == "throw":
                continue
            if found.destination.prefixlen <= rule.suppress:
                continue
            return _path(network, found, packet)
        elif rule.action != "nop":
            return Path(rule.action)
    return NOWHERE


def _from(rules: Sequence[Rule], priority: int) -> Iterator[Rule] | None:
    """None where there is no rule to go to: the kernel goes on with the next."""
    if all(rule.priority != priority for rule in rules):
        return None
    return dropwhile(lambda rule: rule.priority < priority, rules)


def _matches(rule: Rule, packet: Packet, *, unsure: bool) -> bool:
    if rule.unsure and not unsure:
        return rule.inverted
    fits = (
        _holds(rule.source, packet.source)
        and _holds(rule.destination, packet.destination)
        and rule.iif in ("", packet.iif)
        and rule.oif in ("", packet.oif)
        and (packet.mark ^ rule.mark) & rule.mask == 0
        and (not rule.vrf or packet.vrf_table != 0)
        and rule.protocol in (0, TCP)
        and _within(rule.users, 0)  # sshd's sockets are root's
        and _within(rule.source_ports, packet.source_port)
        and _within(rule.destination_ports, packet.destination_port)
    )
    return fits is not rule.inverted


def _holds(prefix: IPNetwork | None, address: IPAddress) -> bool:
    return prefix is None or address in prefix


def _within(limits: tuple[int, int] | None, number: int) -> bool:
    return limits is None or limits[0] <= number <= limits[1]


def _best(network: Network, table: int, packet: Packet) -> Route | None:
    """Of several with the same prefix and metric, the kernel takes the first."""
    found = None
    for route in network.routes:
        if (
            route.table == table
            and packet.destination in route.destination
            and _holds(route.source, packet.source)
            and _leads(network, route, packet)
            and (found is None or _rank(route) < _rank(found))
        ):
            found = route
    return found


def _rank(route: Route) -> tuple[int, int]:
    return -route.destination.prefixlen, route.metric


def _leads(network: Network, route: Route, packet: Packet) -> bool:
    """Routes over a link that is down are gone, or do not count; an IPv4 address of the host
    itself stays one."""
    if route.type == "local":
        return network.version == 4 or not route.nexthops or _legs(network, route, packet) != ()
    return route.type != "unicast" or _legs(network, route, packet) != ()


def _legs(network: Network, route: Route, packet: Packet) -> tuple[Nexthop, ...]:
    return tuple(
        nexthop
        for nexthop in route.nexthops
        if network.carries(nexthop.dev) and (not packet.oif or packet.oif == nexthop.dev)
    )


def _path(network: Network, route: Route, packet: Packet) -> Path:
    legs = _legs(network, route, packet) if route.type == "unicast" else ()
    return Path(route.type, frozenset(Nexthop(leg.gateway, leg.dev) for leg in legs))
