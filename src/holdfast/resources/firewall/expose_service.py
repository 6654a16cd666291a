"""ExposeService: a service behind the router that others may reach through it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds.nft import NFT
from holdfast.resources.firewall.zone import Zone
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against, nothing_alone
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    optional,
    reference,
    required,
)
from holdfast.resources.spec.values import EVERYTHING, Address, Network, address, prefix

_PORT = integer(1, 65535)


class ExposeService(Spec):
    family: str = optional(
        choice("ipv4", "ipv6"),
        "`ipv4`: the router's own address is the outside one, and packets are sent on;"
        " `ipv6`: packets to the internal address itself are let through",
        default="ipv4",
    )
    from_zone: str = required(reference(Zone), "from where it may be reached")
    via_interface: str | None = optional(
        link_reference(), "only through this interface of the zone"
    )
    protocol: str = required(choice("tcp", "udp"), "of the service")
    external_port: int = required(_PORT, "the port that others connect to")
    internal_address: Address = required(
        address(),
        "the host that has the service; of IPv6 also its last 64 bits alone, as `::20`, which are"
        " the same whatever prefix is delegated",
    )
    internal_port: int | None = optional(
        _PORT, "the port it has the service on; `externalPort` where not given"
    )
    sources: tuple[Network, ...] = optional(
        listed(prefix(), least=0), "only from these addresses; from all where not given", default=()
    )
    hairpin: bool = optional(
        flag(),
        "clients in other zones reach it at the outside address too, whatever `sources` says",
        default=False,
    )

    @property
    def version(self) -> int:
        return 4 if self.family == "ipv4" else 6

    @property
    def suffix(self) -> bool:
        """Whether the host is known by its last 64 bits only."""
        return self.version == 6 and int(self.internal_address) < 1 << 64

    @property
    def port(self) -> int:
        """Where the service listens."""
        return self.internal_port or self.external_port


def check(resource: Resource) -> Iterator[Fault]:
    spec: ExposeService = resource.spec
    host = spec.internal_address
    if host.version != spec.version:
        message = f"{host} is an IPv{host.version} address, and `family` is {spec.family}"
        yield Fault(("internalAddress",), message)
    elif host.is_multicast or host.is_unspecified or host.is_link_local or _loopback(spec):
        yield Fault(("internalAddress",), f"{host} cannot be reached through a router")
    for index, source in enumerate(spec.sources):
        if source.version != spec.version:
            message = f"{source} is IPv{source.version}, and `family` is {spec.family}"
            yield Fault(("sources", index), message)
    if spec.suffix and spec.port != spec.external_port:
        message = f"another port takes the whole address of the host, not only {host}"
        yield Fault(("internalPort",), message)
    if spec.version == 6 and spec.hairpin and spec.port != spec.external_port:
        message = (
            "clients on the host's own network send to it past the router, so they cannot be"
            " given another port; use one port, or leave hairpin out"
        )
        yield Fault(("hairpin",), message)


def _loopback(spec: ExposeService) -> bool:
    return spec.internal_address.is_loopback and not spec.suffix  # the end of an address may be ::1


def reaches(resource: Resource) -> Iterator[Reach]:
    """The end of an address is of a host in any network; and clients anywhere are sent on by
    `hairpin`, not only those of the zone."""
    spec: ExposeService = resource.spec
    if spec.suffix:
        yield Reach(("internalAddress",), EVERYTHING[6])
    if spec.hairpin:
        yield Reach(("hairpin",), EVERYTHING[spec.version])


KINDS = (
    Kind(
        ExposeService,
        "A service on a host behind the router that may be reached from outside: IPv4 by"
        " translating the router's own address, IPv6 by letting packets through to the host.",
        (NFT.name,),
        """\
fromZone: uplink
protocol: tcp
externalPort: 443
internalAddress: 192.168.160.20
internalPort: 8443
sources: [203.0.113.0/24]
hairpin: true
""",
        nothing_alone,
        check,
        open_to_others=nothing_against,
        reaches=reaches,
        groups=("firewall",),
        combiner="firewall.nft_dnat",
        goes_by_reach=True,
        cross_checks="firewall.firewall_checks",
        opens_ports=True,
    ),
)
