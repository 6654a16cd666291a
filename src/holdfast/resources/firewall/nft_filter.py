"""Table `inet holdfast_filter`: what a FirewallPolicy lets in and through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import nft
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.firewall.exposure import Exposure, exposures
from holdfast.resources.firewall.firewall_policy import (
    FirewallPolicy,
    Opening,
    allowances,
    openings,
)
from holdfast.resources.firewall.zone import Zone
from holdfast.resources.nft_text import one_of, quoted
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site

ORDER = 20  # among combiners: what filters is made before what opens

FAMILY, NAME = nft.FILTER

# By a mask and not by a map of states: while a table is replaced, a packet may be half way through
# the old rules when the elements of their sets stop to count, and finds nothing in them. With a map
# here, one packet in 6 000 of a running flow was lost under a table replaced 40 times a second;
# with a mask none of a million.
_KNOWN = "ct state established,related accept"
_INVALID = "ct state invalid drop"
# Before what connection tracking makes nothing of is dropped: neighbour discovery, router
# advertisements, multicast membership and path MTU discovery keep the links themselves working.
_CONTROL = (
    "icmpv6 type "
    + one_of(
        (
            "destination-unreachable", "packet-too-big", "time-exceeded", "parameter-problem",
            "echo-request", "mld-listener-query", "mld-listener-report", "mld-listener-done",
            "mld2-listener-report", "nd-router-solicit", "nd-router-advert",
            "nd-neighbor-solicit", "nd-neighbor-advert", "nd-redirect",
        )
    )
    + " accept",
    "icmp type "
    + one_of(("destination-unreachable", "time-exceeded", "parameter-problem", "echo-request"))
    + " accept",
    "ip protocol igmp accept",
)  # fmt: skip
# Answers to a DHCP client are no answers to connection tracking: what it sent went to a multicast
# or broadcast address.
_CLIENTS = (
    "meta nfproto ipv4 udp sport 67 udp dport 68 accept",
    "ip6 saddr fe80::/10 udp dport 546 accept",
)
_TRANSPORT = "meta l4proto . th dport"
_TRANSPORT_TYPES = "inet_proto . inet_service"


def combine(site: Site) -> Iterator[Declared]:
    for policy in site.of(FirewallPolicy)[:1]:  # more than one are a clash
        services = list(exposures(site))
        table = nft_table(FAMILY, NAME, body(policy, services, site))
        resources = (policy, *site.of(Zone), *(exposure.resource for exposure in services))
        for resource in resources:
            yield resource, Intent(resource.id, table, resource.place)


def body(policy: Resource, services: Iterable[Exposure], site: Site) -> str:
    spec = policy.spec
    sets, allowed, exposed, by_suffix = _forward(policy, list(services), site)
    opened = [_open(opening) for opening in openings(policy, site) if opening.links]
    # The host of an exposed service may be the router itself. Not where only the end of its address
    # is given: that of the router's own address outside may be the same.
    incoming = (_KNOWN, *_CONTROL, _INVALID, 'iifname "lo" accept', *_CLIENTS, *opened, *exposed)
    passing = (_KNOWN, _INVALID, *allowed, *exposed, *by_suffix)
    hook = "filter hook {} priority filter"
    return nft_text.body(
        (
            *sets,
            nft_text.chain("input", hook.format("input"), (*incoming, spec.input.default)),
            nft_text.chain("forward", hook.format("forward"), (*passing, spec.forward.default)),
        )
    )


def _open(opening: Opening) -> str:
    protocols = one_of(opening.protocols)
    ports = one_of(str(port) for port in opening.ports)
    links = nft_text.interfaces(opening.links)
    return f"iifname {links} meta l4proto {protocols} th dport {ports} accept"


def _forward(policy: Resource, services: list[Exposure], site: Site) -> tuple[list[str], ...]:
    """Sets, and the rules that use them: of zones, of exposed services, and of those that are known
    by the end of an address."""
    sets: list[str] = []
    allowed: list[str] = []
    exposed: list[str] = []
    by_suffix: list[str] = []

    def add(
        rules: list[str], name: str, types: str, elements: list[str], match: str, limited: bool
    ) -> None:
        if elements:
            sets.append(nft_text.named_set(name, types, elements, interval=limited))
            rules.append(f"{match} @{name} accept")

    pairs = [f"{quoted(from_)} . {quoted(to)}" for from_, to in allowances(policy, site)]
    add(allowed, "allowed", "ifname . ifname", pairs, "iifname . oifname", False)
    for version, address, daddr in ((4, "ipv4_addr", "ip daddr"), (6, "ipv6_addr", "ip6 daddr")):
        types = f"ifname . {address} . {_TRANSPORT_TYPES}"
        match = f"iifname . {daddr} . {_TRANSPORT}"
        mine = [each for each in services if each.spec.version == version and not each.spec.suffix]
        # Who sends to the internal address itself has not been through holdfast_dnat, which looks
        # at the sources.
        found = list(_translated(mine))
        add(exposed, f"exposed{version}", types, found, f"ct status dnat {match}", False)
    types = f"ifname . ipv6_addr . {_TRANSPORT_TYPES}"
    for name, suffix, daddr in (
        ("pinholes6", False, "ip6 daddr"),
        ("suffixes6", True, "ip6 daddr & ::ffff:ffff:ffff:ffff"),
    ):
        match = f"iifname . {daddr} . {_TRANSPORT}"
        mine = [each for each in services if not each.translated and each.spec.suffix == suffix]
        rules = by_suffix if suffix else exposed
        add(rules, name, types, list(_free(mine)), match, False)
        limited = list(_limited(mine))
        match = f"{match} . ip6 saddr"
        add(rules, f"limited_{name}", f"{types} . ipv6_addr", limited, match, True)
    return sets, allowed, exposed, by_suffix


def _translated(services: Iterable[Exposure]) -> Iterator[str]:
    for exposure in services:
        if exposure.translated:
            for link in (*exposure.outside, *exposure.inside):
                yield f"{quoted(link)} . {exposure.target}"


def _free(services: Iterable[Exposure]) -> Iterator[str]:
    for exposure in services:
        open_ = () if exposure.sources else exposure.outside
        for link in (*open_, *exposure.inside):
            yield f"{quoted(link)} . {exposure.target}"


def _limited(services: Iterable[Exposure]) -> Iterator[str]:
    for exposure in services:
        for link in exposure.outside:
            for source in exposure.sources:
                yield f"{quoted(link)} . {exposure.target} . {source}"
