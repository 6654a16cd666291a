"""Putting back what others had and have no more, once ours is as it was.

All of it is made exclusively: what is there now, by whomever, is not touched, but that a group of
nexthops gets the members back that it lost. Each step can be done
again, so that one that was interrupted is simply begun anew.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.link import link_key
from holdfast.host import steps
from holdfast.host.foreign_state import (
    addresses,
    groups,
    links,
    neighbours,
    nexthops,
    ports,
    settings,
    tokens,
)
from holdfast.host.foreign_state.comparing import dump_addresses, unchanged
from holdfast.host.foreign_state.links import Link
from holdfast.host.foreign_state.reading import boot_clock
from holdfast.host.foreign_state.record import Kind, Record
from holdfast.host.foreign_state.replay import Indexes, Unmapped
from holdfast.host.foreign_state.restore_routes import MissingRoutes
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import (
    RTM_DELADDR,
    RTM_NEWADDR,
    TENTATIVE,
    SeenAddress,
)
from holdfast.host.netlink.addresses.address_losses import AddressLosses, arriving_placeholder
from holdfast.host.netlink.addresses.address_read import AddressReader, Reading
from holdfast.host.netlink.links import forwarding, link_names
from holdfast.host.netlink.links.forwarding import GroupEntry
from holdfast.host.netlink.links.link_codec import IFLA_MTU
from holdfast.host.netlink.side_effects import IsOurs
from holdfast.host.netlink.socket import APPEND, CREATE, EXCL, REPLACE, NetlinkSocket, Request

# An IPv6 address that was just made is no source yet: see `netlink.tentative`. And a carrier takes
# a moment.
_CHECK_S, _PAUSE_S = 3.0, 0.1
_KERNEL_LINK_LOCAL = 3  # IFAPROT_KERNEL_LL


@dataclass(slots=True)
class Restored:
    done: list[tuple[Key, str]] = field(default_factory=list)  # what came back, and whose it is
    failed: list[str] = field(default_factory=list)  # what could not, and why
    # Addresses of ours went for a moment, with what goes with them; or routes of ours came.
    moved: bool = False


def restore(sock: NetlinkSocket, record: Record, ours: IsOurs) -> Restored:
    """ours: what carries no tag of ours and is ours all the same."""
    found = Restored()
    if not record.empty:
        work = _Restoring(sock, record, ours, boot_clock() - record.moment, found)
        work.links()
        work.ports()
        work.addresses()
        work.order()
        work.nexthops()
        work.routes()
        work.neighbours()
        work.groups()
        work.settings()
    return found


@dataclass(slots=True)
class _Restoring:
    sock: NetlinkSocket
    record: Record
    ours: IsOurs
    elapsed: float
    found: Restored

    def _indexes(self) -> Indexes:
        return Indexes(self.record.names, link_names.read_names(self.sock).indexes)

    def _bodies(self, kind: Kind) -> Sequence[bytes]:
        return self.record.others.get(kind, ())

    def links(self) -> None:
        """Lower links first: the kernel tells them by index, and they had the lower one. Then how
        they are, once all are there."""
        before = [links.decode(body) for body in self._bodies(Kind.LINK)]
        for link in before:
            key = link_key(link.name)
            indexes = self._indexes()
            if link.name in indexes.today or self.ours(key):
                continue
            try:
                problem = links.make(self.sock, link, indexes)
            except Unmapped as missing:
                problem = str(missing)
            self._tell(key, f"a {link.kind or 'hardware'} link", problem)
        there = {link.name: link for link in self._links_now()}
        indexes = self._indexes()
        pairs = [(link, there[link.name]) for link in before if link.name in there]
        for link, now in pairs:
            self._tell_settings(link.name, links.set_back(self.sock, link, now, indexes))
        for link, now in pairs:
            self._tell_settings(link.name, links.resize(self.sock, link, now))
        # How a link makes its addresses, and which of them it keeps.
        self.settings()
        self._tokens()
        for link, now in pairs:
            self._tell_settings(link.name, links.take_up(self.sock, link, now))
        _until(lambda: self._runs_as_before(before))

    def _runs_as_before(self, before: Sequence[Link]) -> bool:
        """Carriers come a moment after what they depend on; then the kernel takes nexthop objects,
        and has forgotten the MTU of IPv6 once more. Where a link is down, none need come."""
        ran = {link.name for link in before if link.runs}
        there = [link for link in self._links_now() if link.name in ran]
        return all(link.runs for link in there) or not all(link.up for link in there)

    def _links_now(self) -> list[Link]:
        return list(map(links.decode, link_names.dump_links(self.sock)))

    def settings(self) -> None:
        """Of links that are there by now; where somebody set one since, that stays."""
        if not self._bodies(Kind.SETTING):
            return
        there = {link.name: link for link in self._links_now()}
        for name, value in map(settings.decode, self._bodies(Kind.SETTING)):
            link = there.get(settings.dev(name))
            stayed = link is not None and self.record.names.get(link.index) == link.name
            if link is None or (stayed and not settings.is_ipv6(name)):
                continue
            problem = settings.set_back(name, value, link.number(IFLA_MTU))
            if problem is not None:
                self._tell(settings.key(name), f"the setting of link {link.name}", problem)

    def _tokens(self) -> None:
        """Once a link takes advertisements: the kernel refuses them where it does not."""
        bodies = self._bodies(Kind.TOKEN)
        there = {link.name: link for link in self._links_now()} if bodies else {}
        for body in bodies:
            now = there.get(self.record.names.get(tokens.index(body), ""))
            if now is not None:
                self._tell_settings(now.name, tokens.set_back(self.sock, body, now))

    def ports(self) -> None:
        """The settings and VLANs of ports that are in their bridge again."""
        if not self._bodies(Kind.PORT):
            return
        indexes = self._indexes()
        there = {indexes.names.get(ports.index(body)): body for body in ports.dump(self.sock)}
        for body in self._bodies(Kind.PORT):
            name = self.record.names.get(ports.index(body), "")
            now = there.get(name)
            if now is None or not self._is_same_bridge(body, now, indexes):
                continue  # its place is told of elsewhere
            try:
                self._tell_settings(name, ports.set_back(self.sock, body, now, indexes))
            except Unmapped as missing:
                self._tell(link_key(name), "", str(missing))

    def _is_same_bridge(self, before: bytes, now: bytes, indexes: Indexes) -> bool:
        name = self.record.names.get(ports.master(before))
        return name is not None and indexes.names.get(ports.master(now)) == name

    def groups(self) -> None:
        indexes = self._indexes()
        for entry in map(GroupEntry, self._bodies(Kind.GROUP)):
            bridge, port = (self.record.names.get(one, "") for one in (entry.bridge, entry.port))
            holder = tags.holder_text(entry.protocol, self.record.tag)
            self._make(
                entry.key(bridge, port), holder, partial(self._add_group, entry.body, indexes)
            )

    def _add_group(self, body: bytes, indexes: Indexes) -> str | None:
        problem = self._create(groups.RTM_NEWMDB, groups.again(body, indexes))
        if not problem:
            return problem
        return self._create(groups.RTM_NEWMDB, groups.again_for_older_kernels(body, indexes))

    def _tell_settings(self, name: str, settings: Iterable[str]) -> None:
        for told in settings:
            self._tell(link_key(name), told, told if told.startswith("cannot") else "")

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
        there = {address.key: address for address in now}
        before = [
            address for address in map(self._seen, self.record.order) if _is_link_local(address)
        ]
        missing = [address for address in before if address.key not in there]
        wanted = {address.key for address in before}
        devs = {str(address.artifact.fields["dev"]) for address in missing}
        # One that is told to have none had made it before it was told.
        devs |= set(settings.without_link_local(self._bodies(Kind.SETTING)))
        for address in now:
            strange = _is_link_local(address) and address.key not in wanted
            if strange and str(address.artifact.fields["dev"]) in devs:
                steps.send(self.sock, RTM_DELADDR, 0, address_codec.delete_body(address))
        for address in missing:
            self._make(address.key, "protocol kernel_ll", partial(self._add, address.body, indexes))

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
            {arriving_placeholder(moving[0].index)},
        )
        # All of them go before the first one comes again.
        lost = [lost for each in losses.of(moving).values() for lost in each]
        going = {address.key for address in moving}
        swept = [other for address in moving for other in losses.secondaries(address)]
        lost += [
            str(address.key)
            for address in swept
            if address.key not in going | again
            and address.protocol != self.record.tag
            and not self.ours(address.key)
        ]
        return lost

    def _move(self, moving: Sequence[SeenAddress]) -> None:
        self.found.moved = True
        # Without any IPv4 address, if only for a moment, a link loses every route over it.
        placeholder = address_codec.placeholder(moving[0].index, self.record.tag)
        held = moving[0].version == 4 and self._create(RTM_NEWADDR, placeholder) == ""
        for address in reversed(moving):
            steps.send(self.sock, RTM_DELADDR, 0, address_codec.delete_body(address))
        known = link_names.read_names(self.sock)
        indexes = Indexes(known.names, known.indexes)
        for address in moving:
            message = addresses.again(address.body, indexes)
            message = addresses.with_lifetime(message, *addresses.lifetime(address.body, 0))
            first = addresses.unchecked(message)
            problem = self._create(RTM_NEWADDR, first or message)
            if problem:
                self.found.failed.append(f"{address.key}: {problem}")
            elif first is not None:
                steps.send(self.sock, RTM_NEWADDR, REPLACE, message)
        if held:
            steps.send(self.sock, RTM_DELADDR, 0, placeholder)

    def nexthops(self) -> None:
        """Those that are not there; and of groups that are, the members that they lost."""
        bodies = self._bodies(Kind.NEXTHOP)
        indexes = self._indexes()
        for groups_too in (False, True):
            turn = [body for body in bodies if nexthops.is_group(body) is groups_too]
            there = {nexthops.number(one): one for one in nexthops.dump(self.sock)} if turn else {}
            for body in turn:
                now = there.get(nexthops.number(body))
                if now is not None and not nexthops.is_shrunk(body, now, there):
                    continue
                key = Key("nexthop", str(nexthops.number(body)))
                holder = tags.holder_text(nexthops.protocol(body), self.record.tag)
                flags = CREATE | EXCL if now is None else REPLACE
                self._make(key, holder, partial(self._add_nexthop, body, indexes, there, flags))

    def _add_nexthop(
        self, body: bytes, indexes: Indexes, there: Container[int], flags: int
    ) -> str | None:
        message = nexthops.again(body, indexes, there)
        return self._create(nexthops.RTM_NEWNEXTHOP, message, flags)

    def routes(self) -> None:
        missing = MissingRoutes(self.sock, self.record, self._indexes(), self.elapsed)

        def made_all() -> bool:
            made, waits = missing.make()
            for key, protocol in made:
                self.found.moved |= protocol == self.record.tag
                self._tell(key, tags.holder_text(protocol, self.record.tag) or "ours", "")
            return not waits or not self._is_checking()

        _until(made_all)
        self.found.failed += [*missing.failed, *missing.misplaced()]

    def _is_checking(self) -> bool:
        found = (self._seen(body) for body in dump_addresses(self.sock))
        return any(address.version == 6 and address.flags & TENTATIVE for address in found)

    def neighbours(self) -> None:
        """And entries of tables. What the kernel has learnt in their place gives way."""
        indexes = self._indexes()
        for kind, dump in (
            (Kind.NEIGHBOUR, neighbours.dump),
            (Kind.FORWARDING, forwarding.dump),
        ):
            bodies = self._bodies(kind)
            there: dict[object, bool] = {}  # by their places, whether it is only learnt
            for body in dump(self.sock) if bodies else ():
                there[neighbours.place(body, indexes.names)] = neighbours.is_learnt(body)
            for body in bodies:
                learnt = there.get(neighbours.place(body, self.record.names))
                if learnt is False:
                    continue
                key = neighbours.key(body, self.record.names.get(neighbours.index(body), ""))
                flags = REPLACE if learnt else EXCL
                # A vxlan may send to several ends, of which all but the first are appended.
                flags = CREATE | (APPEND if neighbours.has_end(body) else flags)
                holder = tags.holder_text(neighbours.protocol(body), self.record.tag)
                self._make(key, holder, partial(self._add_neighbour, body, indexes, flags))

    def _add_neighbour(self, body: bytes, indexes: Indexes, flags: int) -> str | None:
        message = neighbours.again(body, indexes)
        return self._create(neighbours.RTM_NEWNEIGH, message, flags)

    def _make(self, key: Key, holder: str, create: Callable[[], str | None]) -> None:
        try:
            problem = create()
        except Unmapped as missing:
            problem = str(missing)
        if problem is not None:
            self._tell(key, holder, problem)

    def _create(self, kind: int, message: bytes, flags: int = CREATE | EXCL) -> str | None:
        """None where it is there; else what is wrong, or "" where it was made."""
        error = self.sock.transact([Request(kind, flags, message)]).get(0)
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


def _until(holds: Callable[[], bool]) -> None:
    """For as long as that takes at most."""
    end = time.monotonic() + _CHECK_S
    while not holds() and time.monotonic() < end:
        time.sleep(_PAUSE_S)


def _is_link_local(seen_address: SeenAddress) -> bool:
    """As the kernel makes them; not what somebody set."""
    return seen_address.version == 6 and seen_address.protocol == _KERNEL_LINK_LOCAL
