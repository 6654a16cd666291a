"""Putting back what others had and have no more, once ours is as it was.

All of it is made exclusively: what is there now, by whomever, is not touched. Each step can be done
again, so that one that was interrupted is simply begun anew.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.host.netlink import address_codec, attributes, names, steps, tags
from holdfast.host.netlink.address_codec import RTM_DELADDR, RTM_NEWADDR, TENTATIVE, SeenAddress
from holdfast.host.netlink.address_losses import AddressLosses
from holdfast.host.netlink.address_read import AddressReader, Reading
from holdfast.host.netlink.side_effects import IsOurs
from holdfast.host.netlink.socket import CREATE, EXCL, REPLACE, NetlinkSocket, Request
from holdfast.host.others import addresses, links, neighbours, nexthops
from holdfast.host.others.comparing import dump_addresses, unchanged
from holdfast.host.others.reading import boot_clock
from holdfast.host.others.record import Kind, Record
from holdfast.host.others.replay import Again, Indexes, Unmapped
from holdfast.host.others.restore_routes import MissingRoutes

# An IPv6 address that was just made is no source yet: see `netlink.tentative`.
_CHECK_S, _PAUSE_S = 3.0, 0.1
_KERNEL_LINK_LOCAL = 3  # IFAPROT_KERNEL_LL


@dataclass(slots=True)
class Restored:
    done: list[tuple[Key, str]] = field(default_factory=list)  # what came back, and whose it is
    failed: list[str] = field(default_factory=list)  # what could not, and why
    moved: bool = False  # addresses of ours went for a moment, with what goes with them


def restore(sock: NetlinkSocket, record: Record, ours: IsOurs) -> Restored:
    """ours: what carries no tag of ours and is ours all the same."""
    found = Restored()
    if not record.empty:
        work = _Restoring(sock, record, ours, boot_clock() - record.moment, found)
        work.links()
        work.addresses()
        work.order()
        work.nexthops()
        work.routes()
        work.neighbours()
    return found


@dataclass(slots=True)
class _Restoring:
    sock: NetlinkSocket
    record: Record
    ours: IsOurs
    elapsed: float
    found: Restored

    def _indexes(self) -> Indexes:
        return Indexes(self.record.names, names.read_names(self.sock).indexes)

    def _bodies(self, kind: Kind) -> Sequence[bytes]:
        return self.record.others.get(kind, ())

    def links(self) -> None:
        """Lower links first: the kernel tells them by index, and they had the lower one. Then how
        they are, once all are there."""
        before = [links.decode(body) for body in self._bodies(Kind.LINK)]
        for link in before:
            key = Key("link", link.name)
            indexes = self._indexes()
            if link.name in indexes.today or self.ours(key):
                continue
            try:
                problem = links.make(self.sock, link, indexes)
            except Unmapped as missing:
                problem = str(missing)
            self._tell(key, f"a {link.kind or 'hardware'} link", problem)
        there = {link.name: link for link in map(links.decode, names.dump_links(self.sock))}
        indexes = self._indexes()
        pairs = [(link, there[link.name]) for link in before if link.name in there]
        for link, now in pairs:
            self._tell_settings(link.name, links.set_back(self.sock, link, now, indexes))
        for link, now in pairs:
            self._tell_settings(link.name, links.take_up(self.sock, link, now))

    def _tell_settings(self, name: str, settings: Iterable[str]) -> None:
        for told in settings:
            self._tell(Key("link", name), told, told if told.startswith("cannot") else "")

    def addresses(self) -> None:
        indexes = self._indexes()
        bodies = self._bodies(Kind.ADDRESS)
        four = [body for body in bodies if body[0] == socket.AF_INET]
        # In IPv6 the newest comes first.
        six = [body for body in reversed(bodies) if body[0] == socket.AF_INET6]
        for body in (*four, *six):
            seen = self._seen(body)
            _, valid = addresses.lifetime(body, self.elapsed)
            if not valid:
                continue  # it would be over by now
            holder = tags.holder_text(seen.protocol, self.record.tag, address=True)
            self._make(seen.key, holder, partial(self._add, body, indexes))

        self._link_local(indexes)

    def _link_local(self, indexes: Indexes) -> None:
        """The kernel makes these of the MAC that a link has when it comes up: that was another one
        for a link that was made anew, or for a bridge that had other ports then."""
        now = [
            address_codec.decode(body, indexes.names.get(attributes.to_int(body[4:8]), ""))
            for body in dump_addresses(self.sock)
        ]
        there = {one.key: one for one in now}
        before = [one for one in map(self._seen, self.record.order) if _is_link_local(one)]
        missing = [one for one in before if one.key not in there]
        wanted = {one.key for one in before}
        devs = {str(one.artifact.fields["dev"]) for one in missing}
        for one in now:
            strange = _is_link_local(one) and one.key not in wanted
            if strange and str(one.artifact.fields["dev"]) in devs:
                steps.send(self.sock, RTM_DELADDR, 0, address_codec.delete_body(one))
        for one in missing:
            self._make(one.key, "protocol kernel_ll", partial(self._add, one.body, indexes))

    def _add(self, body: bytes, indexes: Indexes) -> str | None:
        """None where it is there; else what is wrong, or "" where it was made."""
        message = addresses.with_lifetime(
            addresses.again(body, indexes), *addresses.lifetime(body, self.elapsed)
        )
        first = addresses.unchecked(message)
        problem = self._create(RTM_NEWADDR, first or message)
        if not problem and problem is not None and first is not None:
            # Otherwise it would go unchecked for as long as it is there.
            steps.send(self.sock, RTM_NEWADDR, REPLACE, message)
        return problem

    def order(self) -> None:
        """Addresses that stand to each other otherwise than before go and come again, ours or
        others', unless something would go with them that could not be put back."""
        reading = AddressReader(self.sock).read()
        before = addresses.per_link(map(self._seen, self.record.order))
        for place, there in addresses.per_link(reading.addresses).items():
            moving = addresses.to_move(before.get(place, ()), there)
            if not moving:
                continue
            lost = self._lost_with(moving, reading)
            if lost:
                self.found.failed.append(
                    f"the order of addresses on {place[0]}: that would take {', '.join(lost)}"
                )
            else:
                self._move(moving)

    def _lost_with(self, moving: Sequence[SeenAddress], reading: Reading) -> list[str]:
        again = unchanged(self.sock, self.record)
        losses = AddressLosses(
            self.sock,
            *reading,
            self.record.tag,
            lambda key: self.ours(key) or key in again,
            {(moving[0].index, address_codec.PLACEHOLDER)},
        )
        # All of them go before the first one comes again.
        return [lost for each in losses.of(moving).values() for lost in each]

    def _move(self, moving: Sequence[SeenAddress]) -> None:
        self.found.moved = True
        # Without any IPv4 address, if only for a moment, a link loses every route over it.
        placeholder = address_codec.placeholder(moving[0].index, self.record.tag)
        held = moving[0].version == 4 and self._create(RTM_NEWADDR, placeholder) == ""
        for one in reversed(moving):
            steps.send(self.sock, RTM_DELADDR, 0, address_codec.delete_body(one))
        known = names.read_names(self.sock)
        indexes = Indexes(known.names, known.indexes)
        for one in moving:
            message = addresses.again(one.body, indexes)
            message = addresses.with_lifetime(message, *addresses.lifetime(one.body, 0))
            first = addresses.unchecked(message)
            problem = self._create(RTM_NEWADDR, first or message)
            if problem:
                self.found.failed.append(f"{one.key}: {problem}")
            elif first is not None:
                steps.send(self.sock, RTM_NEWADDR, REPLACE, message)
        if held:
            steps.send(self.sock, RTM_DELADDR, 0, placeholder)

    def nexthops(self) -> None:
        indexes = self._indexes()
        for body in self._bodies(Kind.NEXTHOP):
            key = Key("nexthop", str(nexthops.number(body)))
            self._make_again(
                key, nexthops.protocol(body), nexthops.RTM_NEWNEXTHOP, nexthops.again, body, indexes
            )

    def routes(self) -> None:
        missing = MissingRoutes(self.sock, self.record, self._indexes(), self.elapsed)
        end = time.monotonic() + _CHECK_S
        while True:
            made, waits = missing.make()
            for key, protocol in made:
                self._tell(key, tags.holder_text(protocol), "")
            if not waits or not self._is_checking() or time.monotonic() > end:
                break
            time.sleep(_PAUSE_S)
        self.found.failed += missing.failed

    def _is_checking(self) -> bool:
        found = (self._seen(body) for body in dump_addresses(self.sock))
        return any(one.version == 6 and one.flags & TENTATIVE for one in found)

    def neighbours(self) -> None:
        indexes = self._indexes()
        for kind in (Kind.NEIGHBOUR, Kind.FORWARDING):
            for body in self._bodies(kind):
                dev = self.record.names.get(neighbours.index(body), "")
                self._make_again(
                    neighbours.key(body, dev),
                    neighbours.protocol(body),
                    neighbours.RTM_NEWNEIGH,
                    neighbours.again,
                    body,
                    indexes,
                )

    def _make_again(
        self, key: Key, protocol: int, kind: int, again: Again, body: bytes, indexes: Indexes
    ) -> None:
        holder = tags.holder_text(protocol, self.record.tag)
        self._make(key, holder, lambda: self._create(kind, again(body, indexes)))

    def _make(self, key: Key, holder: str, create: Callable[[], str | None]) -> None:
        try:
            problem = create()
        except Unmapped as missing:
            problem = str(missing)
        if problem is not None:
            self._tell(key, holder, problem)

    def _create(self, kind: int, message: bytes) -> str | None:
        """None where it is there; else what is wrong, or "" where it was made."""
        error = self.sock.transact([Request(kind, CREATE | EXCL, message)]).get(0)
        if error is None:
            return ""
        return None if error.errno == errno.EEXIST else str(error)

    def _tell(self, key: Key, holder: str, problem: str) -> None:
        if problem:
            self.found.failed.append(f"{key}: {problem}")
        else:
            self.found.done.append((key, holder))

    def _seen(self, body: bytes) -> SeenAddress:
        dev = self.record.names.get(attributes.to_int(body[4:8]), "")
        return address_codec.decode(body, dev)


def _is_link_local(one: SeenAddress) -> bool:
    """As the kernel makes them; not what somebody set."""
    return one.version == 6 and one.protocol == _KERNEL_LINK_LOCAL
