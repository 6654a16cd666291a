"""Every resource kind by name: the groups it may be declared under and the module it lives in.

Modules are imported only for kinds a file holds, since every pass starts a fresh process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.resources.resource import Declared, Finding, Kind
    from holdfast.resources.site import Site

VERSION = "v1alpha1"
DOMAINS = ("holdfast.dev", "routerd.net")  # the second is an alias of the first
ALIAS = DOMAINS[1]


# Kind -> groups, of which the first is the one to use, and module.
REGISTRY: dict[str, tuple[tuple[str, ...], str]] = {
    "Interface": (("net",), "links.interface"),
    "PPPoEInterface": (("net",), "wan.pppoe_interface"),
    "DSLiteTunnel": (("net",), "wan.dslite_tunnel"),
    "WireGuardInterface": (("net",), "links.wireguard_interface"),
    "IPv4StaticAddress": (("net",), "links.static_address"),
    "IPv6StaticAddress": (("net",), "links.static_address"),
    "IPv4DHCPAddress": (("net",), "wan.dhcp_address"),
    "IPv6DHCPAddress": (("net",), "wan.dhcp_address"),
    "IPv6PrefixDelegation": (("net",), "wan.prefix_delegation"),
    "IPv6DelegatedAddress": (("net",), "wan.delegated_address"),
    "IPv4Route": (("net",), "routes.route"),
    "IPv6Route": (("net",), "routes.route"),
    "RouteList": (("net",), "routes.route_list"),
    "RoutingRule": (("net",), "routes.routing_rule"),
    "Neighbour": (("net",), "links.neighbour"),
    "IPv4PolicyRoute": (("net",), "policy.policy_route"),
    "IPv4PolicyRouteSet": (("net",), "policy.policy_route_set"),
    "IPv4DefaultRoutePolicy": (("net",), "policy.default_route_policy"),
    "IPv6DefaultRoutePolicy": (("net",), "policy.default_route_policy"),
    "IPv4ReversePathFilter": (("net",), "policy.reverse_path_filter"),
    "HealthCheck": (("net",), "policy.health_check"),
    "Sysctl": (("system",), "system.sysctl"),
    "NTPClient": (("system",), "system.ntp_client"),
    "LogSink": (("system",), "system.log_sink"),
    "IPv4SourceNAT": (("net",), "firewall.source_nat"),
    "PathMTUPolicy": (("net",), "firewall.path_mtu"),
    "Zone": (("firewall",), "firewall.zone"),
    "FirewallPolicy": (("firewall",), "firewall.firewall_policy"),
    "ExposeService": (("firewall",), "firewall.expose_service"),
    "IPv4DHCPServer": (("net",), "lan.dhcp_server"),
    "IPv4DHCPScope": (("net",), "lan.dhcp_scope"),
    "IPv4DHCPReservation": (("net",), "lan.dhcp_reservation"),
    "IPv6DHCPServer": (("net",), "lan.dhcp_server"),
    "IPv6DHCPScope": (("net",), "lan.dhcp_scope"),
    "IPv6DHCPReservation": (("net",), "lan.dhcp_reservation"),
    "SelfAddressPolicy": (("net",), "lan.self_address_policy"),
    "DNSConditionalForwarder": (("net",), "lan.dns_forwarder"),
    # The alias system's validator demands net, its documentation says system.
    "Hostname": (("system", "net"), "system.hostname"),
    "Plugin": (("plugin",), "dynamic.plugin"),
    "DynamicConfigSource": (("plugin",), "dynamic.dynamic_config_source"),
    "DynamicOverridePolicy": (("config",), "dynamic.dynamic_override_policy"),
    "ProviderActionPolicy": (("hybrid",), "dynamic.provider_action_policy"),
}

# Kinds that say what others may do, run programs of the administrator's, or decide where Holdfast's
# own events go. No part may contribute one, and none can be masked: a source cannot grant itself
# anything.
STARTUP_ONLY: frozenset[str] = frozenset(
    {"Plugin", "DynamicConfigSource", "DynamicOverridePolicy", "ProviderActionPolicy", "LogSink"}
)

# Documents that are handed in by themselves and are no resources of a Router, and how.
DOCUMENTS: dict[str, str] = {
    "DynamicConfigPart": "`holdfast dynamic put FILE` hands one in",
    "DynamicConfigDirective": "directives stand in a DynamicConfigPart",
}

# Modules that make one artifact out of many resources, and the kinds they look at: any one of them
# in a file is a reason to ask. Each has a function `combine(site)`.
COMBINERS: dict[str, tuple[str, ...]] = {
    "lan.dnsmasq": ("IPv4DHCPServer", "IPv6DHCPServer", "DNSConditionalForwarder"),
    "firewall.nft_filter": ("FirewallPolicy",),
    "firewall.nft_dnat": ("ExposeService",),
    "firewall.nft_nat": ("IPv4SourceNAT",),
    "firewall.nft_mss": ("PathMTUPolicy",),
    "policy.nft_policy": ("IPv4PolicyRoute", "IPv4PolicyRouteSet"),
    "policy.nft_default_route": ("IPv4DefaultRoutePolicy", "IPv6DefaultRoutePolicy"),
    "wan.dhcpcd": ("IPv4DHCPAddress", "IPv6DHCPAddress", "IPv6PrefixDelegation"),
}

# Modules that check resources against each other, and the kinds that give them a reason to. Each
# has a function `check(site)`; references may lead nowhere there.
CHECKS: dict[str, tuple[str, ...]] = {
    "lan.dhcp_checks": (
        "IPv4DHCPServer",
        "IPv6DHCPServer",
        "IPv4DHCPScope",
        "IPv6DHCPScope",
        "IPv4DHCPReservation",
        "IPv6DHCPReservation",
        "DNSConditionalForwarder",
    ),
    "policy.policy_checks": (
        "IPv4PolicyRoute",
        "IPv4PolicyRouteSet",
        "IPv4DefaultRoutePolicy",
        "IPv6DefaultRoutePolicy",
        "IPv4ReversePathFilter",
        "HealthCheck",
    ),
    "firewall.firewall_checks": (
        "Zone",
        "FirewallPolicy",
        "ExposeService",
        "IPv4SourceNAT",
        "PathMTUPolicy",
    ),
    "links.wireguard_checks": ("WireGuardInterface",),
    "dynamic.dynamic_checks": ("DynamicConfigSource", "DynamicOverridePolicy"),
    "dynamic.provider_action_checks": ("ProviderActionPolicy",),
    "wan.dhcp_client_checks": (
        "IPv4DHCPAddress",
        "IPv6DHCPAddress",
        "IPv6PrefixDelegation",
        "IPv6DelegatedAddress",
    ),
}

# Kinds that depend on facts: a file with none of them is read without asking for any.
FACT_KINDS: frozenset[str] = frozenset(
    {
        "IPv4DHCPAddress",
        "IPv6DHCPAddress",
        "IPv6PrefixDelegation",
        "IPv6DelegatedAddress",
        "DSLiteTunnel",
        "WireGuardInterface",
        "IPv4DHCPServer",
        "IPv4DHCPScope",
        "IPv6DHCPScope",
        "PathMTUPolicy",
        "DNSConditionalForwarder",
        "IPv4PolicyRoute",
        "IPv4PolicyRouteSet",
        "IPv4DefaultRoutePolicy",
        "IPv6DefaultRoutePolicy",
        "HealthCheck",
        "NTPClient",
    }
)


@cache  # asked for every resource, and importlib takes its time also for what is loaded
def kind(name: str) -> Kind:
    module = import_module(f"holdfast.resources.{REGISTRY[name][1]}")
    found: Kind = module.KINDS[name]
    return found


def combiners(
    kinds: Collection[str],
) -> Iterator[tuple[tuple[str, ...], Callable[[Site], Iterable[Declared]]]]:
    """The combiners that have something to say of a file with these kinds, and what kinds they
    look at."""
    for module, wanted in COMBINERS.items():
        if any(name in kinds for name in wanted):
            yield wanted, import_module(f"holdfast.resources.{module}").combine


def checks(kinds: Collection[str]) -> Iterator[Callable[[Site], Iterable[Finding]]]:
    """The checks across resources that a file with these kinds needs."""
    for module, wanted in CHECKS.items():
        if any(name in kinds for name in wanted):
            yield import_module(f"holdfast.resources.{module}").check


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
    if name in DOCUMENTS:
        return f"{name} is no resource of a Router: {DOCUMENTS[name]}"
    from holdfast.resources.nearest import nearest  # only mistakes need it

    known = nearest(name, REGISTRY)
    return f"unknown kind {name!r}{known or '; supported are ' + ', '.join(REGISTRY)}"
