"""Name servers that questions are sent on to: written down, or learned with a lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.resources import registry
from holdfast.resources.facts import GONE, Address, Gone, Lease
from holdfast.resources.resource import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.config.document import Location
    from holdfast.resources.site import Site

LEARNED = ("dhcp4", "dhcp6")


class Unknown(Exception):  # noqa: N818 - a state of knowledge, not a mistake
    """What a resource needs to know before it can say what it wants.

    keeps: as Waiting has it. False where the fact is known to be gone.
    """

    def __init__(self, reason: str, *, keeps: bool = True) -> None:
        super().__init__(reason)
        self.keeps = keeps


def check_servers(
    around: Location, source: str, interface: str | None, servers: Sequence[Address]
) -> Iterator[Fault]:
    """Whether `upstreamInterface` and `upstreamServers` say what `upstreamSource` needs."""
    at = (*around, "upstreamInterface")
    if source in LEARNED and interface is None:
        yield Fault(at, f"is missing; `upstreamSource: {source}` needs it")
    if source not in LEARNED and interface is not None:
        yield Fault(at, f"has no meaning with `upstreamSource: {source}`")
    at = (*around, "upstreamServers")
    if source == "static" and not servers:
        yield Fault(at, "is missing; `upstreamSource: static` needs it")
    if source != "static" and servers:
        yield Fault(at, f"has no meaning with `upstreamSource: {source}`")
    yield from check_addresses(at, servers)


def check_addresses(around: Location, servers: Sequence[Address]) -> Iterator[Fault]:
    for index, server in enumerate(servers):
        if server.is_multicast or server.is_unspecified:
            yield Fault((*around, index), f"{server} cannot be the address of a name server")
        elif server.version == 6 and server.is_link_local:
            yield Fault(
                (*around, index), f"{server} is an address on every link; name a global one"
            )
        elif server in servers[:index]:
            yield Fault((*around, index), f"{server} is listed twice")


def learned(source: str, interface: str, site: Site) -> tuple[Address, ...]:
    """The name servers that a link was given. Raises Unknown where nothing is known of them."""
    dev = site.ifname(interface)
    family = source[-1]
    known: Lease | Gone | None
    link = site.links[dev]
    session = registry.kind(link.kind).lease
    if source == "dhcp4" and session is not None:
        _, known = session(link, site)
    else:
        known = (site.facts.leases4 if source == "dhcp4" else site.facts.leases6).get(dev)
    if known is None:
        raise Unknown(f"waits for the DNS servers of an IPv{family} lease on {dev}")
    if known is GONE or not known.dns:
        raise Unknown(f"{dev} was given no DNS server over IPv{family}", keeps=False)
    return known.dns


def spelled(server: Address, dev: str) -> str:
    """A learned server as dnsmasq reads it: a link-local address, which DHCPv6 servers often give,
    is none without its link."""
    if server.version == 6 and server.is_link_local:
        return f"{str(server).partition('%')[0]}%{dev}"
    return str(server)
