"""The list of drivers: a new one is added here, and nowhere else.

Those that look for our tag are made for every pass. The others look at objects by name, and their
modules are loaded only where such an object is declared or claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.engine.artifact import ArtifactKind, Key
from holdfast.engine.driver import Driver
from holdfast.engine.drivers import DriverEntry, Drivers
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.bfd import BFD_PEER, BFD_PROFILE
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, BGP_NETWORK
from holdfast.engine.kinds.bgp_peer import BGP_PEER, BGP_PEER_GROUP
from holdfast.engine.kinds.block import BLOCK
from holdfast.engine.kinds.dropin import DROPIN
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.hostname import HOSTNAME
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.neighbour import NEIGHBOUR
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_INTERFACE, OSPF_PREFIX
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.engine.kinds.service import SERVICE
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.engine.kinds.unit import UNIT
from holdfast.engine.kinds.wireguard import WIREGUARD
from holdfast.errors import DriverError
from holdfast.host.epoch import read_epoch
from holdfast.host.netlink.addresses.driver import AddressDriver
from holdfast.host.netlink.links.driver import LinkDriver
from holdfast.host.netlink.neighbours import NeighbourDriver
from holdfast.host.netlink.routes.driver import RouteDriver
from holdfast.host.netlink.rules import RuleDriver
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.nft.driver import NftDriver
from holdfast.host.nft.nft_written import WrittenTables
from holdfast.paths import Paths


def of_machine(
    paths: Paths,
    tag: int,
    sock: NetlinkSocket | None = None,
    *,
    former: frozenset[int] = frozenset(),
    recorded: frozenset[Key] = frozenset(),
) -> Drivers:
    """All drivers of this machine, in the network namespace the process runs in. sock: what links,
    addresses, routes and the like are changed over; it is closed with them. former: tags of before,
    which objects of ours may carry still. recorded: what others made that may go with a change, as
    it is put back afterwards."""
    epoch, netlink = read_epoch(), sock or NetlinkSocket()
    entries = (
        DriverEntry((LINK,), lambda: LinkDriver(netlink, tag, recorded)),
        DriverEntry((ADDRESS,), lambda: AddressDriver(netlink, tag, former, recorded)),
        DriverEntry((NEIGHBOUR,), lambda: NeighbourDriver(netlink, tag, former)),
        DriverEntry((ROUTE,), lambda: RouteDriver(netlink, tag, former)),
        DriverEntry((RULE,), lambda: RuleDriver(netlink, tag, former)),
        DriverEntry((NFT,), lambda: NftDriver(epoch, WrittenTables(paths))),
        *_by_name(paths, tag, netlink, epoch),
        *_of_frr(paths),
    )
    return Drivers(epoch, entries, netlink.close)


def _by_name(paths: Paths, tag: int, netlink: NetlinkSocket, epoch: str) -> Iterator[DriverEntry]:
    def wireguard() -> Driver:
        from holdfast.host.wireguard import WireGuardDriver

        return WireGuardDriver(netlink, epoch)

    def sysctl() -> Driver:
        from holdfast.host.netlink.addresses.disabled_ipv6 import DisabledIPv6
        from holdfast.host.sysctl import SysctlDriver

        return SysctlDriver(lost=DisabledIPv6(netlink, tag).lost)

    def hostname() -> Driver:
        from holdfast.host.hostname import HostnameDriver

        return HostnameDriver(paths)

    def files() -> Driver:
        from holdfast.host.files import FileDriver

        return FileDriver(paths)

    def blocks() -> Driver:
        from holdfast.host.blocks import BlockDriver

        return BlockDriver(paths)

    def dropins() -> Driver:
        from holdfast.host.services.dropins import DropinDriver

        return DropinDriver(paths)

    def foreign_units() -> Driver:
        from holdfast.host.services.foreign import ForeignUnitDriver

        return ForeignUnitDriver(paths)

    def services() -> Driver:
        from holdfast.host.services.driver import ServiceDriver

        return ServiceDriver(paths)

    makers: tuple[tuple[ArtifactKind, Callable[[], Driver]], ...] = (
        (WIREGUARD, wireguard),
        (SYSCTL, sysctl),
        (HOSTNAME, hostname),
        (FILE, files),
        (BLOCK, blocks),
        (DROPIN, dropins),
        (UNIT, foreign_units),
        (SERVICE, services),
    )
    return (DriverEntry((kind,), make, on_demand=True) for kind, make in makers)


def _of_frr(paths: Paths) -> Iterator[DriverEntry]:
    """A router that declares no routing protocol pays no import and no connection for them."""
    folder = paths.frr

    def bgp() -> Driver:
        from holdfast.frr.driver import BgpDriver

        return BgpDriver(folder)

    def bfd() -> Driver:
        from holdfast.frr.interior import BfdDriver

        return BfdDriver(folder)

    def ospf() -> Driver:
        from holdfast.frr.interior import OspfDriver

        return OspfDriver(folder)

    def ospf_prefixes() -> Driver:
        raise DriverError("Holdfast does not tell prefixes to OSPF yet: remove the OSPFPrefix")

    # Networks have no claims, so that those whose declaration is gone are found by the memory.
    yield DriverEntry(
        (BGP_INSTANCE, BGP_FILTER, BGP_PEER_GROUP, BGP_PEER, BGP_NETWORK, BGP_AGGREGATE),
        bgp,
        on_demand=True,
        memory="bgp",
        present=(folder / "bgpd.vty").exists,
    )
    yield DriverEntry((BFD_PROFILE, BFD_PEER), bfd, on_demand=True)
    yield DriverEntry((OSPF_INSTANCE, OSPF_INTERFACE), ospf, on_demand=True)
    yield DriverEntry((OSPF_PREFIX,), ospf_prefixes, on_demand=True)
