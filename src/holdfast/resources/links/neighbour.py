"""Neighbour: a fixed link-layer address for an IP address."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.neighbour import NEIGHBOUR, neighbour
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec, device_reference, required
from holdfast.resources.spec.values import Address, address, mac


class Neighbour(Spec):
    interface: str = required(device_reference(), "the interface the neighbour is behind")
    address: Address = required(address(), "its IP address")
    mac: str = required(mac(), "its hardware address")


def check(resource: Resource) -> Iterator[Fault]:
    spec: Neighbour = resource.spec
    if spec.address.is_multicast or spec.address.is_unspecified:
        yield Fault(("address",), f"{spec.address} cannot be a neighbour")


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: Neighbour = resource.spec
    dev = site.ifname(spec.interface)
    artifact = neighbour(spec.address, dev, spec.mac)
    yield Intent(resource.id, artifact, resource.place, requires=site.link_key(dev))


KINDS = (
    Kind(
        Neighbour,
        "A permanent ARP or neighbour discovery entry.",
        (NEIGHBOUR.name,),
        'interface: lan\naddress: 192.0.2.7\nmac: "02:00:5e:10:00:01"\n',
        intents,
        check,
        open_to_others=nothing_against,
    ),
)
