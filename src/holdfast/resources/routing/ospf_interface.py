"""OSPFInterface: a link that takes part in OSPF."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Intent
from holdfast.engine.kinds import ospf
from holdfast.engine.kinds.bfd import BFD_PROFILE
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_INTERFACE
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing import bfd_use
from holdfast.resources.routing.bfd_use import BFDUse
from holdfast.resources.routing.bgp_instance import GROUPS
from holdfast.resources.routing.values import area, router_id
from holdfast.resources.site import Site
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    nested,
    optional,
    required,
)
from holdfast.resources.spec.values import EVERYTHING

_ONLY_V2 = ("non-broadcast", "point-to-multipoint")


class OSPFInterface(Spec):
    interface: str = required(link_reference(), "the link")
    version: int = optional(integer(2, 3), "2 is for IPv4, 3 for IPv6", default=2)
    area: str = required(area(), "0 is the backbone")
    cost: int | None = optional(
        integer(1, 65535), "of what is sent through it; by the speed of the link where not given"
    )
    hello_interval: float = optional(
        duration(1, 65535), "between signs of life; the same on all of a link", default=10.0
    )
    dead_interval: float = optional(
        duration(1, 65535),
        "without one, a neighbour is gone; the same on all of a link",
        default=40.0,
    )
    priority: int = optional(
        integer(0, 255), "to be the one that speaks for the link; 0: never", default=1
    )
    passive: bool = optional(
        flag(), "its networks are told, and nobody is spoken to on it", default=False
    )
    network: str | None = optional(
        choice("broadcast", "point-to-point", *_ONLY_V2),
        "how neighbours are found; by the kind of the link where not given",
    )
    mtu_ignore: bool = optional(
        flag(), "neighbours with another MTU are taken all the same", default=False
    )
    bfd: BFDUse | None = optional(
        nested(BFDUse), "a neighbour is gone as soon as BFD sees a failure; `{}` with FRR's times"
    )
    router_id: str | None = optional(
        router_id(), "tells this router from others in this version of OSPF", name="routerID"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: OSPFInterface = resource.spec
    for name, value in (
        ("helloInterval", spec.hello_interval),
        ("deadInterval", spec.dead_interval),
    ):
        if value % 1:
            yield Fault((name,), "must be whole seconds")
    if spec.dead_interval <= spec.hello_interval:
        yield Fault(("deadInterval",), "must be longer than `helloInterval`")
    if spec.version == 3 and spec.network in _ONLY_V2:
        yield Fault(("network",), f"{spec.network} is for version 2")
    if spec.passive and spec.bfd is not None:
        yield Fault(("bfd",), "has no meaning where nobody is spoken to")
    yield from bfd_use.check(spec.bfd, ("bfd",))


def vrf_of(ifname: str, site: Site) -> str:
    """The VRF that a link is in, as far as resources say."""
    declared = site.interfaces.get(ifname)
    master = declared.spec.master if declared is not None else None
    above = site.interfaces.get(site.device(master or ""))
    return DEFAULT_VRF if above is None or above.spec.vrf is None else str(above.spec.ifname)


def instance(version: int, vrf: str, site: Site) -> Artifact:
    """What all that is in it needs, alike whoever declares it."""
    ids = (
        resource.spec.router_id
        for resource in site.of(OSPFInterface)
        if resource.spec.version == version
        and resource.spec.router_id is not None
        and vrf_of(site.ifname(resource.spec.interface), site) == vrf
    )
    return ospf.ospf_instance(version, vrf=vrf, router_id=next(ids, None))


def reaches(resource: Resource) -> Iterator[Reach]:
    """Routes to anywhere may come from whoever is on the link: OSPF filters nothing."""
    spec: OSPFInterface = resource.spec
    if not spec.passive:
        yield Reach(("interface",), EVERYTHING[4 if spec.version == 2 else 6], learned=True)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: OSPFInterface = resource.spec
    ifname = site.ifname(spec.interface)
    profile, profile_key, made = bfd_use.profile(spec.bfd)
    if made is not None:
        yield Intent(resource.id, made, resource.place)
    vrf = vrf_of(ifname, site)
    router = instance(spec.version, vrf, site)
    yield Intent(resource.id, router, resource.place, requires=site.link_key(vrf))
    told = ospf.OspfInterface(
        spec.area,
        spec.cost,
        int(spec.hello_interval),
        int(spec.dead_interval),
        spec.priority,
        spec.passive,
        spec.network,
        spec.mtu_ignore,
        spec.bfd is not None,
        profile,
    )
    requires = [router.key, *site.link_key(ifname)]
    if profile_key is not None:
        requires.append(profile_key)
    yield Intent(
        resource.id,
        ospf.ospf_interface(spec.version, ifname, told),
        resource.place,
        requires=tuple(requires),
    )


KINDS = (
    Kind(
        OSPFInterface,
        "A link that takes part in OSPF, of version 2 or 3; a resource for each. What is not told"
        " of a link stays as FRR has it.",
        (OSPF_INTERFACE.name, OSPF_INSTANCE.name, BFD_PROFILE.name),
        "interface: lan\narea: 0\ncost: 10\nnetwork: point-to-point\n"
        "bfd: {receiveInterval: 100ms, transmitInterval: 100ms}\n",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
        cross_checks="routing.ospf_checks",
    ),
)
