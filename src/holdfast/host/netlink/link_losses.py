"""What others lose when a link is changed or deleted, told before it happens: on that link, and on
those that the kernel takes along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.driver import Coming
from holdfast.engine.observed import Loss
from holdfast.host.netlink import address_codec, attributes, link_codec, side_effects, tags
from holdfast.host.netlink.address_codec import PERMANENT, TEMPORARY, SeenAddress
from holdfast.host.netlink.following_macs import Links
from holdfast.host.netlink.link_effects import IPV6_LEAST_MTU, Effects, LinkStack
from holdfast.host.netlink.link_types import Names, is_loose, stands_on
from holdfast.host.netlink.names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.nexthop_objects import nexthops_lost
from holdfast.host.netlink.side_effects import IsOurs, Route
from holdfast.host.netlink.socket import NetlinkSocket

# Those whose change the kernel may take what others made along with.
_TAKING = ("master", "mac", "mtu", "up")
_IFF_LOWER_UP = 0x10000
# What the kernel learnt from routers by itself, nobody made, and it learns it again.
_LEARNT_ROUTES = (tags.REDIRECT, tags.ROUTER_ADVERTISEMENT)


class LinkLosses:
    """Predictions over one reading of all links. What stands on them is read where it matters."""

    def __init__(self, sock: NetlinkSocket, links: Links, tag: int, ours: IsOurs) -> None:
        self._sock = sock
        self._links = links
        self._stack = LinkStack(links)
        self._tag = tag
        self._ours = ours
        self._routes = cache(self._read_routes)
        self._bodies = cache(self._read_bodies)
        self._addresses = cache(self._read_addresses)
        self._neighbours = cache(self._read_neighbours)

    def of(
        self, changing: Mapping[Key, Coming], made: Sequence[Artifact]
    ) -> dict[Key, Sequence[Loss]]:
        """By the links that are changed, deleted or made."""
        found: dict[Key, Sequence[Loss]] = {}
        for key, coming in changing.items():
            if coming.ends:
                found[key] = [Loss(lost) for lost in self.of_end(key.name)]
                continue
            found[key] = [
                Loss(lost, change.field)
                for change in coming.changes
                for lost in self.of_change(key.name, change.field, change.after)
            ]
        for artifact in made:
            lost = self.of_new(artifact.key.name, artifact.fields)
            found[artifact.key] = [Loss(each) for each in lost]
        return found

    def of_end(self, name: str) -> list[str]:
        effects = self._stack.of_end(name)
        return _once([*self._structure(effects.gone), *self._lost(effects)])

    def of_change(self, name: str, field: str, value: Value) -> list[str]:
        return _once(self._lost(self._stack.of_change(name, field, value)))

    def of_new(self, name: str, fields: Fields) -> list[str]:
        return _once(self._lost(self._stack.of_new(name, fields)))

    def of_disabled_ipv6(self, names: Iterable[str]) -> list[str]:
        return _once(self._lost(Effects(disabled=frozenset(names))))

    def _structure(self, gone: Set[str]) -> Iterator[str]:
        """Links of others that go with it, that lose what they stand on, or who holds them."""
        for other, fields in self._links.items():
            if self._ours(Key("link", other)):
                continue
            if fields.get("parent") in gone:
                yield f"link {other}, which stands on {fields['parent']}"
            elif fields["master"] in gone and other not in gone:
                yield f"the place of link {other} in {fields['master']}"

    def _lost(self, effects: Effects) -> Iterator[str]:
        if not effects:
            return
        shrunk = self._without_ipv6(effects)
        silent = effects.gone | effects.down
        without_ipv6 = silent | shrunk | effects.disabled
        yield from self._lost_routes(4, silent, effects)
        yield from self._lost_routes(6, without_ipv6, effects)
        yield from nexthops_lost(self._sock, self._indexes(silent | effects.dark))
        yield from self._lost_addresses(effects, shrunk)
        for version, names in ((4, silent), (6, without_ipv6)):
            for name in sorted(names | effects.moved):
                yield from self._neighbours(version, name)
        yield from self._lost_mtus(effects, shrunk)

    def _without_ipv6(self, effects: Effects) -> frozenset[str]:
        return frozenset(
            name
            for name, mtu in effects.mtus.items()
            if mtu < IPV6_LEAST_MTU <= int(str(self._links[name]["mtu"]))
        )

    def _lost_routes(self, version: int, without: Set[str], effects: Effects) -> Iterator[str]:
        """without: links that have no routes of this family any more. Routes over nexthop objects
        go with those, which outlive an MTU, but not the loss of a carrier."""
        dead = set(self._indexes(without))
        dead_objects = set(self._indexes(effects.gone | effects.down | effects.dark))
        gone = set(self._indexes(effects.gone))
        for name in sorted(without | effects.dark):
            index = self._index(name)
            for route in self._routes(version, name):
                ending = dead_objects if route.nexthop_object else dead
                if index not in ending:
                    continue
                # Of a route with several legs the kernel leaves the others; but an IPv4 route that
                # has a leg over a link that is deleted goes as a whole.
                if route.legs <= ending or (version == 4 and route.legs & gone):
                    yield str(route)
                elif route.nexthop_object or name not in effects.down | effects.disabled:
                    yield f"the leg over {name} of {route}"

    def _lost_addresses(self, effects: Effects, shrunk: Set[str]) -> Iterator[str]:
        sources: dict[bytes, set[int]] = {}
        for name in sorted(effects.gone | effects.down | effects.disabled | shrunk):
            for address in self._addresses(name):
                if address.version == 4 and name not in effects.gone:
                    continue
                if name in effects.down and _kept_on_down(address, name):
                    continue
                if address.version == 4:
                    sources.setdefault(address.ip, set()).add(self._vrf_table(name))
                if self._made_by_others(address):
                    holder = tags.holder_text(address.protocol, self._tag, address=True)
                    yield f"{address.key} ({holder})"
        yield from self._lost_sources(sources, effects.gone)

    def _made_by_others(self, address: SeenAddress) -> bool:
        if address.protocol == self._tag or self._ours(address.key):
            return False
        return address.version == 4 or (
            address.scope not in ("link", "host")
            and address.protocol not in tags.KERNEL_ADDRESSES
            and not address.flags & TEMPORARY
        )

    def _lost_sources(self, sources: dict[bytes, set[int]], gone: Set[str]) -> Iterator[str]:
        """IPv4 routes of others that lead elsewhere from an address that goes with a link."""
        for name in self._links if sources else ():
            if name not in gone:
                for address in self._addresses(name):
                    sources.get(address.ip, set()).discard(self._vrf_table(name))
        left = {ip: tables for ip, tables in sources.items() if tables}
        lost = side_effects.lost_sources(self._sock, 4, left, self._tag, self._ours)
        for routes in lost.values():
            yield from routes

    def _lost_mtus(self, effects: Effects, shrunk: Set[str]) -> Iterator[str]:
        """The kernel sets the MTU of an IPv6 route to that of its link where it is larger, or was
        the same."""
        for name, mtu in effects.mtus.items():
            for route in self._routes(6, name) if name not in shrunk else ():
                if route.mtu and (route.mtu > mtu or route.mtu == self._links[name]["mtu"]):
                    yield f"the MTU {route.mtu} of {route}"

    def _read_routes(self, version: int, name: str) -> list[Route]:
        without = (tags.KERNEL, self._tag, *_LEARNT_ROUTES)
        found = side_effects.routes_over(self._sock, version, self._index(name), without)
        return [one for one in found if side_effects.foreign(one, self._tag, self._ours)]

    def _read_addresses(self, name: str) -> list[SeenAddress]:
        return [address_codec.decode(body, name) for body in self._bodies()[self._index(name)]]

    def _read_bodies(self) -> dict[int, list[bytes]]:
        """All addresses, by the index of their links."""
        found: dict[int, list[bytes]] = defaultdict(list)
        for body in self._sock.dump(address_codec.RTM_GETADDR, bytes(8), "addresses"):
            if body[0] in address_codec.FAMILIES:
                found[attributes.to_int(body[4:8])].append(body)
        return found

    def _read_neighbours(self, version: int, name: str) -> list[str]:
        return side_effects.foreign_neighbours(
            self._sock, version, name, self._index(name), self._tag, self._ours
        )

    def _indexes(self, names: Iterable[str]) -> list[int]:
        return [self._index(name) for name in sorted(names) if name in self._links]

    def _index(self, name: str) -> int:
        return int(str(self._links[name]["ifindex"]))

    def _vrf_table(self, name: str) -> int:
        fields = self._links[name]
        vrf = self._links.get(str(fields["master"]), fields)
        return int(str(vrf["table"])) if vrf["type"] == "vrf" else 0


def may_take(field: str, value: Value) -> bool:
    """Whether others may lose something by such a value of a field at all."""
    return field in _TAKING and not (field == "up" and value)


def read_links(sock: NetlinkSocket) -> dict[str, Fields]:
    return decode_links(dump_links(sock))


def decode_links(bodies: Sequence[bytes]) -> dict[str, Fields]:
    names = {
        attributes.to_int(body[4:8]): attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])
        for body in bodies
    }
    return dict(decode_link(body, lambda index: names.get(index, "")) for body in bodies)


def decode_link(body: bytes, name_of: Names) -> tuple[str, Fields]:
    """With what decides about other links, and is no field of a link."""
    artifact = link_codec.decode(body, name_of).artifact
    carrier = bool(attributes.to_int(body[8:12]) & _IFF_LOWER_UP)
    found = attributes.parse(body, 16)
    below = stands_on(found)
    known = {"parent": name_of(below), **artifact.fields} if below else artifact.fields
    return artifact.key.name, {**known, "carrier": carrier, "loose": is_loose(found)}


def _kept_on_down(address: SeenAddress, dev: str) -> bool:
    """Whether an IPv6 address outlives that its link goes down. Unknown counts as no."""
    if not address.flags & PERMANENT or address.scope in ("link", "host"):
        return False
    for name in ("all", dev):
        try:
            text = Path("/proc/sys/net/ipv6/conf", name, "keep_addr_on_down").read_text()
        except OSError:
            continue
        if int(text) != 0:
            return int(text) > 0
    return False


def _once(lost: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lost))
