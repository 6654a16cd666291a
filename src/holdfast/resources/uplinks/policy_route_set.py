"""IPv4PolicyRouteSet: flows spread over several links."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    link_reference,
    listed,
    nested,
    no_networks,
    optional,
    reference,
    required,
    text,
)
from holdfast.resources.spec.values import address, mark
from holdfast.resources.uplinks import uplink
from holdfast.resources.uplinks.health_check import HealthCheck
from holdfast.resources.uplinks.policy_route import NO_PACKETS, intents
from holdfast.resources.uplinks.selection import DESTINATIONS, SOURCES, prefixes, reaches
from holdfast.resources.uplinks.uplink import Uplink


class Target(Spec):
    name: str | None = optional(text(reach=no_networks), "for people to read")
    outbound_interface: str = required(link_reference(), uplink.LINK)
    table: int = required(uplink.own_table(), uplink.TABLE)
    priority: int = required(integer(1, 32765), uplink.PRIORITY)
    mark: int = required(mark(), uplink.MARK)
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), uplink.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), uplink.GATEWAY)
    route_metric: int = optional(
        integer(0, 0xFFFFFFFF), uplink.METRIC, default=uplink.DEFAULT_METRIC
    )
    health_check: str | None = optional(
        reference(HealthCheck), "while it says unhealthy, the other targets take the flows"
    )


class IPv4PolicyRouteSet(Spec):
    mode: str = optional(choice("hash"), "how flows are spread", default="hash")
    hash_fields: tuple[str, ...] = required(
        listed(choice("sourceAddress", "destinationAddress")),
        "flows that have these in common take the same target",
    )
    source_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), SOURCES, name="sourceCIDRs"
    )
    destination_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), DESTINATIONS, name="destinationCIDRs"
    )
    targets: tuple[Target, ...] = required(
        listed(nested(Target), least=2), "the links to spread flows over"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: IPv4PolicyRouteSet = resource.spec
    if spec.source_cidrs is None and spec.destination_cidrs is None:
        yield Fault((), NO_PACKETS)
    for index, field in enumerate(spec.hash_fields):
        if field in spec.hash_fields[:index]:
            yield Fault(("hashFields", index), f"{field} is there twice")
    for index, target in enumerate(spec.targets):
        yield from uplink.faults(target, ("targets", index))
        others = spec.targets[:index]
        if target.name and target.name in (other.name for other in others):
            yield Fault(("targets", index, "name"), f"{target.name} is the name of another target")


def uplinks(resource: Resource) -> Iterator[Uplink]:
    for index, target in enumerate(resource.spec.targets):
        at, label = ("targets", index), f"target {target.name or index}"
        yield uplink.declared_by(resource, at, 4, target, label, target.outbound_interface)


KINDS = (
    Kind(
        IPv4PolicyRouteSet,
        "Flows spread over several links; each flow stays on the one it began on.",
        (NFT.name, ROUTE.name, RULE.name),
        """\
hashFields: [sourceAddress, destinationAddress]
sourceCIDRs: [192.168.1.0/24]
targets:
  - {name: a, outboundInterface: wan, table: 100, priority: 10000, mark: 0x100}
  - {name: b, outboundInterface: dmz, table: 101, priority: 10001, mark: 0x101}
""",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=lambda resource: reaches(resource, 4),
        combiner="uplinks.nft_policy",
        cross_checks="uplinks.policy_checks",
        needs_facts=True,
        uplinks=uplinks,
    ),
)
