"""PathMTUPolicy: the largest packet that gets from one link to others, told to clients."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.service import SERVICE
from holdfast.resources import registry
from holdfast.resources.lan.dhcp_scope import IPv6DHCPScope
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.repeats import repeated
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    nested,
    optional,
    reference,
    required,
)

IPV6_LEAST_MTU = 1280


class Mtu(Spec):
    source: str = optional(
        choice("minInterface", "static"),
        "`minInterface`: the smallest MTU of all the links named here; `static`: `value`",
        default="minInterface",
    )
    value: int | None = optional(integer(IPV6_LEAST_MTU, 65535), "for `source: static`, bytes")


class Ipv6Ra(Spec):
    enabled: bool = optional(flag(), "tell clients the MTU in router advertisements", default=False)
    scope: str | None = optional(
        reference(IPv6DHCPScope), "whose advertisements carry it; needed where `enabled`"
    )


class TcpMssClamp(Spec):
    enabled: bool = optional(
        flag(), "lower the MSS in TCP handshakes, both ways, to what the MTU carries", default=False
    )
    families: tuple[str, ...] = optional(
        listed(choice("ipv4", "ipv6")), "for which packets", default=("ipv4", "ipv6")
    )


class PathMTUPolicy(Spec):
    from_interface: str = required(link_reference(), "the link that the clients are on")
    to_interfaces: tuple[str, ...] = required(
        listed(link_reference()), "the links that their packets leave through"
    )
    mtu: Mtu = optional(nested(Mtu), "how large packets may be", default=Mtu())
    ipv6_ra: Ipv6Ra = optional(
        nested(Ipv6Ra), "router advertisements", default=Ipv6Ra(), name="ipv6RA"
    )
    tcp_mss_clamp: TcpMssClamp = optional(
        nested(TcpMssClamp), "TCP handshakes", default=TcpMssClamp(), name="tcpMSSClamp"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: PathMTUPolicy = resource.spec
    if spec.mtu.source == "static" and spec.mtu.value is None:
        yield Fault(("mtu", "value"), "is missing; `source: static` needs it")
    if spec.mtu.source != "static" and spec.mtu.value is not None:
        yield Fault(("mtu", "value"), "has no meaning without `source: static`")
    if spec.ipv6_ra.enabled and spec.ipv6_ra.scope is None:
        yield Fault(("ipv6RA", "scope"), "is missing; say whose advertisements carry the MTU")
    for index, name in enumerate(spec.to_interfaces):
        if name == spec.from_interface:
            yield Fault(("toInterfaces", index), f"{name} is `fromInterface` already")
    yield from repeated(spec.to_interfaces, ("toInterfaces",))
    if not spec.ipv6_ra.enabled and not spec.tcp_mss_clamp.enabled:
        message = "does nothing: enable `ipv6RA` or `tcpMSSClamp`, or both"
        yield Fault((), message, warning=True)


def link_mtu(name: str, site: Site) -> int:
    """What the link of a resource of a link kind carries, as far as can be told beforehand."""
    ifname = site.ifname(name)
    link = site.links[ifname]
    declared: int | None = link.spec.mtu
    seen = site.facts.mtus.get(ifname)
    kind = registry.kind(link.kind).link
    default = kind.mtu if kind is not None else 0
    if ifname in site.interfaces:
        return declared or seen or default
    # The far end of a PPP session may have agreed to less than was asked for.
    wanted = declared or default
    return min(wanted, seen) if seen else wanted


def effective_mtu(policy: Resource, site: Site) -> int:
    """The largest packet that fits through every link of a PathMTUPolicy."""
    spec: PathMTUPolicy = policy.spec
    if spec.mtu.value is not None:
        return spec.mtu.value
    return min(link_mtu(name, site) for name in (spec.from_interface, *spec.to_interfaces))


def ra_mtu(policy: Resource, site: Site) -> int:
    """The MTU to announce in router advertisements, 0 where a PathMTUPolicy asks for none.

    Clients ignore one that is larger than their link's own, or smaller than IPv6 allows.
    """
    spec: PathMTUPolicy = policy.spec
    if not spec.ipv6_ra.enabled:
        return 0
    fits = min(effective_mtu(policy, site), link_mtu(spec.from_interface, site))
    return max(IPV6_LEAST_MTU, fits)


def against_others(resource: Resource) -> Iterator[Fault]:
    spec: PathMTUPolicy = resource.spec
    if spec.ipv6_ra.enabled:
        message = "leads to a program and its file: only the startup file can say so"
        yield Fault(("ipv6RA", "enabled"), message)


KINDS = (
    Kind(
        PathMTUPolicy,
        "How large packets may be between one link and others: announced to IPv6 clients, and"
        " kept to by TCP both ways.",
        (NFT.name, FILE.name, SERVICE.name),
        """\
fromInterface: lan
toInterfaces: [wan]
mtu: {source: static, value: 1454}
tcpMSSClamp: {enabled: true, families: [ipv4]}
""",
        nothing_alone,
        check,
        open_to_others=against_others,
        combiner="firewall.nft_mss",
        cross_checks="firewall.firewall_checks",
        needs_facts=True,
    ),
)
