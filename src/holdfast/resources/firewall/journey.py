"""The way of a client's first packet through the hooks of nftables, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.dataclass import dataclass
from holdfast.resources.firewall.exposure import Exposure
from holdfast.resources.firewall.firewall_policy import Opening
from holdfast.resources.firewall.foreign_chains import FILTER, ForeignChain, Packet
from holdfast.resources.site import Site

# Priorities at prerouting, from linux/netfilter_ipv4.h: where connection tracking begins, and where
# our own table gives a packet its new destination.
_CONNTRACK, _DSTNAT = -200, -100
_TO_ROUTER = ("prerouting", "input")
_THROUGH = ("prerouting", "forward", "postrouting")
_DHCP = {67: 4, 547: 6}  # servers: versions by port


@dataclass(frozen=True, slots=True)
class End:
    """A destination. No addresses: they are not known."""

    addresses: tuple[str, ...]
    port: int
    local: bool | None  # whether it is the router; None: not known, as of what goes to everybody


@dataclass(frozen=True, slots=True)
class Journey:
    link: str  # that it comes in through
    version: int
    protocol: str
    sent_to: End
    brought_to: End  # the same where nothing is translated

    @property
    def hooks(self) -> tuple[str, ...]:
        return _THROUGH if self.brought_to.local is False else _TO_ROUTER

    @property
    def translated(self) -> bool:
        return self.sent_to != self.brought_to

    def at(self, chain: ForeignChain) -> Packet | None:
        """As the chain sees it; None where it does not come to that. Chains that translate are
        asked in the order of their priorities, until one did; of one with the very priority of
        ours, nobody can tell which comes first."""
        if chain.hook not in self.hooks:
            return None
        early = chain.hook == "prerouting"
        if chain.type != FILTER and (not early or (self.translated and chain.priority >= _DSTNAT)):
            return None
        known: dict[str, tuple[str, ...]] = {"iifname": (self.link,)}
        if not early or chain.priority > _CONNTRACK:
            known["ct state"] = ("new",)
        if early and chain.priority < _DSTNAT:
            known |= _of_end(self.sent_to)
        elif early and chain.priority == _DSTNAT and self.translated:
            ports = (self.sent_to.port, self.brought_to.port)
            known["dport"] = tuple(str(port) for port in ports)
        else:
            known |= _of_end(self.brought_to)
        if "ct state" in known and not (early and chain.priority == _DSTNAT):
            done = self.translated and not (early and chain.priority < _DSTNAT)
            known["ct status"] = ("dnat" if done else "none",)
        return Packet(self.version, self.protocol, known)


def _of_end(end: End) -> dict[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {"dport": (str(end.port),)}
    if end.addresses:
        known["daddr"] = end.addresses
    if end.local:
        known["fib daddr"] = ("local",)
    return known


def of_exposure(exposure: Exposure, site: Site) -> Iterator[Journey]:
    spec = exposure.spec
    host = () if spec.suffix else (str(spec.internal_address),)
    inside = End(host, spec.port, local=spec.internal_address in site.hosts)
    for link in exposure.outside:
        # IPv4 services are at whichever addresses the router has, IPv6 ones at the host's own.
        own = _declared(site, link, 4)
        sent_to = End(own, spec.external_port, local=True)
        if spec.version == 6:
            sent_to = End(host, spec.external_port, local=inside.local)
        yield Journey(link, spec.version, spec.protocol, sent_to, inside)


def of_opening(opening: Opening, site: Site) -> Iterator[Journey]:
    """Only by IP versions that the link has an address of, as far as those are declared."""
    for link in opening.links:
        versions = {each.version for each in site.addresses(link)} or {4}
        for port in opening.ports:
            dhcp = _DHCP.get(port) if opening.name == "dhcp" else None
            for version in sorted(versions & {dhcp} if dhcp else versions):
                # What is for a DHCP server is for everybody on the link.
                own = () if dhcp else _declared(site, link, version)
                end = End(own, port, local=None if dhcp else True)
                for protocol in opening.protocols:
                    yield Journey(link, version, protocol, end, end)


def _declared(site: Site, link: str, version: int) -> tuple[str, ...]:
    return tuple(str(each.ip) for each in site.addresses(link) if each.version == version)
