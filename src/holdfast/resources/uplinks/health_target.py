"""Whom a HealthCheck asks, as things are now."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.dataclass import dataclass
from holdfast.resources import registry
from holdfast.resources.facts import Address, Lease
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site
from holdfast.resources.uplinks import uplink
from holdfast.resources.uplinks.health_check import HealthCheck


@dataclass(frozen=True, slots=True)
class Target:
    """What a probe asks, and by which way."""

    kind: str  # "ping", "tcp", "http", "dns"
    address: Address
    ifname: str = ""  # bound to it; "" leaves the way to the routing tables
    mark: int = 0
    port: int = 0
    path: str = "/"  # http
    host: str = ""  # http: the Host header, where not the address
    name: str = ""  # dns: the name asked for
    source: Address | None = None  # asked from there; None leaves it to the routing tables

    @property
    def family(self) -> int:
        return self.address.version


def target(resource: Resource, site: Site) -> Target | str:
    """The target of a check, or why there is none."""
    spec: HealthCheck = resource.spec
    ifname = site.ifname(spec.interface) if spec.interface is not None else ""
    address = _address(spec, ifname, site)
    if isinstance(address, str):
        return address
    return Target(
        spec.type,
        address,
        # The far end of a tunnel is reached beside the tunnel, not through it.
        "" if _remote(spec, ifname, site) is not None else ifname,
        _mark(resource, site),
        spec.asked_port,
        spec.path or "/",
        spec.host or "",
        spec.query_name or "",
    )


def _mark(resource: Resource, site: Site) -> int:
    """That of the way which goes by this check, where the check has none of its own.

    The link alone is not enough: while another candidate is the default, no route but the one in
    the candidate's own table leads over this link to what is not on it.
    """
    spec: HealthCheck = resource.spec
    if spec.mark is not None:
        return spec.mark
    found = {
        one.mark
        for one in uplink.uplinks(site, spec.version)
        if one.health_check == resource.name and spec.interface in (None, one.link)
    }
    return found.pop() if len(found) == 1 else 0


def _remote(spec: HealthCheck, ifname: str, site: Site) -> Callable[[], Address | None] | None:
    """What tells the far end, where that is asked."""
    if spec.target is not None or spec.target_source == "defaultGateway":
        return None
    link = site.links[ifname]
    kind = registry.kind(link.kind).link
    told = kind.remote if kind is not None else None
    return (lambda: told(link, site)) if told is not None else None


def _address(spec: HealthCheck, ifname: str, site: Site) -> Address | str:
    if spec.target is not None:
        return spec.target
    remote = _remote(spec, ifname, site)
    if remote is not None:
        return remote() or f"the far end of {ifname} is not known yet"
    return _gateway(ifname, spec.version, site)


def _gateway(ifname: str, version: int, site: Site) -> Address | str:
    facts = site.facts
    known = facts.gateways.get((ifname, version))
    if known is not None:
        return known
    for leases in (facts.sessions, facts.leases4 if version == 4 else facts.leases6):
        lease = leases.get(ifname)
        gateway = lease.gateway if isinstance(lease, Lease) else None
        if gateway is not None and gateway.version == version:
            return gateway
    return f"no IPv{version} gateway is known over {ifname}"
