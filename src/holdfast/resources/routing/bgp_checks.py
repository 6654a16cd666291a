"""What BGP's resources say of each other: one instance a VRF, one declaration a peer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.config.document import Location
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF
from holdfast.resources.resource import Fault, Finding, Resource
from holdfast.resources.routing.bfd_session import BFDSession
from holdfast.resources.routing.bgp_aggregate import BGPAggregate
from holdfast.resources.routing.bgp_instance import BGPInstance, instance_of
from holdfast.resources.routing.bgp_peer import BGPPeer
from holdfast.resources.routing.bgp_peer_group import BGPPeerGroup
from holdfast.resources.routing.bgp_prefix import BGPPrefix
from holdfast.resources.routing.session import Session
from holdfast.resources.site import Site


def check(site: Site) -> Iterator[Finding]:
    yield from _instances(site)
    yield from _peers(site)
    yield from _groups(site)
    for resource in site.of(BGPPeer, BGPPeerGroup):
        yield from _session(resource, site)
    for resource in site.of(BGPPrefix, BGPAggregate):
        spec: BGPPrefix | BGPAggregate = resource.spec
        if spec.prepend and spec.instance is None and instance_of(None, site) is None:
            words = "needs a BGPInstance: which AS number to put there is not known"
            yield resource, Fault(("prepend",), words)
    for resource in site.of(BFDSession):
        yield from _vrf(resource, site)


def _instances(site: Site) -> Iterator[Finding]:
    seen: dict[str | None, Resource] = {}
    for resource in site.of(BGPInstance):
        spec: BGPInstance = resource.spec
        yield from _vrf(resource, site)
        first = seen.setdefault(spec.vrf, resource)
        if first is not resource:
            where = f"in VRF {spec.vrf}" if spec.vrf else "outside of all VRFs"
            at: Location = ("vrf",) if spec.vrf else ()
            yield resource, Fault(at, f"there is one BGP {where}, and {first} declares it")


def _vrf(resource: Resource, site: Site) -> Iterator[Finding]:
    """A link that is no VRF is none to be in."""
    named: str | None = resource.spec.vrf
    link = site.links.get(site.ifnames.get(named, "")) if named else None
    if link is None:
        return
    if getattr(link.spec, "vrf", None) is None:
        yield resource, Fault(("vrf",), f"{link} is no VRF")
    elif site.ifname(named or "") == DEFAULT_VRF:
        yield resource, Fault(("vrf",), f"{link}: FRR keeps this name for what is in no VRF")


def _where(resource: Resource, site: Site) -> Any:
    """What tells its VRF from others, also where nothing was checked yet."""
    instance = instance_of(resource.spec.instance, site)
    return instance.spec.vrf if instance is not None else None


def _peers(site: Site) -> Iterator[Finding]:
    seen: dict[tuple[Any, ...], Resource] = {}
    for resource in site.of(BGPPeer):
        spec: BGPPeer = resource.spec
        peer = spec.address or spec.interface
        if peer is None:
            continue
        first = seen.setdefault((_where(resource, site), str(peer)), resource)
        at = ("address",) if spec.address is not None else ("interface",)
        if first is not resource:
            yield resource, Fault(at, f"{peer} is declared by {first} already")
        if spec.address is not None and spec.address in site.hosts:
            dev, _ = site.hosts[spec.address][0]
            yield resource, Fault(at, f"{peer} is the router's own address, on {dev}")
        group = site.find(BGPPeerGroup, spec.group)
        if group is None:
            continue
        if _where(group, site) != _where(resource, site):
            yield resource, Fault(("group",), f"{group} belongs to another instance")
        if spec.remote_as is None and group.spec.remote_as is None:
            yield resource, Fault(("remoteAS",), f"is missing, and {group} does not say it either")
        elif spec.remote_as is not None and group.spec.remote_as is not None:
            words = f"{group} says {group.spec.remote_as}, and FRR takes no other beside it"
            yield resource, Fault(("remoteAS",), words)


def _groups(site: Site) -> Iterator[Finding]:
    seen: dict[tuple[Any, Any], Resource] = {}
    for resource in site.of(BGPPeerGroup):
        for index, network in enumerate(resource.spec.listen_ranges):
            first = seen.setdefault((_where(resource, site), network), resource)
            if first is not resource:
                message = f"{first} listens to {network} already"
                yield resource, Fault(("listenRanges", index), message)


def _session(resource: Resource, site: Site) -> Iterator[Finding]:
    spec: Session = resource.spec
    instance = instance_of(spec.instance, site)
    if instance is None:
        return
    own = instance.spec.local_as
    if spec.local_as == own:
        yield resource, Fault(("localAS",), f"is that of {instance}: leave it out")
    internal = spec.remote_as in ("internal", str(own))
    if internal and spec.remote_as != "internal" and spec.ebgp_multihop is not None:
        yield resource, Fault(("ebgpMultihop",), "has no meaning within an AS")
    for index, family in enumerate(spec.families):
        if family.route_reflector_client and spec.remote_as is not None and not internal:
            words = f"is for neighbours of AS {own}, and this one is of {spec.remote_as}"
            if spec.remote_as != "external":
                yield resource, Fault(("families", index, "routeReflectorClient"), words)
