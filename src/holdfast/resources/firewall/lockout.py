"""Would the firewall that is declared let the operator in again?"""

from __future__ import annotations

from collections.abc import Set

from holdfast.dataclass import dataclass
from holdfast.engine.path.judgement import Connection
from holdfast.engine.path.lookup import NOWHERE, Path
from holdfast.resources import registry
from holdfast.resources.firewall import nft_dnat, nft_filter
from holdfast.resources.firewall.exposure import Exposure, exposures
from holdfast.resources.firewall.firewall_policy import FirewallPolicy, openings
from holdfast.resources.firewall.zone import Zone
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Address, Network

FILTER = f"{nft_filter.FAMILY} {nft_filter.NAME}"
DNAT = f"{nft_dnat.FAMILY} {nft_dnat.NAME}"


@dataclass(frozen=True, slots=True)
class Operator:
    """The connection that the operator came in on."""

    source: Address
    local: Address
    port: int  # on our side
    ifname: str  # "" where no route leads back
    connection: Connection | None = None
    path: Path = NOWHERE  # of what we send back, as the kernel has it now

    def __str__(self) -> str:
        through = f" through {self.ifname}" if self.ifname else ""
        return f"the connection from {self.source} to {self.local} port {self.port}{through}"


def lockout(site: Site, operator: Operator, tables: Set[str]) -> str:
    """Why the connection could not be made once tables are as declared; "" if it could.

    tables: those that change. What is there already is how the operator came in.
    """
    if operator.ifname == "lo":
        return ""
    if DNAT in tables:
        for exposure in exposures(site):
            spec = exposure.spec
            links = (*exposure.outside, *exposure.inside)
            if (
                (spec.version, spec.protocol) == (4, "tcp")
                and (operator.source.version, operator.port) == (4, spec.external_port)
                and operator.ifname in links
                and _is_source(operator.source, exposure.sources)
            ):
                return f"{exposure.resource} sends it on to {spec.internal_address}"
    if FILTER in tables:
        for policy in site.of(FirewallPolicy):
            if policy.spec.input.default == "drop" and not _let_in(policy, site, operator):
                return f"{policy} drops it: {_why(policy, site, operator)}"
    return ""


def _is_source(source: Address, sources: tuple[Network, ...]) -> bool:
    return not sources or any(source in network for network in sources)


def _let_in(policy: Resource, site: Site, operator: Operator) -> bool:
    return any(
        "tcp" in opening.protocols
        and operator.port in opening.ports
        and operator.ifname in opening.links
        for opening in openings(policy, site)
    ) or any(_exposed(exposure, operator) for exposure in exposures(site))


def _exposed(exposure: Exposure, operator: Operator) -> bool:
    """Whether the operator came in by an exposed service, of which the router is the host."""
    spec = exposure.spec
    if (spec.internal_address, spec.protocol, spec.port) != (operator.local, "tcp", operator.port):
        return False
    outside = operator.ifname in exposure.outside and _is_source(operator.source, exposure.sources)
    return outside or operator.ifname in exposure.inside


def _why(policy: Resource, site: Site, operator: Operator) -> str:
    zones = [
        zone.name
        for zone in site.of(Zone)
        if operator.ifname in (site.ifname(name) for name in zone.spec.interfaces)
    ]
    where = f"Zone {zones[0]}" if zones else f"{operator.ifname or 'nowhere'}, which is in no Zone"
    allowed = [
        zone
        for opening in openings(policy, site)
        if "tcp" in opening.protocols and operator.port in opening.ports
        for zone in opening.zones
    ]
    says = f"from {', '.join(allowed)} only" if allowed else "from nowhere"
    return f"it comes from {where}, and port {operator.port} is open {says}"


def lower_links(site: Site) -> dict[str, str]:
    """The link that each declared one needs to work, by their kernel names."""
    found = {}
    for ifname, link in site.links.items():
        kind = registry.kind(link.kind).link
        lower = getattr(link.spec, kind.over, "") if kind is not None else ""  # WireGuard: any
        if lower in site.ifnames:
            found[ifname] = site.ifnames[lower]
    return found
