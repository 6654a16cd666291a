"""A few routes among very many, known without a dump: by what was seen before, by what the kernel
told since, and by looking at single ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from holdfast.dataclass import dataclass, field, replace
from holdfast.engine.artifact import Batch
from holdfast.engine.kinds.route import ROUTE, RouteTemplate, split_identity
from holdfast.host.netlink.links.link_names import LinkNames, read_names
from holdfast.host.netlink.routes.route_decode import Reader, family_of, protocol_of, settle
from holdfast.host.netlink.routes.route_notifications import RouteNotice, identity_of
from holdfast.host.netlink.routes.route_probe import look_at
from holdfast.host.netlink.routes.route_sighting import RouteSighting
from holdfast.host.netlink.routes.shared_legs import among
from holdfast.host.netlink.socket import NetlinkSocket


class Unclear(Exception):  # noqa: N818 (a look at all of them clears it up)
    """What is at an identity cannot be told without looking at all routes."""


class _Hidden(Unclear):
    """Others hide it from a single look."""


@dataclass(slots=True)
class KnownRoutes:
    """The routes of ours at some identities."""

    sock: NetlinkSocket
    tag: int
    _there: dict[bytes, set[bytes]] = field(default_factory=dict)  # identity -> own bodies
    _links: LinkNames | None = None

    def expect(self, identities: Iterable[bytes], held: Sequence[Batch]) -> None:
        """At these identities is what was seen last, and nothing else."""
        self._there = {identity: set() for identity in identities}
        seen = self._sighting()
        for batch in held:
            for key, body in zip(batch.keys, _packed(seen, batch), strict=True):
                self._there[batch.scope + key].add(body)

    def hear(self, told: Iterable[RouteNotice], unknown: Iterable[bytes] = ()) -> None:
        """Changes by others, in the order they came. unknown: identities of which nothing is known.
        Unclear: a look at all is needed.

        A route that came may stand before ours, behind it or in its place, and of other programs'
        that went nothing is told: what is in effect is looked at.
        """
        doubtful: dict[bytes, None] = {}
        went: dict[bytes, None] = {}
        for notice in told:
            if notice.identity in self._there:
                went[notice.identity] = None
                (settled,) = settle([notice.body], family_of(notice.body))
                notice = notice._replace(body=settled)
                if not notice.gone or notice.body not in self._there[notice.identity]:
                    doubtful[notice.identity] = None
                self._follow(notice)
        nothing = set(unknown)
        for identity in nothing:
            self._look(identity, alone=True)
        for identity in doubtful:
            if identity not in nothing:
                self._look(identity, alone=identity[0] == 6)
        for identity in went:
            if identity not in doubtful and identity not in nothing:
                # It may be back by now: what is told was told before a pass that repaired it.
                with suppress(_Hidden):
                    self._look(identity, alone=not self._there[identity])

    def check(self, told: Iterable[RouteNotice] | None, wanted: Sequence[Batch]) -> None:
        """After a change by us, what is there now. told: all that the kernel said meanwhile, None
        where some of that was lost. Unclear: a look at all is needed."""
        expected: dict[bytes, set[bytes]] = {identity: set() for identity in self._there}
        seen = self._sighting()
        for batch in wanted:
            # None of those whose link is gone, or whose gateway nothing leads to, can be there.
            for key, body in zip(batch.keys, seen.pack(batch) or (), strict=False):
                expected[batch.scope + key].add(body)
        strange: set[bytes] = set()
        for notice in told or ():
            if notice.identity in self._there:
                if protocol_of(notice.body) != self.tag:
                    strange.add(notice.identity)
                self._follow(notice)
        for identity, bodies in expected.items():
            if told is None or identity in strange or self._there[identity] != bodies:
                self._look(identity, bodies, alone=True)

    def _follow(self, route_notice: RouteNotice) -> None:
        """What one change makes of the routes of ours at its identity."""
        here = self._there[route_notice.identity]
        ours = protocol_of(route_notice.body) == self.tag
        if route_notice.gone:
            if route_notice.body not in here and ours and route_notice.identity[0] == 6:
                self._there[route_notice.identity] = {
                    left for body in here if (left := self._without_legs(body, route_notice.body))
                }
            here.discard(route_notice.body)
            return
        if route_notice.replaced or (ours and route_notice.identity[0] == 6):
            here.clear()
        if ours:
            here.add(route_notice.body)

    def _without_legs(self, body: bytes, gone: bytes) -> bytes | None:
        """Of an IPv6 route with several legs, each that goes is told of alone."""
        seen = self._sighting()
        (shared, key), (lost, _) = seen.reader.read(body), seen.reader.read(gone)
        legs = tuple(leg for leg in shared.nexthops if not among(leg, lost.nexthops))
        left = seen.pack(Batch(ROUTE, replace(shared, nexthops=legs), [key])) if legs else None
        return left[0] if left else None

    def sighting(self) -> RouteSighting:
        seen = self._sighting()
        for bodies in self._there.values():
            seen.own.update(bodies)
        return seen

    def _sighting(self) -> RouteSighting:
        if self._links is None:
            self._links = read_names(self.sock)
        names = self._links
        reader = Reader(names.names)
        return RouteSighting(self.tag, names.indexes, reader)

    def _look(self, identity: bytes, likely: Iterable[bytes] = (), *, alone: bool) -> None:
        """alone: besides the one in effect there is none of ours. In IPv4 there may be one behind
        it, and what was told says which. likely: what may be there."""
        table = int.from_bytes(identity[1:5], "big")
        point = look_at(self.sock, table, split_identity(identity)[1])
        if not point.known:
            raise _Hidden("others hide a route from a single look")
        if point.body is None:
            self._there[identity] = set()
        elif identity_of(point.body) != identity:
            raise Unclear("a route of another metric hides one")
        elif protocol_of(point.body) != self.tag:
            raise Unclear("another program has put its route where ours was")
        else:
            body = self._as_dumped(point.body, (*self._there[identity], *likely))
            if alone:
                self._there[identity] = {body}
            elif body not in self._there[identity]:
                raise Unclear("a route of ours is there that nothing was told of")

    def _as_dumped(self, body: bytes, likely: Iterable[bytes]) -> bytes:
        """A look begins with any of the legs of an IPv6 route, a dump with the first."""
        reader = self._sighting().reader
        seen, key = reader.read(body)
        if seen.family == 4 or len(seen.nexthops) < 2:
            return body
        for other in likely:
            shared, where = reader.read(other)
            if where == key and seen in _turned(shared):
                return other
        raise Unclear("a look does not tell which leg of a route comes first")


def _turned(shared: RouteTemplate) -> Iterator[RouteTemplate]:
    """The same legs, beginning with each of them."""
    for at in range(len(shared.nexthops)):
        yield replace(shared, nexthops=(*shared.nexthops[at:], *shared.nexthops[:at]))


def _packed(seen: RouteSighting, batch: Batch) -> list[bytes]:
    bodies = seen.pack(batch)
    if bodies is None:
        raise Unclear("a link that routes lead over is gone")
    return bodies
