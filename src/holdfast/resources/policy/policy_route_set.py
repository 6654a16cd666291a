"""IPv4PolicyRouteSet: flows spread over several links."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from holdfast.resources.policy import way
from holdfast.resources.policy.policy_route import NO_PACKETS, intents
from holdfast.resources.policy.selection import DESTINATIONS, SOURCES, prefixes
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.shape import (
    Spec,
    choice,
    integer,
    listed,
    nested,
    optional,
    reference,
    required,
    text,
)
from holdfast.resources.site import LINK_KINDS
from holdfast.resources.values import address, mark


class Target(Spec):
    name: str | None = optional(text(), "for people to read")
    outbound_interface: str = required(reference(*LINK_KINDS), way.LINK)
    table: int = required(way.own_table(), way.TABLE)
    priority: int = required(integer(1, 32765), way.PRIORITY)
    mark: int = required(mark(), way.MARK)
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), way.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), way.GATEWAY)
    route_metric: int = optional(integer(0, 0xFFFFFFFF), way.METRIC, default=way.DEFAULT_METRIC)
    health_check: str | None = optional(
        reference("HealthCheck"), "while it says unhealthy, the other targets take the flows"
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
        yield from way.faults(target, ("targets", index))
        others = spec.targets[:index]
        if target.name and target.name in (other.name for other in others):
            yield Fault(("targets", index, "name"), f"{target.name} is the name of another target")


KINDS = {
    "IPv4PolicyRouteSet": Kind(
        "IPv4PolicyRouteSet",
        IPv4PolicyRouteSet,
        "Flows spread over several links; each flow stays on the one it began on.",
        ("nft", "route", "rule"),
        """\
hashFields: [sourceAddress, destinationAddress]
sourceCIDRs: [192.168.1.0/24]
targets:
  - {name: a, outboundInterface: wan, table: 100, priority: 10000, mark: 0x100}
  - {name: b, outboundInterface: dmz, table: 101, priority: 10001, mark: 0x101}
""",
        intents,
        check,
    )
}
