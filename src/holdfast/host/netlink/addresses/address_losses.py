"""What deleting addresses would take along, told before it happens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import pack_key
from holdfast.host.netlink import attributes, side_effects
from holdfast.host.netlink.addresses.address_codec import (
    NO_PREFIX_ROUTE,
    PERMANENT,
    PLACEHOLDER,
    SECONDARY,
    TENTATIVE,
    SeenAddress,
)
from holdfast.host.netlink.links import link_types
from holdfast.host.netlink.links.link_codec import IFF_UP
from holdfast.host.netlink.links.link_names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.side_effects import IsOurs
from holdfast.host.netlink.socket import NetlinkSocket

Losses = dict[Key, list[str]]
_IFF_LOOPBACK = 8


@dataclass(frozen=True, slots=True)
class Arriving:
    """An address that is about to be made."""

    index: int  # of its link
    ip: bytes
    subnet: tuple[int, bytes, int]  # as that of SeenAddress


def arriving_placeholder(index: int) -> Arriving:
    return Arriving(index, PLACEHOLDER, (index, PLACEHOLDER, 32))


@dataclass(frozen=True, slots=True)
class LinkPlace:
    name: str
    vrf_table: int  # 0: the link belongs to no VRF
    connects: bool  # to neighbours: it is up, and no loopback


def read_places(sock: NetlinkSocket) -> dict[int, LinkPlace]:
    places = {}
    for body in dump_links(sock):
        found = attributes.parse(body, 16)
        flags = attributes.to_int(body[8:12])
        places[attributes.to_int(body[4:8])] = LinkPlace(
            attributes.to_text(found[IFLA_IFNAME]),
            link_types.vrf_table(found),
            connects=flags & (IFF_UP | _IFF_LOOPBACK) == IFF_UP,
        )
    return places


def promotes_secondaries(dev: str) -> bool:
    """Whether IPv4 secondaries outlive their primary on a link. Unknown counts as no."""
    for name in ("all", dev):
        try:
            text = Path("/proc/sys/net/ipv4/conf", name, "promote_secondaries").read_text()
        except OSError:
            continue
        if text.strip() != "0":
            return True
    return False


class AddressLosses:
    """Predictions over one reading of all addresses.

    doomed: what shall be deleted. Each answer is for one of them, given that those whose answer
    is empty go and the others stay; or, with all_go, that all of them go. coming: addresses that
    are made before anything is deleted; whether they were, the delete itself finds out.
    """

    def __init__(
        self,
        sock: NetlinkSocket,
        everything: Sequence[SeenAddress],
        places: Mapping[int, LinkPlace],
        tag: int,
        claimed: IsOurs,
        coming: Collection[Arriving] = (),
        *,
        all_go: bool = False,
    ) -> None:
        self._all_go = all_go
        self._sock = sock
        self._places = places
        self._tag = tag
        self._claimed = claimed
        self._coming = coming
        self._promotes = cache(promotes_secondaries)
        self._at_ip: dict[bytes, list[SeenAddress]] = defaultdict(list)
        self._in_subnet: dict[tuple[int, bytes, int], list[SeenAddress]] = defaultdict(list)
        self._ipv4_on: dict[int, list[SeenAddress]] = defaultdict(list)
        for address in everything:
            self._at_ip[address.ip].append(address)
            self._in_subnet[address.subnet].append(address)
            if address.version == 4:
                self._ipv4_on[address.index].append(address)

    def of(self, doomed: Sequence[SeenAddress]) -> Losses:
        losses: Losses = {address.key: [] for address in doomed}
        swept = {address.subnet for address in doomed if self._sweeps(address)}
        staying = [one for one in self._coming if one.subnet not in swept]
        for version in (4, 6):
            going = [address for address in doomed if address.version == version]
            self._add_sources(losses, going, version, staying)
        self._add_last_addresses(
            losses, [address for address in doomed if address.version == 4], staying
        )
        self._add_prefix_routes(losses, [address for address in doomed if address.version == 6])
        return losses

    def secondaries(self, primary: SeenAddress) -> list[SeenAddress]:
        """The addresses that the kernel deletes together with an IPv4 primary. They are no loss:
        whoever deletes it puts them back at once. What goes with them is one."""
        found = [
            address for address in self._in_subnet[primary.subnet] if address.flags & SECONDARY
        ]
        return found if found and self._sweeps(primary) else []

    def _sweeps(self, address: SeenAddress) -> bool:
        """Whether the kernel deletes all others in its subnet along with it. One that is only made
        in time for that is a secondary of it, too."""
        if address.version == 6 or address.flags & SECONDARY:
            return False
        return not self._promotes(self._places[address.index].name)

    def prefix_route(self, address: SeenAddress) -> list[str]:
        """Another's route that the kernel would delete in place of its own prefix route."""
        losses: Losses = {address.key: []}
        self._add_prefix_routes(losses, [address])
        return losses[address.key]

    def _add_sources(
        self,
        losses: Losses,
        doomed: Sequence[SeenAddress],
        version: int,
        staying: Sequence[Arriving],
    ) -> None:
        made = {(one.ip, self._places[one.index].vrf_table) for one in staying}
        leaving = {address.key for address in doomed}
        taken = {address.key: [address, *self.secondaries(address)] for address in doomed}
        gone: dict[bytes, set[int]] = defaultdict(set)
        for group in taken.values():
            with_it = {lost.key for lost in group}
            for lost in group:
                table = self._places[lost.index].vrf_table
                if (lost.ip, table) not in made and not self._stays_elsewhere(
                    lost, leaving, with_it
                ):
                    gone[lost.ip].add(table)
        lost_sources = side_effects.lost_sources(
            self._sock, version, gone, self._tag, self._claimed
        )
        if not lost_sources:
            return
        for key, group in taken.items():
            for source in {(lost.ip, self._places[lost.index].vrf_table) for lost in group}:
                losses[key] += lost_sources.get(source, [])

    def _stays_elsewhere(self, lost: SeenAddress, leaving: set[Key], with_it: set[Key]) -> bool:
        """Whether the same address remains, on this or another link of the same VRF."""
        table = self._places[lost.index].vrf_table
        return any(
            other.key not in leaving
            and other.key not in with_it
            and (other.scope not in ("link", "host") or other.version == 4)
            and not (other.version == 6 and other.flags & TENTATIVE)
            and self._places[other.index].vrf_table == table
            for other in self._at_ip[lost.ip]
        )

    def _add_last_addresses(
        self, losses: Losses, doomed: Sequence[SeenAddress], staying: Sequence[Arriving]
    ) -> None:
        """The last IPv4 address takes the link's routes and neighbours. One that stays prevents
        that: one that has losses already, or else the first of the doomed."""
        links: dict[int, list[SeenAddress]] = defaultdict(list)
        for address in doomed:
            links[address.index].append(address)
        for index, here in links.items():
            gone = {address.key for address in here}
            gone |= {other.key for address in here for other in self.secondaries(address)}
            remains = any(other.key not in gone for other in self._ipv4_on[index])
            remains |= any(one.index == index and len(one.ip) == 4 for one in staying)
            if remains or (any(losses[address.key] for address in here) and not self._all_go):
                continue
            losses[here[0].key] += side_effects.lost_with_last_address(
                self._sock, self._places[index].name, index, self._tag, self._claimed
            )

    def _add_prefix_routes(self, losses: Losses, doomed: Sequence[SeenAddress]) -> None:
        """Asked of one address in each prefix: while that one stays, so does the route."""
        leaving = {address.key for address in doomed}
        links: dict[int, dict[bytes, SeenAddress]] = defaultdict(dict)
        for address in doomed:
            if self._takes_prefix_route(address, leaving):
                key = pack_key(address.network, address.prefix_length)
                links[address.index].setdefault(key, address)
        for index, asked in links.items():
            table = self._places[index].vrf_table
            taken = side_effects.mistaken_prefix_routes(self._sock, index, set(asked), table)
            for key, route in taken.items():
                if side_effects.foreign(route, self._tag, self._claimed):
                    losses[asked[key].key].append(route.lost())

    def _takes_prefix_route(self, address: SeenAddress, leaving: set[Key]) -> bool:
        """Whether the kernel looks for a prefix route to delete: it keeps it for others in it."""
        if not address.flags & PERMANENT or address.flags & NO_PREFIX_ROUTE:
            return False
        return not any(
            other.key not in leaving and other.flags & (PERMANENT | NO_PREFIX_ROUTE)
            for other in self._in_subnet[address.subnet]
        )
