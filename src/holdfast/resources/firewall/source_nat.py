"""IPv4SourceNAT: what leaves through an interface leaves under other addresses."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from holdfast.engine.kinds.nft import NFT
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against, nothing_alone
from holdfast.resources.spec.repeats import repeated
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    link_reference,
    listed,
    nested,
    optional,
    required,
)
from holdfast.resources.spec.values import address, prefix

_PORT = integer(1, 65535)
_ADDRESS = address(4)


class PortMapping(Spec):
    type: str = optional(
        choice("auto", "preserve", "range"),
        "`auto`: the client's own port where it is free, else another; `preserve`: the client's"
        " own port or none, so that a flow whose port is taken does not get out; `range`: a port"
        " from `start` to `end`",
        default="auto",
    )
    start: int | None = optional(_PORT, "for `type: range`, the first port")
    end: int | None = optional(_PORT, "for `type: range`, the last port")


class Translation(Spec):
    type: str = required(
        choice("interfaceAddress", "address", "pool"),
        "`interfaceAddress`: whatever address the interface has at the time",
    )
    address: IPv4Address | None = optional(_ADDRESS, "for `type: address`")
    addresses: tuple[IPv4Address, ...] | None = optional(
        listed(_ADDRESS),
        "for `type: pool`, any number: a client keeps one of them as long as the pool is the same",
    )
    port_mapping: PortMapping = optional(
        nested(PortMapping), "ports of TCP and UDP", default=PortMapping()
    )


class IPv4SourceNAT(Spec):
    outbound_interface: str = required(link_reference(), "where packets leave")
    source_cidrs: tuple[IPv4Network, ...] = required(
        listed(prefix(4)),
        "whose packets; where resources overlap, the longer prefix prevails",
        name="sourceCIDRs",
    )
    translation: Translation = required(nested(Translation), "what their addresses become")


_NEEDED = {"address": "address", "pool": "addresses"}


def check(resource: Resource) -> Iterator[Fault]:
    translation: Translation = resource.spec.translation
    needed = _NEEDED.get(translation.type)
    for name in _NEEDED.values():
        here, given = ("translation", name), getattr(translation, name) is not None
        if name == needed and not given:
            yield Fault(here, f"is missing; `type: {translation.type}` needs it")
        if name != needed and given:
            yield Fault(here, f"has no meaning with `type: {translation.type}`")
    yield from repeated(translation.addresses or (), ("translation", "addresses"))
    yield from repeated(resource.spec.source_cidrs, ("sourceCIDRs",))
    yield from _check_ports(translation.port_mapping)


def _check_ports(ports: PortMapping) -> Iterator[Fault]:
    here = ("translation", "portMapping")
    ends = (("start", ports.start), ("end", ports.end))
    for name, value in ends:
        if ports.type == "range" and value is None:
            yield Fault((*here, name), "is missing; `type: range` needs it")
        if ports.type != "range" and value is not None:
            yield Fault((*here, name), f"has no meaning with `type: {ports.type}`")
    if ports.start is not None and ports.end is not None and ports.start > ports.end:
        yield Fault((*here, "end"), f"{ports.end} comes before the start, {ports.start}")


KINDS = (
    Kind(
        IPv4SourceNAT,
        "Packets that leave through an interface get another source address: the interface's own,"
        " a given one, or one of a pool.",
        (NFT.name,),
        """\
outboundInterface: wan
sourceCIDRs: [192.168.160.0/24]
translation:
  type: interfaceAddress
  portMapping: {type: range, start: 1024, end: 65535}
""",
        nothing_alone,
        check,
        open_to_others=nothing_against,
        combiner="firewall.nft_nat",
        cross_checks="firewall.firewall_checks",
        leads_out="outbound_interface",
    ),
)
