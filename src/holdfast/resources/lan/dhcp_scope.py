"""IPv4DHCPScope and IPv6DHCPScope: what the clients on one link are given."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import SERVICE
from holdfast.engine.kinds.sysctl import SYSCTL, sysctl
from holdfast.resources.lan import lease_time as times
from holdfast.resources.lan.dhcp_server import IPv4DHCPServer, IPv6DHCPServer
from holdfast.resources.lan.lease_time import lease_time
from holdfast.resources.lan.self_address_policy import SelfAddressPolicy
from holdfast.resources.lan.upstream import check_addresses
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    link_reference,
    listed,
    optional,
    parsed,
    reference,
    required,
)
from holdfast.resources.spec.values import address
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress, parse_suffix

_LEASE_TIME = "how long a client may keep its address without asking again"
_POLICY = "for `self`, which address that is"


class IPv4DHCPScope(Spec):
    server: str = required(reference(IPv4DHCPServer), "the server it belongs to")
    interface: str = required(
        link_reference(), "the link of the clients, one of the server's `listenInterfaces`"
    )
    range_start: IPv4Address = required(address(4), "the first address given to clients")
    range_end: IPv4Address = required(address(4), "the last one")
    lease_time: int = optional(lease_time(), _LEASE_TIME, default=times.DEFAULT)
    router_source: str = optional(
        choice("interfaceAddress", "static", "none"),
        "the default gateway: the router's address on the link, `router`, or none",
        default="interfaceAddress",
    )
    router: IPv4Address | None = optional(address(4), "for `routerSource: static`")
    dns_source: str = optional(
        choice("self", "dhcp4", "static", "none"),
        "the DNS servers: the router, those that `dnsInterface` was given, `dnsServers`, or none",
        default="self",
    )
    dns_interface: str | None = optional(link_reference(), "for `dnsSource: dhcp4`")
    dns_servers: tuple[IPv4Address, ...] = optional(
        listed(address(4), least=0), "for `dnsSource: static`", default=()
    )
    self_address_policy: str | None = optional(
        reference(SelfAddressPolicy), f"{_POLICY}; the router's address on the link if not given"
    )
    authoritative: bool | None = optional(
        flag(),
        "refuse at once what a client asks for and this server did not give: right where there is"
        " no other DHCP server. Holds for all scopes together",
    )


class IPv6DHCPScope(Spec):
    server: str = required(reference(IPv6DHCPServer), "the server it belongs to")
    delegated_address: str | None = optional(
        reference(IPv6DelegatedAddress),
        "whose link it is about; clients get addresses of every prefix there",
    )
    interface: str | None = optional(
        link_reference(), "the link, where its prefix is not a delegated one"
    )
    mode: str = optional(
        choice("stateless", "ra-only", "stateful"),
        "clients make their addresses themselves and ask for the rest by DHCP, make them and are"
        " told the rest by router advertisements alone, or are given addresses out of a range",
        default="stateless",
    )
    range_start: IPv6Address | None = optional(
        parsed(parse_suffix, "end of an IPv6 address"), "for `stateful`: the first"
    )
    range_end: IPv6Address | None = optional(
        parsed(parse_suffix, "end of an IPv6 address"), "for `stateful`: the last"
    )
    lease_time: int = optional(lease_time(), _LEASE_TIME, default=times.DEFAULT)
    default_route: bool = optional(
        flag(), "announce the router as a way to everywhere", default=True
    )
    dns_source: str = optional(
        choice("self", "static", "none"),
        "the DNS servers: the router, `dnsServers`, or none",
        default="self",
    )
    self_address_policy: str | None = optional(
        reference(SelfAddressPolicy),
        f"{_POLICY}; if not given, the delegated address, else the first on the link",
    )
    dns_servers: tuple[IPv6Address, ...] = optional(
        listed(address(6), least=0), "for `dnsSource: static`", default=()
    )


DHCPScope = IPv4DHCPScope | IPv6DHCPScope


def check_ipv4(resource: Resource) -> Iterator[Fault]:
    spec: IPv4DHCPScope = resource.spec
    if spec.range_start > spec.range_end:
        message = f"{spec.range_end} is before rangeStart {spec.range_start}: are they swapped?"
        yield Fault(("rangeEnd",), message)
    yield from _given_where_needed(
        ("routerSource", spec.router_source, "static", "router", spec.router),
        ("dnsSource", spec.dns_source, "dhcp4", "dnsInterface", spec.dns_interface),
        ("dnsSource", spec.dns_source, "static", "dnsServers", spec.dns_servers),
    )
    yield from _check_dns(spec)


def check_ipv6(resource: Resource) -> Iterator[Fault]:
    spec: IPv6DHCPScope = resource.spec
    if (spec.delegated_address is None) == (spec.interface is None):
        yield Fault((), "needs `delegatedAddress` or `interface`, and not both")
    yield from _given_where_needed(
        ("mode", spec.mode, "stateful", "rangeStart", spec.range_start),
        ("mode", spec.mode, "stateful", "rangeEnd", spec.range_end),
        ("dnsSource", spec.dns_source, "static", "dnsServers", spec.dns_servers),
    )
    first, last = spec.range_start, spec.range_end
    if spec.mode == "stateful" and first and last and first > last:
        message = f"{last} is before rangeStart {first}: are they swapped?"
        yield Fault(("rangeEnd",), message)
    yield from _check_dns(spec)


def _given_where_needed(*wanted: tuple[str, str, str, str, object]) -> Iterator[Fault]:
    for choice_name, chosen, value, name, given in wanted:
        if chosen == value and not given:
            yield Fault((name,), f"is missing; `{choice_name}: {value}` needs it")
        elif chosen != value and given:
            yield Fault((name,), f"has no meaning with `{choice_name}: {chosen}`")


def _check_dns(spec: DHCPScope) -> Iterator[Fault]:
    yield from check_addresses(("dnsServers",), spec.dns_servers)
    if spec.self_address_policy is not None and spec.dns_source != "self":
        message = f"has no meaning with `dnsSource: {spec.dns_source}`"
        yield Fault(("selfAddressPolicy",), message)


def link_of(scope: Resource, site: Site) -> str:
    """The link resource that a scope is about, "" where its delegated address is not known."""
    spec: DHCPScope = scope.spec
    if isinstance(spec, IPv6DHCPScope) and spec.delegated_address is not None:
        found = site.find(IPv6DelegatedAddress, spec.delegated_address)
        return found.spec.interface if found is not None else ""
    return spec.interface or ""


def refuse_advertisements(resource: Resource, site: Site) -> Iterator[Intent]:
    """A link with advertisements of ours takes none. Where the host does not forward, the kernel
    would take even our own: it makes itself an address of their prefix, for which dnsmasq goes on
    to announce a prefix that was withdrawn."""
    server = site.find(IPv6DHCPServer, resource.spec.server)
    dev = site.ifnames.get(link_of(resource, site), "")
    if dev and server is not None and server.spec.managed:
        # A slash stands for a dot within a name, as in sysctl(8).
        setting = sysctl(f"net.ipv6.conf.{dev.replace('.', '/')}.accept_ra", "0")
        needs = site.link_key(dev)
        yield Intent(resource.id, setting, resource.place, requires=needs, revert=True)


KINDS = (
    Kind(
        IPv4DHCPScope,
        "A range of IPv4 addresses for the clients on one link, with what they are told besides."
        " It has to lie in the subnet of an address that the router has there.",
        (FILE.name, SERVICE.name),
        """\
server: lan
interface: lan
rangeStart: 192.168.1.100
rangeEnd: 192.168.1.199
leaseTime: 12h
authoritative: true
""",
        nothing_alone,
        check_ipv4,
        cross_checks="lan.dhcp_checks",
        needs_facts=True,
    ),
    Kind(
        IPv6DHCPScope,
        "Router advertisements, and DHCP where asked for, on one link. The prefixes are those of"
        " the addresses that the router has there: a new one is announced, and the old one"
        " withdrawn, without a restart.",
        (FILE.name, SERVICE.name, SYSCTL.name),
        """\
server: lan
interface: lan
mode: stateful
rangeStart: ::1000
rangeEnd: ::1fff
""",
        refuse_advertisements,
        check_ipv6,
        cross_checks="lan.dhcp_checks",
        needs_facts=True,
    ),
)
