"""Taking the record: what others have on what a plan touches, as the kernel tells it."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Fields, Key
from holdfast.engine.claim import Claim
from holdfast.engine.plan import Plan
from holdfast.errors import DriverError
from holdfast.host.foreign_state import (
    aliases,
    neighbours,
    nexthops,
    ports,
    routes,
    settings,
    tokens,
)
from holdfast.host.foreign_state.links import decode
from holdfast.host.foreign_state.record import Kind, Record
from holdfast.host.foreign_state.touched import Touched, touched
from holdfast.host.netlink import attributes, side_effects, tags
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import RTM_GETADDR, SECONDARY, SeenAddress
from holdfast.host.netlink.links import forwarding, link_losses, link_names
from holdfast.host.netlink.links.link_codec import IFLA_ADDRESS
from holdfast.host.netlink.links.link_names import IFLA_IFNAME
from holdfast.host.netlink.routes.route_decode import is_cloned, key_of
from holdfast.host.netlink.side_effects import FAMILY
from holdfast.host.netlink.socket import NetlinkSocket

# More than any program but a routing daemon makes, and those bring theirs back by themselves. As
# many take a few megabytes of the ledger while a trial waits, and seconds to make again.
MOST_ROUTES = 100_000

_RTM_GETROUTE = 26
_RTA_OIF = 4
_KERNEL_ADDRESSES = frozenset({1, 3})  # IFAPROT_KERNEL_LO, _LL: the kernel makes them again
_LEARNED_ADDRESS = 2  # IFAPROT_KERNEL_RA
_LEARNED_ROUTE = 9  # RTPROT_RA


def boot_clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def take(sock: NetlinkSocket, plan: Plan, claims: Mapping[Key, Claim], tag: int) -> Record:
    """Before the first change. DriverError where not all of it could be read."""
    ours = tags.untagged(claims, tag)
    return _Taking(sock, tag, lambda key: key in ours).record(plan)


@dataclass(frozen=True, slots=True)
class _Taking:
    sock: NetlinkSocket
    tag: int
    is_ours: Callable[[Key], bool]

    def record(self, plan: Plan) -> Record:
        bodies = link_names.dump_links(self.sock)
        links = link_losses.decode_links(bodies)
        index_names = {
            attributes.to_int(body[4:8]): attributes.to_text(
                attributes.parse(body, 16)[IFLA_IFNAME]
            )
            for body in bodies
        }
        addresses = list(self._addresses(index_names))
        hit = touched(plan, links, addresses)
        indexes = {index for index, name in index_names.items() if name in hit.links}
        here = [address for address in addresses if address.index in indexes]
        found, beside, left_out = self._routes(hit, index_names)
        return Record(
            boot_clock(),
            self.tag,
            index_names,
            {
                Kind.LINK: [body for body in bodies if attributes.to_int(body[4:8]) in indexes],
                Kind.SETTING: list(self._settings(hit, links)),
                Kind.TOKEN: list(_tokens(hit, bodies)),
                Kind.PORT: self._ports(hit, index_names),
                Kind.ADDRESS: [
                    address.body for address in here if self._is_others(address, index_names)
                ],
                Kind.NEXTHOP: nexthops.over(self.sock, indexes) if indexes else [],
                Kind.ROUTE: found,
                Kind.NEIGHBOUR: list(self._neighbours(indexes, index_names)),
                Kind.FORWARDING: list(self._forwarding(indexes, bodies)),
                Kind.GROUP: list(self._groups(indexes)),
            },
            [address.body for address in here],
            beside,
            left_out,
        )

    def _addresses(self, index_names: Mapping[int, str]) -> Iterator[SeenAddress]:
        for body in self.sock.dump(RTM_GETADDR, bytes(8), "addresses"):
            name = index_names.get(attributes.to_int(body[4:8]))
            if name is not None and body[0] in address_codec.FAMILIES:
                yield address_codec.decode(body, name)

    def _is_others(self, seen_address: SeenAddress, index_names: Mapping[int, str]) -> bool:
        if (
            seen_address.protocol == self.tag
            or self.is_ours(seen_address.key)
            or seen_address.protocol in _KERNEL_ADDRESSES
        ):
            return False
        if seen_address.version == 6 and seen_address.flags & SECONDARY:
            return False  # temporary: the kernel makes new ones, which is what they are for
        return seen_address.protocol != _LEARNED_ADDRESS or not learns(
            index_names[seen_address.index]
        )

    def _routes(
        self, hit: Touched, index_names: Mapping[int, str]
    ) -> tuple[list[bytes], list[bytes], tuple[str, ...]]:
        """Others' that may go, what stands beside those and ours, and what is left out."""
        found: dict[bytes, None] = {}  # a route over two links is told twice
        keys = set(hit.destinations)
        for body in self._that_may_go(hit, index_names):
            if body[0] == FAMILY[4]:
                keys.add(key_of(body))
            if body[5] not in (tags.KERNEL, self.tag):
                found[body] = None
        # First, as a million of them would take long to look at one by one.
        kept, left_out = _bounded(list(found))
        others = [one for one in kept if self._is_others_route(one, index_names)]
        beside = aliases.beside_others(self.sock, keys)
        if len(beside) > MOST_ROUTES:
            return others, [], (*left_out, f"the order of {len(beside)} routes that have equals")
        return others, beside, left_out

    def _that_may_go(self, hit: Touched, index_names: Mapping[int, str]) -> Iterator[bytes]:
        """Ours and the kernel's among them, which come back by themselves."""
        for version in (4, 6):
            for index, name in index_names.items():
                if name in hit.routed.get(version, ()):
                    yield from self._over(version, index)
                elif _some_may_go(hit, version, name):
                    over = self._over(version, index)
                    yield from (body for body in over if _may_go(body, hit, name))
            if hit.sources:
                yield from self._from(version, hit.sources)

    def _over(self, version: int, index: int) -> Iterable[bytes]:
        header = bytes((FAMILY[version],)) + bytes(11) + attributes.u32(_RTA_OIF, index)
        try:
            return self.sock.dump(_RTM_GETROUTE, header, f"IPv{version} routes of a link")
        except DriverError as error:
            if error.code == errno.ENODEV:  # it went a moment ago
                return []
            raise

    def _from(self, version: int, sources: frozenset[bytes]) -> Iterator[bytes]:
        for body in side_effects.bodies_with_source(self.sock, version, 0, ()):
            if routes.source(body) in sources:
                yield body

    def _is_others_route(self, body: bytes, index_names: Mapping[int, str]) -> bool:
        if is_cloned(body) or self.is_ours(routes.key(body)):
            return False
        if body[5] != _LEARNED_ROUTE:
            return True
        # One that is put back by hand the kernel does not take for its own, and then ends the
        # reading of advertisements there: it must be left to learn it again.
        return not any(learns(index_names.get(leg, "")) for leg in routes.legs(body))

    def _neighbours(self, indexes: set[int], index_names: Mapping[int, str]) -> Iterator[bytes]:
        for body in neighbours.dump(self.sock) if indexes else ():
            index = neighbours.index(body)
            if index not in indexes or not neighbours.is_lasting(body, self.tag):
                continue
            if not self.is_ours(neighbours.key(body, index_names[index])):
                yield body

    def _forwarding(self, indexes: set[int], links: Sequence[bytes]) -> Iterator[bytes]:
        own = {attributes.parse(body, 16).get(IFLA_ADDRESS, b"") for body in links}
        for body in forwarding.dump(self.sock) if indexes else ():
            if forwarding.index(body) in indexes and forwarding.is_static(body, own):
                yield body

    def _groups(self, indexes: set[int]) -> Iterator[bytes]:
        for entry in forwarding.groups(self.sock) if indexes else ():
            if entry.port in indexes:
                yield entry.body

    def _ports(self, hit: Touched, index_names: Mapping[int, str]) -> list[bytes]:
        if not hit.ports:
            return []
        there = ports.dump(self.sock)
        return [body for body in there if index_names.get(ports.index(body)) in hit.ports]

    def _settings(self, hit: Touched, links: Mapping[str, Fields]) -> Iterator[bytes]:
        for name in sorted(hit.links & links.keys()):  # others are yet to be made
            mtu = int(str(links[name]["mtu"]))
            reset = [version for version in (4, 6) if name in hit.reset[version]]
            told = [one for version in reset for one in settings.read(name, version, mtu)]
            if 6 not in reset:
                told += settings.read_mtu(name, mtu)
            for one in told:
                if not self.is_ours(settings.key(settings.decode(one)[0])):
                    yield one


