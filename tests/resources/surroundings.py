"""Everything that the example of a kind refers to, made of the examples of other kinds."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, IPv6Network
from typing import Any

from holdfast.config.document import SourceFile, parse
from holdfast.resources import registry
from holdfast.resources.facts import Facts, Lease, Verdict
from holdfast.resources.questions import lookups
from holdfast.resources.router import Router
from holdfast.resources.site import site_of
from holdfast.resources.spec.reference import example
from holdfast.resources.spec.shape import references
from tests.resources.routers import document

# Examples call their interfaces so; wan leads to the provider.
INTERFACES = {"lan": "eth1", "wan": "eth0", "dmz": "eth2"}
ADDRESSES = {
    "lan": ("192.168.1.1/24", "2001:db8:1::1/64"),
    "wan": ("203.0.113.2/24", "2001:db8:2::2/64"),
    "dmz": ("192.168.2.1/24", "2001:db8:3::1/64"),
}
# And their zones so.
ZONES = {"home": "lan", "uplink": "wan"}


def surrounded(name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """A whole document around the example of a kind, or around one with another spec."""
    one: dict[str, Any] = parse(SourceFile("example", example(name).encode())).data
    if spec is not None:
        one["spec"] = spec
    found: dict[tuple[str, str], dict[str, Any]] = {}
    if name != "Interface":
        for interface, ifname in INTERFACES.items():
            _add(found, "Interface", interface, {"ifname": ifname})
    if name not in ("IPv4StaticAddress", "IPv6StaticAddress"):
        for interface, (four, six) in ADDRESSES.items():
            if ("Interface", interface) in found:
                spec = {"interface": interface}
                _add(found, "IPv4StaticAddress", interface, spec | {"address": four})
                _add(found, "IPv6StaticAddress", interface, spec | {"address": six})
    if name in ("FirewallPolicy", "ExposeService"):
        for zone, interface in ZONES.items():
            _add(found, "Zone", zone, {"interfaces": [interface]})
    if name == "SelfAddressPolicy":  # a scope goes by it
        _add(found, "IPv6DHCPServer", "lan", {"listenInterfaces": ["lan"]})
        scope = {"server": "lan", "interface": "lan", "selfAddressPolicy": "example"}
        _add(found, "IPv6DHCPScope", "lan", scope)
    if name == "Zone":  # which is for others to go by
        _add(found, "FirewallPolicy", "all", {"input": {"default": "accept"}})
    if name.startswith("BGP") and name != "BGPInstance":
        _add(found, "BGPInstance", "all", {"localAS": 65001, "routerID": "192.0.2.10"})
    _follow(one, found)
    whole = document()
    whole["spec"]["resources"] = [*found.values(), one]
    return whole


def _add(
    found: dict[tuple[str, str], dict[str, Any]], kind: str, name: str, spec: dict[str, Any]
) -> None:
    version = registry.api_versions(kind)[0]
    found[kind, name] = {
        "apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def _follow(resource: dict[str, Any], found: dict[tuple[str, str], dict[str, Any]]) -> None:
    spec = registry.kind(resource["kind"]).spec.read(resource["spec"])
    for _, asked, name in references(spec):
        kinds = registry.referred(asked).split(" or ")
        if any((kind, name) in found for kind in kinds):
            continue
        kind = kinds[0]
        other: dict[str, Any] = parse(SourceFile("example", example(kind).encode())).data
        _add(found, kind, name, other["spec"])
        _follow(other, found)


def everything_known(router: Router) -> Facts:
    links = site_of(router.resources).links
    four, six = IPv4Address("203.0.113.1"), IPv6Address("fe80::1")
    lease = Lease((IPv4Interface("203.0.113.2/24"),), four, (IPv4Address("203.0.113.53"),))
    return Facts(
        leases4=dict.fromkeys(links, lease),
        leases6=dict.fromkeys(links, Lease((IPv6Interface("2001:db8:2::2/128"),))),
        sessions=dict.fromkeys(links, lease),
        delegations=dict.fromkeys(links, (IPv6Network("2001:db8:100::/48"),)),
        addresses=dict.fromkeys(links, (IPv4Interface("203.0.113.2/24"),)),
        gateways={(link, family): gw for link in links for family, gw in ((4, four), (6, six))},
        mtus=dict.fromkeys(links, 1500),
        verdicts={
            resource.name: Verdict(True, "answered")
            for resource in router.resources
            if resource.kind == "HealthCheck"
        },
        answers={lookup: (IPv6Address("2001:db8:a::1"),) for lookup in lookups(router)},
    )
