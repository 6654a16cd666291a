"""Taking the record: what others have on what a plan touches, as the kernel tells it."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.plan import Plan
from holdfast.errors import DriverError
from holdfast.host.netlink import address_codec, attributes, link_losses, names, side_effects, tags
from holdfast.host.netlink.address_codec import RTM_GETADDR, SECONDARY, SeenAddress
from holdfast.host.netlink.link_codec import IFLA_ADDRESS
from holdfast.host.netlink.names import IFLA_IFNAME
from holdfast.host.netlink.side_effects import FAMILY
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.others import neighbours, nexthops, routes
from holdfast.host.others.record import Kind, Record
from holdfast.host.others.touched import Touched, touched

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
        bodies = names.dump_links(self.sock)
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
        here = [one for one in addresses if one.index in indexes]
        found, left_out = self._routes(hit, index_names)
        return Record(
            boot_clock(),
            self.tag,
            index_names,
            {
                Kind.LINK: [one for one in bodies if attributes.to_int(one[4:8]) in indexes],
                Kind.ADDRESS: [one.body for one in here if self._is_others(one, index_names)],
                Kind.NEXTHOP: nexthops.over(self.sock, indexes) if indexes else [],
                Kind.ROUTE: found,
                Kind.NEIGHBOUR: list(self._neighbours(indexes, index_names)),
                Kind.FORWARDING: list(self._forwarding(indexes, bodies)),
            },
            [one.body for one in here],
            left_out,
        )

    def _addresses(self, index_names: Mapping[int, str]) -> Iterator[SeenAddress]:
        for body in self.sock.dump(RTM_GETADDR, bytes(8), "addresses"):
            name = index_names.get(attributes.to_int(body[4:8]))
            if name is not None and body[0] in address_codec.FAMILIES:
                yield address_codec.decode(body, name)

    def _is_others(self, one: SeenAddress, index_names: Mapping[int, str]) -> bool:
        if one.protocol == self.tag or self.is_ours(one.key) or one.protocol in _KERNEL_ADDRESSES:
            return False
        if one.version == 6 and one.flags & SECONDARY:
            return False  # temporary: the kernel makes new ones, which is what they are for
        return one.protocol != _LEARNED_ADDRESS or not learns(index_names[one.index])

    def _routes(
        self, hit: Touched, index_names: Mapping[int, str]
    ) -> tuple[list[bytes], tuple[str, ...]]:
        found: dict[bytes, None] = {}  # a route over two links is told twice
        for version in (4, 6):
            for index, name in index_names.items():
                if name in hit.routed.get(version, ()):
                    found |= dict.fromkeys(self._over(version, index))
                elif version == 6 and name in hit.prefixes:
                    over = self._over(version, index)
                    found |= dict.fromkeys(body for body in over if routes.is_direct(body))
            if hit.sources:
                found |= dict.fromkeys(self._from(version, hit.sources))
        # First, as a million of them would take long to look at one by one.
        kept, left_out = _bounded(list(found))
        return [one for one in kept if self._is_others_route(one, index_names)], left_out

    def _over(self, version: int, index: int) -> Iterable[bytes]:
        header = bytes((FAMILY[version],)) + bytes(11) + attributes.u32(_RTA_OIF, index)
        try:
            bodies = self.sock.dump(_RTM_GETROUTE, header, f"IPv{version} routes of a link")
        except DriverError as error:
            if error.code == errno.ENODEV:  # it went a moment ago
                return []
            raise
        return (body for body in bodies if body[5] not in (tags.KERNEL, self.tag))

    def _from(self, version: int, sources: frozenset[bytes]) -> Iterator[bytes]:
        without = (tags.KERNEL, self.tag)
        for body in side_effects.bodies_with_source(self.sock, version, 0, without):
            if routes.source(body) in sources:
                yield body

    def _is_others_route(self, body: bytes, index_names: Mapping[int, str]) -> bool:
        if routes.is_cached(body) or self.is_ours(routes.key(body)):
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
        for body in neighbours.dump_forwarding(self.sock) if indexes else ():
            if neighbours.index(body) in indexes and neighbours.is_static_forwarding(body, own):
                yield body


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
    for protocol, count in sorted(counts.items(), key=lambda one: one[1]):
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
