"""The host: every driver behind one face."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable, Sequence

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim
from holdfast.engine.difference import Differences
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.observed import Along, BulkSighting, Loss, Observed, Sighting
from holdfast.engine.plan import Operation
from holdfast.errors import DriverError
from holdfast.host.blocks import BlockDriver
from holdfast.host.facts import clock
from holdfast.host.files import FileDriver
from holdfast.host.hostname import HostnameDriver
from holdfast.host.netlink.addresses.disabled_ipv6 import DisabledIPv6
from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.neighbours import NeighbourDriver
from holdfast.host.netlink.routes.driver import RouteDriver
from holdfast.host.netlink.rules import RuleDriver
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.nft.driver import NftDriver
from holdfast.host.nft.nft_written import WrittenTables
from holdfast.host.services.driver import ServiceDriver
from holdfast.host.services.dropins import DropinDriver
from holdfast.host.services.foreign import ForeignUnitDriver
from holdfast.host.sysctl import SysctlDriver
from holdfast.host.wireguard import WireGuardDriver
from holdfast.paths import Paths

# Unlike the inode of /proc/self/ns/net, the cookie is never given to another namespace.
_SO_NETNS_COOKIE = 71


class LinuxHost:
    """This machine, in the network namespace the process runs in."""

    def __init__(
        self,
        paths: Paths,
        tag: int,
        sock: NetlinkSocket | None = None,
        *,
        former: frozenset[int] = frozenset(),
        recorded: frozenset[Key] = frozenset(),
    ) -> None:
        """former: tags of before, which objects of ours may carry still. recorded: what others made
        that may go with a change, as it is put back afterwards."""
        self.epoch = read_epoch()
        self._sock = sock or NetlinkSocket()
        drivers: list[Driver] = [
            LinkDriver(self._sock, tag, recorded),
            WireGuardDriver(self._sock, self.epoch),
            SysctlDriver(lost=DisabledIPv6(self._sock, tag).lost),
            HostnameDriver(paths),
            FileDriver(paths),
            BlockDriver(paths),
            AddressDriver(self._sock, tag, former, recorded),
            NeighbourDriver(self._sock, tag, former),
            RouteDriver(self._sock, tag, former),
            RuleDriver(self._sock, tag, former),
            DropinDriver(paths),
            ForeignUnitDriver(paths),
            ServiceDriver(paths),
            NftDriver(self.epoch, WrittenTables(paths)),
        ]
        self._drivers = {kind: driver for driver in drivers for kind in driver.kinds}

    def __enter__(self) -> LinuxHost:
        return self

    def __exit__(self, *_exception: object) -> None:
        for driver in self._drivers.values():
            driver.close()
        self._sock.close()

    @property
    def ports(self) -> frozenset[int]:
        """Of the netlink sockets that links, addresses, routes and the like are changed over."""
        return frozenset({self._sock.port} - {0})

    def observe(self, scope: Scope) -> Observed:
        sightings: dict[Key, Sequence[Sighting]] = {}
        bulk: dict[str, BulkSighting] = {}
        unknown: dict[str | Key, str] = {}
        losses: dict[Key, Sequence[Loss]] = {}
        along: dict[Key, Sequence[Along]] = {}
        links: frozenset[str] = frozenset()
        for driver in dict.fromkeys(self._drivers.values()):
            if scope.kinds is not None and scope.kinds.isdisjoint(driver.kinds):
                continue
            try:
                seen = driver.observe(scope)
            except (DriverError, OSError) as error:
                unknown.update(dict.fromkeys(driver.kinds, str(error)))
                continue
            sightings.update(seen.sightings)
            bulk.update(seen.bulk)
            unknown.update(seen.unknown)
            losses.update(seen.losses)
            along.update(seen.along)
            links |= seen.links
        return Observed(sightings, bulk, unknown, losses=losses, along=along, links=links)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return self._drivers[operations[0].kind].apply(operations, progress)

    def differences(self, operations: Iterable[Operation], *, full: bool = False) -> Differences:
        """What differs in the content of what changes, read now. full: all of it; else its first
        lines, and of what comes or goes as a whole how much it is."""
        from holdfast.host import differences  # few passes are looked at by anybody

        return differences.read(self._drivers, operations, full=full)

    def content(self, seen: Artifact) -> bytes:
        return self._drivers[seen.key.kind].content(seen)

    def sweep(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._drivers[claim.key.kind].sweep(claim.key)

    def settle(self, claims: Iterable[Claim]) -> None:
        marks: dict[str, dict[Key, str]] = {}
        for claim in claims:
            marks.setdefault(claim.key.kind, {})[claim.key] = claim.nonce
        for kind, marked in marks.items():
            self._drivers[kind].settle(marked)


def read_epoch() -> str:
    """Kernel objects live as long as the boot and the network namespace they are in."""
    with socket.socket(socket.AF_UNIX) as probe:
        cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return f"{clock.boot_id()}/{int.from_bytes(cookie, sys.byteorder)}"
