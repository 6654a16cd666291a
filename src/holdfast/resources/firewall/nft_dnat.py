"""Table `inet holdfast_dnat`: exposed services, and hairpin clients of them.

Services are elements of maps: ten thousand of them are one lookup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from holdfast.dataclass import dataclass, field
from holdfast.engine.intent import Intent
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.firewall.exposure import Exposure, exposures
from holdfast.resources.firewall.zone import Zone
from holdfast.resources.nft_text import quoted
from holdfast.resources.resource import Declared
from holdfast.resources.site import Site

ORDER = 30  # among combiners

FAMILY, NAME = "inet", "holdfast_dnat"
# `dnat to` a port is taken only after a match of the transport protocol.
_TRANSPORT = "meta l4proto { tcp, udp }"
_KEY = {
    4: ("ifname . inet_proto . inet_service", "iifname . meta l4proto . th dport"),
    6: (
        "ifname . ipv6_addr . inet_proto . inet_service",
        "iifname . ip6 daddr . meta l4proto . th dport",
    ),
}
_SOURCE = {4: ("ipv4_addr", "ip saddr"), 6: ("ipv6_addr", "ip6 saddr")}
_TARGET = {4: "ipv4_addr . inet_service", 6: "ipv6_addr . inet_service"}


def combine(site: Site) -> Iterator[Declared]:
    services = [exposure for exposure in exposures(site) if exposure.translated]
    if not services:
        return
    table = nft_table(FAMILY, NAME, body(services, site))
    zones = {exposure.spec.from_zone for exposure in services}
    inside = {link for exposure in services for link in exposure.inside}
    for zone in site.of(Zone):
        links = {site.ifname(name) for name in zone.spec.interfaces}
        if zone.name in zones or links & inside:
            yield zone, Intent(zone.id, table, zone.place)
    for exposure in services:
        yield exposure.resource, Intent(exposure.resource.id, table, exposure.resource.place)


@dataclass(slots=True)
class _Parts:
    collections: list[str] = field(default_factory=list)
    prerouting: list[str] = field(default_factory=list)
    postrouting: list[str] = field(default_factory=list)


def body(services: Iterable[Exposure], site: Site) -> str:
    parts = _Parts()
    services = list(services)
    for version in (4, 6):
        mine = [exposure for exposure in services if exposure.spec.version == version]
        _from_outside(parts, mine, version)
    _hairpin(parts, [exposure for exposure in services if exposure.inside], site)
    chains = [nft_text.chain("prerouting", "nat hook prerouting priority dstnat", parts.prerouting)]
    if parts.postrouting:
        hook = "nat hook postrouting priority srcnat"
        chains.append(nft_text.chain("postrouting", hook, parts.postrouting))
    return nft_text.body((*parts.collections, *chains))


def _from_outside(parts: _Parts, services: list[Exposure], version: int) -> None:
    free: dict[str, str] = {}
    limited: dict[str, str] = {}
    for exposure in services:
        for link in exposure.outside:
            key = _key(exposure, link)
            if not exposure.sources:
                free[key] = _to(exposure)
            for source in exposure.sources:
                limited[f"{key} . {source}"] = _to(exposure)
    types, match = _KEY[version]
    source_type, source_match = _SOURCE[version]
    # IPv4 services are at the router's own addresses, whichever it has at the time.
    local = "meta nfproto ipv4 fib daddr type local " if version == 4 else ""
    nat = f"{local}{_TRANSPORT} dnat {'ip' if version == 4 else 'ip6'} to"
    if free:
        name = f"services{version}"
        parts.collections.append(nft_text.named_map(name, f"{types} : {_TARGET[version]}", free))
        parts.prerouting.append(f"{nat} {match} map @{name}")
    if limited:
        name = f"limited_services{version}"
        all_types = f"{types} . {source_type} : {_TARGET[version]}"
        parts.collections.append(nft_text.named_map(name, all_types, limited, interval=True))
        parts.prerouting.append(f"{nat} {match} . {source_match} map @{name}")


def _key(exposure: Exposure, link: str) -> str:
    spec = exposure.spec
    host = f"{spec.internal_address} . " if spec.version == 6 else ""
    return f"{quoted(link)} . {host}{spec.protocol} . {spec.external_port}"


def _to(exposure: Exposure) -> str:
    return f"{exposure.spec.internal_address} . {exposure.spec.port}"


def _hairpin(parts: _Parts, services: list[Exposure], site: Site) -> None:
    """Only IPv4: IPv6 clients use the host's own address wherever they are."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Exposure]] = defaultdict(list)
    for exposure in services:
        groups[exposure.outside, exposure.inside].append(exposure)
    clients: set[str] = set()
    for number, (outside, inside) in enumerate(sorted(groups), 1):
        mine = groups[outside, inside]
        name = f"hairpin{number}"
        elements = {f"{each.spec.protocol} . {each.spec.external_port}": _to(each) for each in mine}
        types = f"inet_proto . inet_service : {_TARGET[4]}"
        parts.collections.append(nft_text.named_map(name, types, elements))
        parts.prerouting.append(
            f"iifname {nft_text.interfaces(inside)} {_outside_address(outside, inside, site)}"
            f" {_TRANSPORT} dnat ip to meta l4proto . th dport map @{name}"
        )
        clients.update(inside)
    if not services:
        return
    # Where client and service are on one link, the answer would go to the client directly, from an
    # address it did not ask. Seen as coming from the router, it comes back through the router.
    links = [f"{quoted(link)} . {quoted(link)}" for link in clients]
    targets = [exposure.target for exposure in services]
    parts.collections += (
        nft_text.named_set("same_link", "ifname . ifname", links),
        nft_text.named_set("hairpin_targets", "ipv4_addr . inet_proto . inet_service", targets),
    )
    parts.postrouting.append(
        "ct status dnat iifname . oifname @same_link"
        " ip daddr . meta l4proto . th dport @hairpin_targets masquerade"
    )


def _outside_address(outside: Iterable[str], inside: Iterable[str], site: Site) -> str:
    """A match of the router's addresses outside, without knowing them, since DHCP may change them:
    an address of the router, but neither one of the link the packet came in through nor one that is
    declared for any link inside. The router's own services there stay its own."""
    declared = {
        str(address.ip)
        for link in sorted(set(inside) - set(outside))
        for address in site.addresses(link)
        if address.version == 4
    }
    others = f" ip daddr != {nft_text.one_of(sorted(declared))}" if declared else ""
    return f"meta nfproto ipv4 fib daddr type local fib daddr . iif type != local{others}"
