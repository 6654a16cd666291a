"""The router's own addresses on a link: declared, delegated, or seen there."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface, IPv6Network

from holdfast.resources.lan.upstream import Unknown
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Interface
from holdfast.resources.wan.delegated_address import IPv6DelegatedAddress, Missing, resolve


def on_link(dev: str, family: int, site: Site) -> Iterator[Interface]:
    """Declared ones first, each once."""
    told: set[Interface] = set()
    for found in (site.addresses(dev), site.facts.addresses.get(dev, ())):
        for one in found:
            if one.version == family and one not in told:
                told.add(one)
                yield one


def joined(network: IPv6Network, suffix: IPv6Address) -> IPv6Address:
    return IPv6Address(int(network.network_address) | int(suffix))


def delegated(name: str, site: Site) -> IPv6Interface:
    """The address that an IPv6DelegatedAddress stands for. Raises Unknown."""
    found = resolve(site.get(IPv6DelegatedAddress, name), site)
    if isinstance(found, Missing):
        raise Unknown(found.reason, keeps=found.keeps)
    return found


def missing(dev: str, what: str, site: Site) -> Unknown:
    """Why an address on a link cannot be said: it has none such, or nobody has looked."""
    return Unknown(f"waits for {what}", keeps=dev not in site.facts.addresses)
