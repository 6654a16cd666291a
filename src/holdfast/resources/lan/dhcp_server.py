"""IPv4DHCPServer and IPv6DHCPServer: who serves the LAN, where, and whether it answers DNS too.

All of them are one dnsmasq; `resources/lan/dnsmasq.py` writes its files.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import SERVICE
from holdfast.resources.lan.upstream import check_servers
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    nested,
    optional,
)
from holdfast.resources.spec.values import Address, address

_SERVER = "the program. `kea` and `dhcpd` only under routerd.net, and dnsmasq serves for them"
_MANAGED = "false: somebody else runs the server, and nothing is done for it or its scopes"
_LISTEN = (
    "the links it serves; if not given, those of its scopes. `[]`: none, DNS for the router itself"
    " alone"
)
# What a cache of dnsmasq may hold at most: it refuses more.
_CACHE_MAX = 10_000


class Dns(Spec):
    enabled: bool = optional(flag(), "answer DNS queries on the links it serves", default=True)
    upstream_source: str = optional(
        choice("dhcp4", "dhcp6", "static", "system", "none"),
        "where questions are sent on to: the servers that `upstreamInterface` was given by DHCP or"
        " PPP, or by DHCPv6, `upstreamServers`, those in /etc/resolv.conf, or nowhere",
        default="system",
    )
    upstream_interface: str | None = optional(link_reference(), "for `dhcp4` and `dhcp6`")
    upstream_servers: tuple[Address, ...] = optional(
        listed(address(), least=0), "for `static`", default=()
    )
    cache_size: int | None = optional(
        integer(0, _CACHE_MAX), "how many names are remembered; dnsmasq's own default is 150"
    )


class IPv4DHCPServer(Spec):
    server: str = optional(choice("dnsmasq", "kea", "dhcpd"), _SERVER, default="dnsmasq")
    managed: bool = optional(flag(), _MANAGED, default=True)
    listen_interfaces: tuple[str, ...] | None = optional(listed(link_reference(), least=0), _LISTEN)
    dns: Dns | None = optional(
        nested(Dns),
        "without it, DNS is answered where a scope names the router as DNS server (`dnsSource:"
        " self`)",
    )


class IPv6DHCPServer(Spec):
    server: str = optional(choice("dnsmasq", "kea", "dhcpd"), _SERVER, default="dnsmasq")
    managed: bool = optional(flag(), _MANAGED, default=True)
    listen_interfaces: tuple[str, ...] | None = optional(listed(link_reference(), least=0), _LISTEN)


DHCPServer = IPv4DHCPServer | IPv6DHCPServer


def check(resource: Resource) -> Iterator[Fault]:
    spec: DHCPServer = resource.spec
    if spec.server != "dnsmasq":
        message = f"Holdfast runs dnsmasq, not {spec.server}"
        message += ": dnsmasq is used instead" if resource.alias else "; write `server: dnsmasq`"
        yield Fault(("server",), message, warning=resource.alias)
    links = spec.listen_interfaces or ()
    for index, name in enumerate(links):
        if name in links[:index]:
            yield Fault(("listenInterfaces", index), f"{name} is listed twice")
    if isinstance(spec, IPv4DHCPServer) and spec.dns is not None:
        dns = spec.dns
        yield from check_servers(
            ("dns",), dns.upstream_source, dns.upstream_interface, dns.upstream_servers
        )


KINDS = (
    Kind(
        IPv4DHCPServer,
        "A DHCP server for IPv4, which may answer DNS too. All servers of a file are one dnsmasq"
        " (`holdfast-dnsmasq.service`), which reads nothing but the files Holdfast writes under"
        " /etc/holdfast; leases are kept in /var/lib/holdfast/dnsmasq.leases.",
        (FILE.name, SERVICE.name),
        """\
listenInterfaces: [lan]
dns:
  upstreamSource: static
  upstreamServers: [192.0.2.53]
""",
        nothing_alone,
        check,
        combiner="lan.dnsmasq",
        cross_checks="lan.dhcp_checks",
        needs_facts=True,
        alias_asks_managed=True,
    ),
    Kind(
        IPv6DHCPServer,
        "A server of router advertisements and DHCP for IPv6, by the same dnsmasq as"
        " IPv4DHCPServer.",
        (FILE.name, SERVICE.name),
        "listenInterfaces: [lan]\n",
        nothing_alone,
        check,
        combiner="lan.dnsmasq",
        cross_checks="lan.dhcp_checks",
        alias_asks_managed=True,
    ),
)
