"""Table `ip holdfast_nat`: source addresses of what leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import nft
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.firewall.source_nat import IPv4SourceNAT, PortMapping, Translation
from holdfast.resources.nft_text import quoted
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site

ORDER = 40  # among combiners

FAMILY, NAME = nft.NAT
# Without a seed of ours the kernel draws one for each load, and clients would change addresses.
_SEED = "0x1"
# The first rule that translates starts connection tracking. It takes the router's own connections
# up in the middle, by a packet of the router, as new ones: an operator's SSH would go on from
# another port or address, and be reset. What a connection begins with is a SYN alone. The second
# is for VRFs, whose addresses are local by their links only.
_OWN_CONNECTIONS = tuple(
    f"fib {source} type local tcp flags & (fin | syn | rst | ack) != syn return"
    for source in ("saddr", "saddr . oif")
)


def combine(site: Site) -> Iterator[Declared]:
    resources = site.of(IPv4SourceNAT)
    if resources:
        table = nft_table(FAMILY, NAME, body(resources, site))
        for resource in resources:
            yield resource, Intent(resource.id, table, resource.place)


def body(resources: Iterable[Resource], site: Site) -> str:
    """Longer prefixes come first: the first rule that matches is the one that counts.

    Without sets and maps, whose elements stop to count while packets are still in the chains of a
    table that is replaced: a flow whose first packet met no rule would leave with an address of the
    inside, and go on so.
    """
    chains: list[str] = []
    found: list[tuple[int, str, IPv4Network, str]] = []
    for number, resource in enumerate(resources):
        ifname = site.ifname(resource.spec.outbound_interface)
        chain = f"nat{number}"
        chains.append(nft_text.branch(chain, _rules(resource.spec.translation)))
        found += ((-cidr.prefixlen, ifname, cidr, chain) for cidr in resource.spec.source_cidrs)
    rules = (
        f"oifname {quoted(ifname)} {f'ip saddr {cidr} ' if length else ''}goto {chain}"
        for length, ifname, cidr, chain in sorted(found)
    )
    hook = "nat hook postrouting priority srcnat"
    return nft_text.body(
        (*chains, nft_text.chain("postrouting", hook, (*_OWN_CONNECTIONS, *rules)))
    )


def _rules(translation: Translation) -> Iterator[str]:
    ports = _ports(translation.port_mapping)
    for picked, address in _addresses(translation):
        for protocol in ("tcp", "udp") if ports else ():
            to = f"snat to {address}:{ports}" if address else f"masquerade to :{ports}"
            yield f"{picked}meta l4proto {protocol} {to}"
        yield f"{picked}{f'snat to {address}' if address else 'masquerade'}"


def _ports(mapping: PortMapping) -> str:
    if mapping.type == "range":
        same = mapping.start == mapping.end
        return str(mapping.start) if same else f"{mapping.start}-{mapping.end}"
    # By default the kernel keeps a port only where it is free. A range of one port, the packet's
    # own, leaves it no choice; `persistent` is about addresses of a pool, not about ports.
    return "th sport" if mapping.type == "preserve" else ""


def _addresses(translation: Translation) -> Iterator[tuple[str, str]]:
    """What has to match, and the address; "" for whatever the interface has."""
    if translation.address is not None:
        yield "", str(translation.address)
        return
    pool = sorted(translation.addresses or ())
    for number, address in reversed(list(enumerate(pool))):
        picked = f"jhash ip saddr mod {len(pool)} seed {_SEED} {number} " if number else ""
        yield picked, str(address)
    if not pool:
        yield "", ""
