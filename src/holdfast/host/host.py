"""The host: every driver behind one face."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable, Sequence

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.observed import BulkSighting, Loss, Observed, Sighting
from holdfast.engine.plan import Operation
from holdfast.errors import DriverError
from holdfast.host import blocks, hostname
from holdfast.host.blocks import BlockDriver
from holdfast.host.facts import clock
from holdfast.host.files import FileDriver
from holdfast.host.hostname import HostnameDriver
from holdfast.host.netlink.addresses import AddressDriver
from holdfast.host.netlink.disabled_ipv6 import DisabledIPv6
from holdfast.host.netlink.links import LinkDriver
from holdfast.host.netlink.neighbours import NeighbourDriver
from holdfast.host.netlink.routes import RouteDriver
from holdfast.host.netlink.rules import RuleDriver
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.nft import NftDriver
from holdfast.host.services.driver import ServiceDriver
from holdfast.host.services.dropins import DropinDriver
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
        self._nft = NftDriver(self.epoch)
        self._links = LinkDriver(self._sock, tag, recorded)
        self._files = FileDriver(paths)
        self._dropins = DropinDriver(paths)
        self._services = ServiceDriver(paths)
        self._wireguard = WireGuardDriver(self._sock, self.epoch)
        drivers: list[Driver] = [
            self._links,
            self._wireguard,
            SysctlDriver(lost=DisabledIPv6(self._sock, tag).lost),
            HostnameDriver(paths),
            self._files,
            BlockDriver(paths),
            AddressDriver(self._sock, tag, former, recorded),
            NeighbourDriver(self._sock, tag, former),
            RouteDriver(self._sock, tag, former),
            RuleDriver(self._sock, tag, former),
            self._dropins,
            self._services,
            self._nft,
        ]
        self._drivers = {kind: driver for driver in drivers for kind in driver.kinds}

    def __enter__(self) -> LinuxHost:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._nft.close()
        self._wireguard.close()
        self._dropins.close()
        self._services.close()
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
        return Observed(sightings, bulk, unknown, losses=losses)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return self._drivers[operations[0].kind].apply(operations, progress)

    def sweep(self, claims: Iterable[Claim]) -> None:
        claims = list(claims)
        self._services.sweep(claim.key.name for claim in claims if claim.key.kind == "service")
        self._dropins.sweep(claim.key for claim in claims if claim.key.kind == "dropin")
        self._files.sweep(place for claim in claims if (place := _file_of(claim.key)))

    def settle(self, claims: Iterable[Claim]) -> None:
        marks = {claim.key.name: claim.nonce for claim in claims if claim.key.kind == "link"}
        if marks:
            self._links.settle(marks)


def _file_of(key: Key) -> str:
    """The file that an artifact stands in, if it does."""
    match key.kind:
        case "file":
            return key.name
        case "block":
            return blocks.parts(key)[0]
        case "hostname":
            return hostname.PLACE
    return ""


def read_epoch() -> str:
    """Kernel objects live as long as the boot and the network namespace they are in."""
    with socket.socket(socket.AF_UNIX) as probe:
        cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return f"{clock.boot_id()}/{int.from_bytes(cookie, sys.byteorder)}"
