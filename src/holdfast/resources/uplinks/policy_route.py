"""IPv4PolicyRoute: some packets leave over a link of their own."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from holdfast.engine.intent import BulkIntent, Intent, Waiting
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    optional,
    required,
)
from holdfast.resources.spec.values import address, mark
from holdfast.resources.uplinks import uplink
from holdfast.resources.uplinks.selection import DESTINATIONS, SOURCES, prefixes, reaches
from holdfast.resources.uplinks.uplink import Uplink

NO_PACKETS = "needs `sourceCIDRs`, `destinationCIDRs` or both; 0.0.0.0/0 stands for any"


class IPv4PolicyRoute(Spec):
    outbound_interface: str = required(link_reference(), uplink.LINK)
    table: int = required(uplink.own_table(), uplink.TABLE)
    priority: int = required(integer(1, 32765), uplink.PRIORITY)
    mark: int = required(mark(), uplink.MARK)
    source_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), SOURCES, name="sourceCIDRs"
    )
    destination_cidrs: tuple[IPv4Network, ...] | None = optional(
        prefixes(4), DESTINATIONS, name="destinationCIDRs"
    )
    gateway_source: str = optional(
        choice("none", "dhcp4", "static"), uplink.GATEWAY_SOURCE, default="none"
    )
    gateway: IPv4Address | None = optional(address(4), uplink.GATEWAY)
    route_metric: int = optional(
        integer(0, 0xFFFFFFFF), uplink.METRIC, default=uplink.DEFAULT_METRIC
    )
    allow_local_source_nat: bool | None = optional(
        flag(),
        "only taken under routerd.net, where it does nothing either: IPv4SourceNAT says what is"
        " translated",
        name="allowLocalSourceNAT",
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: IPv4PolicyRoute = resource.spec
    yield from uplink.faults(spec, ())
    if spec.source_cidrs is None and spec.destination_cidrs is None:
        yield Fault((), NO_PACKETS)
    if spec.allow_local_source_nat is not None:
        message = "has no effect: IPv4SourceNAT says what is translated; leave it out"
        yield Fault(("allowLocalSourceNAT",), message, warning=resource.alias)


def intents(resource: Resource, site: Site) -> Iterator[Intent | BulkIntent | Waiting]:
    for one in uplink.uplinks_of(resource):
        yield from uplink.intents(one, site)


def uplinks(resource: Resource) -> Iterator[Uplink]:
    yield uplink.declared_by(resource, (), 4, resource.spec, "", resource.spec.outbound_interface)


KINDS = (
    Kind(
        IPv4PolicyRoute,
        "Packets from or to some prefixes leave over a link of their own.",
        (NFT.name, ROUTE.name, RULE.name),
        """\
outboundInterface: wan
table: 120
priority: 9000
mark: 0x120
sourceCIDRs: [192.168.1.64/28]
""",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=lambda resource: reaches(resource, 4),
        combiner="uplinks.nft_policy",
        cross_checks="uplinks.policy_checks",
        needs_facts=True,
        leads_out="outbound_interface",
        uplinks=uplinks,
    ),
)
