"""What others lose when a link is changed or deleted, told before it happens: on that link, and on
those that the kernel takes along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.driver import Coming
from holdfast.engine.kinds.link import link_key
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.observed import Along, Loss
from holdfast.engine.plan import Verb
from holdfast.host.netlink import attributes, side_effects, tags
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import PERMANENT, TEMPORARY, SeenAddress
from holdfast.host.netlink.links import forwarding, link_codec
from holdfast.host.netlink.links.following_macs import Links
from holdfast.host.netlink.links.link_effects import IPV6_LEAST_MTU, Effects, LinkStack
from holdfast.host.netlink.links.link_names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.links.link_types import Names, is_loose, stands_on
from holdfast.host.netlink.routes.nexthop_objects import nexthops_lost
from holdfast.host.netlink.side_effects import IsOurs, Lost, Route
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
        self._entries = cache(self._read_entries)

    def whoever(self) -> LinkLosses:
        """The same, telling what goes whoever made it."""
        return LinkLosses(self._sock, self._links, tags.NOBODY, side_effects.nobody)

    def of(
        self, changing: Mapping[Key, Coming], made: Sequence[Artifact]
    ) -> dict[Key, Sequence[Loss]]:
        """By the links that are changed, deleted or made. Of several that are changed together,
        each with what goes only because of those before it: a bridge has a carrier until the last
        of its ports leaves."""
        found: dict[Key, Sequence[Loss]] = {}
        later = self._stack
        for key, coming in changing.items():
            stacks = [self._stack] if later is self._stack else [self._stack, later]
            if coming.ends:
                lost = _once(each for stack in stacks for each in self._with_end(stack, key.name))
                found[key] = [Loss(each) for each in lost]
            else:
                found[key] = list(self._with_changes(stacks, key.name, coming))
            if len(changing) > 1:
                later = _after(later, key.name, coming)
        for artifact in made:
            of_new = self.of_new(artifact.key.name, artifact.fields)
            found[artifact.key] = [Loss(each) for each in of_new]
        return found

    def _with_changes(
        self, stacks: Sequence[LinkStack], name: str, coming: Coming
    ) -> Iterator[Loss]:
        for change in coming.changes:
            effects = [stack.of_change(name, change.field, change.after) for stack in stacks]
            for lost in _once(each for effect in effects for each in self._lost(effect)):
                yield Loss(lost, change.field)

    def of_end(self, name: str) -> list[str]:
        return _once(self._with_end(self._stack, name))

    def _with_end(self, stack: LinkStack, name: str) -> Iterator[str]:
        effects = stack.of_end(name)
        yield from self._structure(effects.gone)
        yield from self._lost(effects)

    def of_change(self, name: str, field: str, value: Value) -> list[str]:
        return _once(self._lost(self._stack.of_change(name, field, value)))

    def of_new(self, name: str, fields: Fields) -> list[str]:
        return _once(self._lost(self._stack.of_new(name, fields)))

    def of_disabled_ipv6(self, names: Iterable[str]) -> list[str]:
        return _once(self._lost(Effects(disabled=frozenset(names))))

    def _structure(self, gone: Set[str]) -> Iterator[str]:
        """Links of others that go with it, that lose what they stand on, or who holds them."""
        for other, fields in self._links.items():
            if self._ours(link_key(other)):
                continue
            if fields.get("parent") in gone:
                yield Lost.of(link_key(other), "", after=f", which stands on {fields['parent']}")
            elif fields["master"] in gone and other not in gone:
                yield Lost.of(link_key(other), "", "the place of ", f" in {fields['master']}")

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
            for name in sorted(effects.dark - names - effects.moved):
                if _forgets_without_carrier(version, name):
                    yield from self._neighbours(version, name, permanent=False)
        yield from self._lost_mtus(effects, shrunk)
        yield from self._lost_entries(effects.gone | effects.left)

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
                    yield route.lost()
                elif route.nexthop_object or name not in effects.down | effects.disabled:
                    yield route.lost(f"the leg over {name} of ")

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
                    yield Lost.of(address.key, holder)
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
                    yield route.lost(f"the MTU {route.mtu} of ")

    def _lost_entries(self, names: Set[str]) -> Iterator[str]:
        """Static entries of ports that leave their bridge, or end with it or with their vxlan."""
        by_index = {self._index(name): name for name in names if name in self._links}
        for index, key, protocol in self._entries() if by_index else ():
            if index in by_index and not self._ours(key):
                yield f"{key} ({tags.holder_text(protocol)})"

    def _read_entries(self) -> list[tuple[int, Key, int]]:
        """With the index of the link that each goes with, and the number of its maker."""
        named = {self._index(name): name for name in self._links}
        own = {bytes.fromhex(str(each["mac"]).replace(":", "")) for each in self._links.values()}
        found = []
        for body in forwarding.dump(self._sock):
            dev = named.get(forwarding.index(body), "")
            if forwarding.is_static(body, own, str(self._links.get(dev, {}).get("remote", ""))):
                found.append((forwarding.index(body), forwarding.key(body, dev), 0))
        for entry in forwarding.groups(self._sock):
            key = entry.key(named.get(entry.bridge, ""), named.get(entry.port, ""))
            found.append((entry.port, key, entry.protocol))
        return found

    def _read_routes(self, version: int, name: str) -> list[Route]:
        without = (tags.KERNEL, self._tag, *_LEARNT_ROUTES)
        found = side_effects.routes_over(self._sock, version, self._index(name), without)
        return [route for route in found if side_effects.foreign(route, self._tag, self._ours)]

    def _read_addresses(self, name: str) -> list[SeenAddress]:
        return [address_codec.decode(body, name) for body in self._bodies()[self._index(name)]]

    def _read_bodies(self) -> dict[int, list[bytes]]:
        """All addresses, by the index of their links."""
        found: dict[int, list[bytes]] = defaultdict(list)
        for body in self._sock.dump(address_codec.RTM_GETADDR, bytes(8), "addresses"):
            if body[0] in address_codec.FAMILIES:
                found[attributes.to_int(body[4:8])].append(body)
        return found

    def _read_neighbours(self, version: int, name: str, *, permanent: bool = True) -> list[str]:
        return side_effects.foreign_neighbours(
            *(self._sock, version, name, self._index(name), self._tag, self._ours),
            permanent=permanent,
        )

    def _indexes(self, names: Iterable[str]) -> list[int]:
        return [self._index(name) for name in sorted(names) if name in self._links]

    def _index(self, name: str) -> int:
        return int(str(self._links[name]["ifindex"]))

    def _vrf_table(self, name: str) -> int:
        fields = self._links[name]
        vrf = self._links.get(str(fields["master"]), fields)
        return int(str(vrf["table"])) if vrf["type"] == "vrf" else 0


def along(
    whoever: LinkLosses, changing: Mapping[Key, Coming], others: Mapping[Key, Sequence[Loss]]
) -> dict[Key, Sequence[Along]]:
    """What of ours goes with the links that are changed or deleted: all that goes, less what others
    lose."""
    found: dict[Key, Sequence[Along]] = {}
    for key, lost in whoever.of(changing, ()).items():
        known = {other.what for other in others.get(key, ())}
        found[key] = [
            Along(loss.what.key, loss.what.plain, loss.field, _can_return(loss, changing[key]))
            for loss in lost
            if isinstance(loss.what, Lost) and loss.what not in known
        ]
    return found


def _can_return(lost: Loss, coming: Coming) -> bool:
    """A link that is made anew takes all of it again; one that is down no routes, and one with a
    small MTU nothing of IPv6."""
    if not lost.field:
        return coming.verb is not Verb.DELETE
    values = {change.field: change.after for change in coming.changes}
    if (
        isinstance(lost.what, Lost)
        and lost.what.key.kind == ROUTE.name
        and values.get("up") is False
    ):
        return False
    return lost.field != "mtu" or int(str(values["mtu"])) >= IPV6_LEAST_MTU


def _after(stack: LinkStack, name: str, coming: Coming) -> LinkStack:
    """As far as it decides about carriers: all else follows from each change alone."""
    if coming.ends:
        return stack.after_end(name)
    changed = {
        change.field: change.after for change in coming.changes if change.field in ("up", "master")
    }
    return stack.after_change(name, changed) if changed and name in stack.links else stack


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


def _forgets_without_carrier(version: int, dev: str) -> bool:
    """Whether neighbours that are not permanent go when a link loses its carrier. Unknown counts
    as yes."""
    setting = {4: "arp_evict_nocarrier", 6: "ndisc_evict_nocarrier"}[version]
    for name in ("all", dev):
        try:
            text = Path(f"/proc/sys/net/ipv{version}/conf", name, setting).read_text()
        except OSError:
            continue
        if int(text) == 0:
            return False
    return True


def _once(lost: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lost))