def _tokens(hit: Touched, bodies: Sequence[bytes]) -> Iterator[bytes]:
    for link in map(decode, bodies):
        if link.name in hit.reset[6]:
            yield from tokens.read(link)


def _some_may_go(hit: Touched, version: int, name: str) -> bool:
    return name in hit.dark or (version == 6 and name in hit.prefixes | hit.resized)


def _may_go(body: bytes, hit: Touched, name: str) -> bool:
    """Of routes over a link that does not lose them all."""
    if name in hit.dark and routes.has_nexthop_object(body):
        return True
    if body[0] == FAMILY[4]:
        return False
    return (name in hit.prefixes and routes.is_direct(body)) or (
        name in hit.resized and bool(routes.mtu(body))
    )


def learns(dev: str) -> bool:
    """Whether the kernel itself learns addresses and routes from advertisements on a link: where
    it forwards, only if told so with 2."""
    settings = Path("/proc/sys/net/ipv6/conf", dev)
    try:
        accept = int((settings / "accept_ra").read_text())
        forwards = int((settings / "forwarding").read_text())
    except (OSError, ValueError):
        return False
    return accept == 2 or (accept == 1 and not forwards)


def _bounded(found: list[bytes]) -> tuple[list[bytes], tuple[str, ...]]:
    """Where there are too many, those of the makers with the most are left out."""
    if len(found) <= MOST_ROUTES:
        return found, ()
    counts = Counter(body[5] for body in found)
    kept, room = set(), MOST_ROUTES
    for protocol, count in sorted(counts.items(), key=lambda count: count[1]):
        if count <= room:
            kept.add(protocol)
            room -= count
    left_out = tuple(
        f"{count} routes ({tags.holder_text(protocol)}), more than the {MOST_ROUTES} that a trial"
        " keeps"
        for protocol, count in counts.items()
        if protocol not in kept
    )
    return [body for body in found if body[5] in kept], left_out
