"""BGPInstance: BGP itself, in one VRF."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bgp_instance as instances
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing.values import as_number, router_id
from holdfast.resources.site import Site
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    flag,
    integer,
    link_reference,
    optional,
    required,
)

GROUPS = ("routing",)


class BGPInstance(Spec):
    local_as: int = required(as_number(), "the AS number of this router", name="localAS")
    router_id: str | None = optional(
        router_id(),
        "tells this router from others; where not given, FRR takes an address",
        name="routerID",
    )
    vrf: str | None = optional(
        link_reference(), "the VRF it is in; where not given, the one outside of all VRFs"
    )
    graceful_restart: bool = optional(
        flag(),
        "neighbours keep what they learned while BGP restarts here. A change resets all sessions",
        default=True,
    )
    restart_time: float = optional(
        duration(1, 4095), "how long neighbours wait for it to be back", default=120.0
    )
    stale_path_time: float = optional(
        duration(1, 4095), "how long what a restarting neighbour told is kept", default=360.0
    )
    graceful_shutdown: bool = optional(
        flag(),
        "asks neighbours to prefer other ways (RFC 8326), before this router is stopped",
        default=False,
    )
    multipath_relax: bool = optional(
        flag(), "spread traffic over paths of one length through several ASes", default=False
    )
    import_check: bool = optional(
        flag(), "tell a prefix only while there is a route to it here", default=False
    )
    log_neighbor_changes: bool = optional(
        flag(), "FRR logs when a session comes up or goes down: events are made of it", default=True
    )
    listen_limit: int = optional(
        integer(1, 65535), "sessions that listen ranges may bring about", default=100
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPInstance = resource.spec
    for name, value in (
        ("restartTime", spec.restart_time),
        ("stalePathTime", spec.stale_path_time),
    ):
        if value % 1:
            yield Fault((name,), "must be whole seconds")


def vrf_of(instance: Resource | None, site: Site) -> str:
    """The name of the VRF that an instance is in; of no instance: outside of all VRFs."""
    if instance is None or instance.spec.vrf is None:
        return instances.DEFAULT_VRF
    return site.ifname(instance.spec.vrf)


def instance_of(name: str | None, site: Site) -> Resource | None:
    """The instance that something is in; where it names none, the one outside of all VRFs. None
    where no resource declares that: FRR's own configuration may."""
    if name is not None:
        return site.find(BGPInstance, name)
    return next((resource for resource in site.of(BGPInstance) if resource.spec.vrf is None), None)


def vrf_named(name: str | None, site: Site) -> str:
    return vrf_of(instance_of(name, site), site)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: BGPInstance = resource.spec
    vrf = vrf_of(resource, site)
    made = instances.bgp_instance(
        spec.local_as,
        vrf=vrf,
        router_id=spec.router_id,
        log_neighbor_changes=spec.log_neighbor_changes,
        network_import_check=spec.import_check,
        multipath_relax=spec.multipath_relax,
        graceful_restart=spec.graceful_restart,
        restart_time=int(spec.restart_time),
        stale_path_time=int(spec.stale_path_time),
        graceful_shutdown=spec.graceful_shutdown,
        listen_limit=spec.listen_limit,
    )
    requires = site.link_key(vrf) if spec.vrf is not None else ()
    yield Intent(resource.id, made, resource.place, requires=requires)


def reaches(resource: Resource) -> Iterator[Reach]:
    yield Reach((), instance=True)
    yield Reach(("localAS",), autonomous_system=resource.spec.local_as)


KINDS = (
    Kind(
        BGPInstance,
        "BGP on this router: its AS number and what holds for all its sessions. What a peer may"
        " tell is said by each peer, so that FRR's `ebgp-requires-policy` is off. Lines that"
        " somebody wrote into FRR beside these stay.",
        (BGP_INSTANCE.name,),
        "localAS: 65001\nrouterID: 192.0.2.1\n",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
        cross_checks="routing.bgp_checks",
    ),
)
