"""Facts the kernel has: links, the addresses and MTUs on them, default gateways, PPP sessions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_interface

from holdfast.dataclass import dataclass, field
from holdfast.engine.kinds.route import MAIN_TABLE
from holdfast.host.netlink import attributes
from holdfast.host.netlink.addresses.address_codec import RTM_GETADDR
from holdfast.host.netlink.links.link_names import IFLA_IFNAME, dump_links, read_names
from holdfast.host.netlink.routes.route_codec import DEFAULT_KEY
from holdfast.host.netlink.routes.route_decode import Reader, pick
from holdfast.host.netlink.routes.route_read import dump_runs
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.resources.facts import Address, Lease, LinkAddress

_IFLA_ADDRESS, _IFLA_MTU = 1, 4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_ARPHRD_ETHER, _ARPHRD_PPP = 1, 512
_LINK_HEADER = struct.Struct("=BBHiII")
_ADDRESS_HEADER = struct.Struct("=BBBBI")

# Who sets default routes outside of Holdfast: `ip` and pppd (boot), administrators (static), the
# kernel itself on an advertisement, DHCP clients. Routing daemons are left out, as they may hold a
# million routes.
LEARNED_BY = {"kernel": 2, "boot": 3, "static": 4, "ra": 9, "dhcp": 16}


@dataclass(frozen=True, slots=True)
class LinkFacts:
    addresses: Mapping[str, tuple[LinkAddress, ...]] = field(default_factory=dict)
    mtus: Mapping[str, int] = field(default_factory=dict)
    macs: Mapping[str, str] = field(default_factory=dict)
    # Without the DNS servers, which the kernel does not know.
    sessions: Mapping[str, Lease] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Seen:
    local: LinkAddress
    peer: Address | None


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    gateway: Address
    metric: int
    protocol: str  # who set it


def read_links(sock: NetlinkSocket) -> LinkFacts:
    # Addresses first: one whose link is then unknown went away with that link meanwhile.
    bodies = sock.dump(RTM_GETADDR, bytes(8), "addresses")
    names: dict[int, str] = {}
    mtus: dict[str, int] = {}
    macs: dict[str, str] = {}
    ppp: list[str] = []
    for body in dump_links(sock):
        _, _, hardware, index, _, _ = _LINK_HEADER.unpack_from(body)
        found = attributes.parse(body, _LINK_HEADER.size)
        name = names[index] = attributes.to_text(found[IFLA_IFNAME])
        mtus[name] = attributes.to_int(found.get(_IFLA_MTU, b""))
        if hardware == _ARPHRD_ETHER:
            macs[name] = found.get(_IFLA_ADDRESS, b"").hex(":")
        elif hardware == _ARPHRD_PPP:
            ppp.append(name)
    seen: dict[str, list[_Seen]] = {name: [] for name in mtus}
    for body in bodies:
        index = attributes.to_int(body[4:8])
        if index in names:
            seen[names[index]].append(_address(body))
    sessions = {name: lease for name in ppp for lease in _session(seen[name])}
    addresses = {name: tuple(seen.local for seen in found) for name, found in seen.items()}
    return LinkFacts(addresses, mtus, macs, sessions)


def _address(body: bytes) -> _Seen:
    _, length, _, _, _ = _ADDRESS_HEADER.unpack_from(body)
    found = attributes.parse(body, _ADDRESS_HEADER.size)
    far = found[_IFA_ADDRESS]
    near = found.get(_IFA_LOCAL, far)
    return _Seen(ip_interface((near, length)), ip_address(far) if far != near else None)


def _session(seen: list[_Seen]) -> Iterator[Lease]:
    """A link without a peer's address is still being set up, or speaks IPv6 only."""
    for one in seen:
        if one.local.version == 4 and one.peer is not None:
            yield Lease((ip_interface(one.local.ip),), one.peer)
            return


def read_gateways(
    sock: NetlinkSocket, family: int, setters: Mapping[str, int] = LEARNED_BY
) -> dict[tuple[str, int], DefaultRoute]:
    """The default gateway over each link: of several, the one the kernel prefers. setters: whose
    routes count, by their protocol numbers."""
    reader = Reader(read_names(sock).names)
    best: dict[tuple[str, int], DefaultRoute] = {}
    for protocol, number in setters.items():
        dump = dump_runs(sock, family, table=MAIN_TABLE, protocol=number)
        for body in pick(dump, family, {DEFAULT_KEY[family]}):
            shared, _ = reader.read(body)
            for leg in shared.nexthops:
                known = best.get((leg.dev, family))
                if leg.gateway and leg.dev and (known is None or shared.metric < known.metric):
                    gateway = ip_address(leg.gateway)
                    best[leg.dev, family] = DefaultRoute(gateway, shared.metric, protocol)
    return best
