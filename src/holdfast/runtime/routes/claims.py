"""What resources are about that did not come by the API, under the names that its objects have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holdfast.api import route_control_pb2 as rc
from holdfast.config.part import Raw, Target
from holdfast.resources.resource import Resource
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import Claimed

# As clients of RouteControl know what its own file declares.
STARTUP = "_config"

IfnameOf = Callable[[str], str]


def claimed(resources: Iterable[Resource], ifname: IfnameOf) -> Iterator[Claimed]:
    """Those outside of all VRFs, where the objects of the API are."""
    routing = [resource for resource in resources if resource.kind in documents.KINDS]
    elsewhere = {
        resource.name
        for resource in routing
        if resource.kind == documents.INSTANCE and resource.spec.vrf
    }
    for resource in routing:
        source = resource.part.partition("#")[0] or STARTUP
        if getattr(resource.spec, "instance", None) in elsewhere:
            continue
        for target, spec in _objects(resource, ifname):
            yield Claimed(source, target, _document(resource, spec), resource.place)


def _objects(resource: Resource, ifname: IfnameOf) -> Iterator[tuple[Target, dict[str, Any]]]:
    spec = resource.spec
    if getattr(spec, "vrf", None) is not None:
        return
    match resource.kind:
        case documents.INSTANCE:
            said = {"localAS": spec.local_as}
            more = {} if spec.router_id is None else {"routerID": str(spec.router_id)}
            yield documents.INSTANCE_TARGET, said | more
        case documents.PEER if spec.address is not None:
            number = spec.remote_as or ""
            yield (
                documents.peer_target(spec.address),
                {
                    "address": str(spec.address),
                    "remoteAS": int(number) if number.isdecimal() else number,
                    "description": spec.description or "",
                    **({} if spec.bfd is None else {"bfd": {}}),
                },
            )
        case documents.PREFIX | documents.OSPF_PREFIX:
            bgp = resource.kind == documents.PREFIX
            for network in spec.told:
                protocol = rc.PROTOCOL_BGP if bgp else rc.PROTOCOL_OSPF
                yield documents.prefix_target(network, protocol), {"prefix": str(network)}
        case documents.BFD if not spec.multihop:
            yield documents.bfd_target(spec.peer), {"peer": str(spec.peer)}
        case documents.OSPF:
            target = documents.ospf_target(ifname(spec.interface))
            cost = {} if spec.cost is None else {"cost": spec.cost}
            yield target, {"interface": spec.interface, "area": str(spec.area), **cost}


def _document(resource: Resource, spec: dict[str, Any]) -> Raw:
    return documents.document(Target(documents.GROUP, resource.kind, resource.name), spec)
