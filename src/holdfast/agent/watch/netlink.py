"""Links, addresses, routes, rules and neighbours: what the kernel tells of them.

Whose change it was is told by the port of the socket it was asked for on. It is not told of links
(`links.py`), nor of what a change brought about: a neighbour that goes with its link, an address
that passed its check. A few of our own changes are told of, therefore.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Collection, Iterator, Set

from holdfast.agent.watch.hint import FACT, Hint, Writer
from holdfast.agent.watch.links import KnownLinks
from holdfast.agent.watch.ports import Ports
from holdfast.agent.watch.watch_scope import WatchScope
from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.neighbour import NEIGHBOUR, neighbour
from holdfast.engine.kinds.route import MAIN_TABLE, ROUTE
from holdfast.engine.kinds.route import identity as route_identity
from holdfast.engine.kinds.rule import RULE
from holdfast.errors import DriverError
from holdfast.host.netlink import attributes, rule_codec, tags
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.messages import HEADER
from holdfast.host.netlink.multicast import RECEIVE_BUFFER, Lost, MulticastSocket
from holdfast.host.netlink.routes.route_codec import (
    RTA_OIF,
    RTM_DELROUTE,
    RTM_NEWROUTE,
)
from holdfast.host.netlink.routes.route_decode import is_cloned, protocol_of
from holdfast.host.netlink.routes.route_notifications import identity_of
from holdfast.host.netlink.socket import REPLACE
from holdfast.host.netlink.socket import ROUTE as RTNETLINK
from holdfast.host.netlink.socket_filter import NDA_PROTOCOL, RTM_DELNEIGH, RTM_NEWNEIGH, Wanted

DEFAULT_ROUTE = Key(FACT, "default route")

# Groups of rtnetlink: links, neighbours, IPv4 addresses, routes and rules, the same of IPv6,
# settings of both.
_GROUPS = (1, 3, 5, 7, 8, 9, 11, 19, 24, 25)
_RTM_NEWLINK, _RTM_DELLINK, _RTM_NEWADDR, _RTM_DELADDR = 16, 17, 20, 21
_RTM_NEWRULE, _RTM_DELRULE, _RTM_NEWNETCONF = 32, 33, 80
_GONE = frozenset({_RTM_DELLINK, _RTM_DELADDR, RTM_DELROUTE, RTM_DELNEIGH, _RTM_DELRULE})
_FAMILIES = frozenset(map(int, rule_codec.FAMILIES.values()))
_IFA_CACHEINFO, _NDA_DST = 6, 1
_NEAR = frozenset({"link", "host"})

# More places than this are not told one by one.
_MANY = 1000
# Messages taken at once, so that the rest of the daemon gets its turn.
_AT_ONCE = 1000
# Messages that each come alone cost a wakeup each. Where many of them are about nothing of ours,
# they are left to gather for a moment; that is all that the next one about something is late.
_FRUITLESS = 20
_REST_S = 0.005


@dataclass(slots=True)
class Counts:
    """For metrics."""

    heard: int = 0  # messages that the kernel let through
    lost: int = 0  # times that messages were lost


class NetlinkWatch:
    """ports: of our own sockets just now. settings: a setting of a link may have changed."""

    def __init__(
        self,
        told: Callable[[Hint], None],
        tag: int,
        ports: Callable[[], Collection[int]],
        settings: Callable[[], None] = lambda: None,
        buffer: int = RECEIVE_BUFFER,
    ) -> None:
        self.counts = Counts()
        self._told = told
        self._ports = ports
        self._settings = settings
        self._followed = WatchScope(tag, protocols=frozenset({tag}))
        self._taken: Set[Key] = frozenset()  # by others, of routes and neighbours
        self._places: frozenset[bytes] | None = frozenset()  # that routes of others' may leave
        self._leaving = False  # neighbours may do so
        self._own: frozenset[int] = frozenset()
        self._replaced = False  # by what is being heard
        self._writers: dict[int, Writer | None] = {}
        self._holders = Ports()
        self._links = KnownLinks()
        self._addresses: dict[Key, tuple[bytes, dict[int, bytes]]] = {}
        self._fruitless = 0
        self._resting: asyncio.TimerHandle | None = None
        self._hearers: dict[int, Callable[[bytes, int, bool], Iterator[Hint]]] = {
            **dict.fromkeys((_RTM_NEWLINK, _RTM_DELLINK), self._link),
            **dict.fromkeys((_RTM_NEWADDR, _RTM_DELADDR), self._address),
            **dict.fromkeys((RTM_NEWROUTE, RTM_DELROUTE), self._route),
            **dict.fromkeys((RTM_NEWNEIGH, RTM_DELNEIGH), self._neighbour),
            **dict.fromkeys((_RTM_NEWRULE, _RTM_DELRULE), self._rule),
            _RTM_NEWNETCONF: self._setting,
        }
        self._loop = asyncio.get_running_loop()
        self._sock = MulticastSocket(RTNETLINK, _GROUPS, buffer)
        self._filter()
        self._links.read()
        self._loop.add_reader(self._sock, self._read)

    def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def follow(self, what: WatchScope) -> None:
        what.take_over(self._followed)
        self._followed = what
        self._filter()

    def taken(self, keys: Set[Key]) -> None:
        """Others have something of theirs in these places of ours: that it goes is told, too."""
        routes = {key for key in keys if key.kind == ROUTE.name}
        neighbours = {key for key in keys if key.kind == NEIGHBOUR.name}
        fresh, self._taken = (routes | neighbours) - self._taken, routes | neighbours
        self._leaving = bool(neighbours)
        self._places = frozenset(map(_destination, routes)) if len(routes) <= _MANY else None
        self._filter()
        # It may have gone before the kernel was asked to tell of it.
        if len(fresh) > _MANY:
            for kind in {key.kind for key in fresh}:
                self._told(Hint(kind))
            return
        for key in fresh:
            name = (None, route_identity(key)) if key in routes else (key, None)
            self._told(Hint(key.kind, *name))

    def _filter(self) -> None:
        self._own = frozenset(self._ports())
        what = self._followed
        neighbours = what.untagged_neighbours or self._leaving
        self._sock.filter(Wanted(what.protocols, self._own, neighbours, self._places))

    def _read(self) -> None:
        if frozenset(self._ports()) != self._own:
            self._filter()
        self._writers.clear()
        fruitless = 0
        for _ in range(_AT_ONCE):
            try:
                data = self._sock.receive()
            except Lost:
                self._lose()
                continue
            if data is None:
                break
            fruitless += not self._take(data)
        self._fruitless = fruitless + self._fruitless // 2
        if self._fruitless >= _FRUITLESS:
            self._loop.remove_reader(self._sock)
            self._resting = self._loop.call_later(_REST_S, self._rested)

    def _rested(self) -> None:
        self._resting = None
        self._loop.add_reader(self._sock, self._read)
        self._read()

    def _lose(self) -> None:
        """What was known of links and addresses may be wrong, and all else may have changed."""
        self.counts.lost += 1
        self._addresses.clear()
        try:
            self._links.read()
        except DriverError:
            self._links = KnownLinks()  # learned anew, one by one
        self._told(Hint())

    def _take(self, data: bytes) -> bool:
        """Whether any of it was worth telling."""
        worth = False
        offset, end = 0, len(data)
        while offset + HEADER.size <= end:
            length, kind, flags, _, port = HEADER.unpack_from(data, offset)
            if length < HEADER.size:
                break
            self.counts.heard += 1
            self._replaced = bool(flags & REPLACE)
            worth |= self._hear(kind, port, data[offset + HEADER.size : offset + length])
            offset += (length + 3) & ~3
        return worth

    def _hear(self, kind: int, port: int, body: bytes) -> bool:
        heard = self._hearers.get(kind)
        if heard is None:
            return False
        # Those without a name are of what may have gone along with something else.
        followed = self._followed.kinds
        hints = [
            hint
            for hint in heard(body, port, kind in _GONE)
            if hint.key or hint.identity or hint.kind in followed
        ]
        for hint in hints:
            self._told(hint)
        return bool(hints)

    def _writer(self, port: int) -> Writer | None:
        if port not in self._writers:
            self._writers[port] = self._holders.writer(port)
        return self._writers[port]

    def _route(self, body: bytes, port: int, gone: bool) -> Iterator[Hint]:
        """Of others' routes those alone that replaced one of ours, came beside one, have a leg with
        one or leave room for one; and the kernel's own that somebody deleted."""
        if port in self._own or is_cloned(body):
            return
        tagged = protocol_of(body) == self._followed.tag
        if gone and port and protocol_of(body) == tags.KERNEL and self._has_address(body):
            yield Hint(ADDRESS.name, writer=self._writer(port))  # it may be that of its prefix
        if not body[1] and not tagged and body[4] == MAIN_TABLE:
            yield Hint(FACT, DEFAULT_ROUTE, writer=self._writer(port), gone=gone)
        identity = identity_of(body)
        if tagged or self._followed.holds(identity):
            yield Hint(ROUTE.name, None, identity, self._writer(port), gone, body, self._replaced)

    def _has_address(self, body: bytes) -> bool:
        """Is an address of ours on the link of a route?"""
        index = attributes.to_int(attributes.parse(body, 12).get(RTA_OIF, b""))
        dev = f" dev {self._links.name(index)}"
        keys = self._followed.keys
        return any(key.kind == ADDRESS.name and key.name.endswith(dev) for key in keys)

    def _neighbour(self, body: bytes, port: int, gone: bool) -> Iterator[Hint]:
        found = attributes.parse(body, 12)
        name = self._links.name(attributes.to_int(body[4:8]))
        if port in self._own or body[0] not in _FAMILIES or _NDA_DST not in found or not name:
            return
        key = neighbour(ipaddress.ip_address(found[_NDA_DST]), name, "").key
        tagged = attributes.to_int(found.get(NDA_PROTOCOL, b"")) == self._followed.tag
        if tagged or key in self._followed.keys:
            yield Hint(NEIGHBOUR.name, key, writer=self._writer(port), gone=gone)

    def _rule(self, body: bytes, port: int, gone: bool) -> Iterator[Hint]:
        if port in self._own or body[0] not in _FAMILIES:
            return
        seen = rule_codec.decode(body)
        if seen.protocol == self._followed.tag or seen.key in self._followed.keys:
            yield Hint(RULE.name, seen.key, writer=self._writer(port), gone=gone)

    def _address(self, body: bytes, port: int, gone: bool) -> Iterator[Hint]:
        """Of everybody's, for facts are made of them and they may speak against ours; but not
        each time that the lifetime of one is renewed."""
        name = self._links.name(attributes.to_int(body[4:8]))
        if not name or body[0] not in _FAMILIES:
            return
        seen = address_codec.decode(body, name)
        key, keys = seen.key, self._followed.keys
        if seen.scope in _NEAR and self._links.is_guest(seen.index, keys) and key not in keys:
            return  # it is in nobody's way
        before = self._addresses.pop(key, None)
        if not gone:
            found = attributes.parse(body, 8)
            found.pop(_IFA_CACHEINFO, None)
            now = self._addresses[key] = (body[:8], found)
            if before == now:
                return
        if port in self._own:
            return  # remembered all the same: the next change of another's is one from this
        yield Hint(ADDRESS.name, key, writer=self._writer(port), gone=gone)
        if gone:
            # Routes that named it as their source go or change without a word, and with the last
            # address of a link all IPv4 routes through it.
            yield Hint(ROUTE.name, writer=self._writer(port))

    def _link(self, body: bytes, _port: int, gone: bool) -> Iterator[Hint]:
        return self._links.heard(body, gone, self._followed.keys, self._followed.lacking)

    def _setting(self, _body: bytes, _port: int, _gone: bool) -> Iterator[Hint]:
        """Which one is not worth finding out: they are read."""
        self._settings()
        return iter(())


def _destination(key: Key) -> bytes:
    """Of a route, as a packed address."""
    found = route_identity(key)
    return found[-4 if found[0] == 4 else -16 :]
