"""Every resource kind by name: the groups it may be declared under and the module it lives in.

Modules are imported only for kinds a file holds, since every pass starts a fresh process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.resources.resource import Kind

VERSION = "v1alpha1"
DOMAINS = ("holdfast.dev", "routerd.net")  # the second is an alias of the first
ALIAS = DOMAINS[1]


# Kind -> groups, of which the first is the one to use, and module.
REGISTRY: dict[str, tuple[tuple[str, ...], str]] = {
    "Interface": (("net",), "interface"),
    "IPv4StaticAddress": (("net",), "static_address"),
    "IPv6StaticAddress": (("net",), "static_address"),
    "IPv4Route": (("net",), "route"),
    "IPv6Route": (("net",), "route"),
    "RouteList": (("net",), "route_list"),
    "RoutingRule": (("net",), "routing_rule"),
    "Neighbour": (("net",), "neighbour"),
    "Sysctl": (("system",), "sysctl"),
    # The alias system's validator demands net, its documentation says system.
    "Hostname": (("system", "net"), "hostname"),
}

# Kinds of the alias system that files may hold and Holdfast does not know how to apply yet.
NOT_YET = (
    "LogSink", "NTPClient", "PPPoEInterface", "IPv4DHCPAddress", "IPv4DHCPServer",
    "IPv4DHCPScope", "IPv6DHCPAddress", "IPv6PrefixDelegation", "IPv6DelegatedAddress",
    "IPv6DHCPServer", "IPv6DHCPScope", "SelfAddressPolicy", "DNSConditionalForwarder",
    "DSLiteTunnel", "HealthCheck", "IPv4DefaultRoutePolicy", "IPv4SourceNAT", "IPv4PolicyRoute",
    "IPv4PolicyRouteSet", "IPv4ReversePathFilter", "PathMTUPolicy", "Zone", "FirewallPolicy",
    "ExposeService",
)  # fmt: skip


def kind(name: str) -> Kind:
    module = import_module(f"holdfast.resources.{REGISTRY[name][1]}")
    found: Kind = module.KINDS[name]
    return found


def router_versions() -> list[str]:
    return [f"{domain}/{VERSION}" for domain in DOMAINS]


def api_versions(kind_name: str) -> list[str]:
    """Under which groups a kind may be declared; the first is the one to use."""
    groups = REGISTRY[kind_name][0]
    return [f"{group}.{domain}/{VERSION}" for domain in DOMAINS for group in groups]


def kind_trouble(name: str) -> str:
    """What is wrong with a kind, empty if nothing is."""
    if name in REGISTRY:
        return ""
    if name in NOT_YET:
        return f"kind {name} is known from routerd.net but not supported yet"
    from holdfast.resources.nearest import nearest  # only mistakes need it

    known = nearest(name, (*REGISTRY, *NOT_YET))
    return f"unknown kind {name!r}{known or '; supported are ' + ', '.join(REGISTRY)}"
