"""IPv4PolicyRoute: some packets leave over a link of their own."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.resources.policy import way
from holdfast.resources.policy.selection import DESTINATIONS, SOURCES, prefixes
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.shape import Spec, choice, flag, integer, optional, reference, required
from holdfast.resources.site import LINK_KINDS, Site
from holdfast.resources.values import address, mark

NO_PACKETS = "needs `sourceCIDRs`, `destinationCIDRs` or both; 0.0.0.0/0 stands for any"


class IPv4PolicyRoute(Spec):
    outbound_interface: str = required(reference(*LINK_KINDS), way.LINK)
    table: int = required(way.own_table(), way.TABLE)
    priority: int = required(integer(1, 32765), way.PRIORITY)
    mark: int = required(mark(), way.MARK)
    source_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), SOURCES, name="sourceCIDRs"
    )
    destination_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), DESTINATIONS, name="destinationCIDRs"
    )
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), way.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), way.GATEWAY)
    route_metric: int = optional(integer(0, 0xFFFFFFFF), way.METRIC, default=way.DEFAULT_METRIC)
    allow_local_source_nat: bool | None = optional(
        flag(),
        "only taken under routerd.net, where it does nothing either: IPv4SourceNAT says what is"
        " translated",
        name="allowLocalSourceNAT",
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: IPv4PolicyRoute = resource.spec
    yield from way.faults(spec, ())
    if spec.source_cidrs is None and spec.destination_cidrs is None:
        yield Fault((), NO_PACKETS)
    if spec.allow_local_source_nat is not None:
        message = "has no effect: IPv4SourceNAT says what is translated; leave it out"
        yield Fault(("allowLocalSourceNAT",), message, warning=resource.alias)


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    for one in way.ways_of(resource):
        yield from way.intents(one, site)


KINDS = {
    "IPv4PolicyRoute": Kind(
        "IPv4PolicyRoute",
        IPv4PolicyRoute,
        "Packets from or to some prefixes leave over a link of their own.",
        ("nft", "route", "rule"),
        """\
outboundInterface: wan
table: 120
priority: 9000
mark: 0x120
sourceCIDRs: [192.168.1.64/28]
""",
        intents,
        check,
    )
}
