"""Addresses against each other: overlapping prefixes, duplicates, exclusive interfaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from holdfast.dataclass import dataclass, field
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.values import Network

Finding = tuple[Resource, Fault]


def check(site: Site) -> Iterator[Finding]:
    addresses = site.static_addresses
    yield from _duplicates(addresses)
    yield from _exclusive(addresses)
    domains = _domains(site.having(lambda kind: kind.link and kind.link.device))
    grouped: dict[tuple[int, str], list[Resource]] = defaultdict(list)
    for resource in addresses:
        address = resource.spec.address
        if not address.ip.is_link_local:  # every interface has the same link-local prefix
            domain = domains.get(resource.spec.interface, "")
            grouped[address.version, domain].append(resource)
    for group in grouped.values():
        yield from _overlaps(group)


def _domains(devices: Iterable[Resource]) -> dict[str, str]:
    """Interface name -> the VRF it is in. Prefixes in different VRFs do not meet."""
    interfaces = {device.name: device.spec for device in devices}
    vrfs = {name for name, spec in interfaces.items() if spec.type == "vrf"}
    members = {name: spec.master for name, spec in interfaces.items() if spec.master in vrfs}
    return members | {name: name for name in vrfs}


def _duplicates(addresses: Iterable[Resource]) -> Iterator[Finding]:
    seen: dict[tuple[str, str], Resource] = {}
    for resource in addresses:
        identity = resource.spec.interface, str(resource.spec.address)
        first = seen.setdefault(identity, resource)
        if first is not resource:
            yield resource, Fault(("address",), f"{identity[1]} is declared twice: {first}")


def _exclusive(addresses: Iterable[Resource]) -> Iterator[Finding]:
    grouped: dict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource in addresses:
        grouped[resource.kind, resource.spec.interface].append(resource)
    for group in grouped.values():
        holder = next((resource for resource in group if resource.spec.exclusive), None)
        for resource in group:
            if holder is not None and resource is not holder:
                message = f"{resource.spec.interface} is held exclusively by {holder}"
                yield resource, Fault(("interface",), message)


@dataclass(slots=True)
class _Level:
    """A prefix that holds the ones to come, and the first resource of each interface in it."""

    network: Network
    strict: dict[str, Resource] = field(default_factory=dict)
    lenient: dict[str, Resource] = field(default_factory=dict)  # those that allow overlap

    def add(self, resource: Resource) -> None:
        found = self.lenient if resource.spec.allow_overlap else self.strict
        found.setdefault(resource.spec.interface, resource)


def _overlaps(addresses: list[Resource]) -> Iterator[Finding]:
    """One finding for each address whose prefix meets one on another interface.

    In order of network and length, all prefixes around the current one are on a stack, so the
    work grows with the addresses and not with their pairs.
    """
    stack: list[_Level] = []
    for resource in sorted(addresses, key=_first_address):
        network = resource.spec.address.network
        while stack and stack[-1].network.broadcast_address < network.network_address:
            stack.pop()
        if not stack or stack[-1].network != network:
            stack.append(_Level(network))
        other = _elsewhere([level.strict for level in stack], resource.spec.interface)
        other = other or _elsewhere([level.lenient for level in stack], resource.spec.interface)
        if other is not None:
            yield _finding(resource, other)
        stack[-1].add(resource)


def _first_address(resource: Resource) -> tuple[int, int]:
    network = resource.spec.address.network
    return int(network.network_address), network.prefixlen


def _elsewhere(levels: Iterable[dict[str, Resource]], interface: str) -> Resource | None:
    """Someone on another interface; of two entries one at least is not on this one."""
    for level in levels:
        for name in islice(level, 2):
            if name != interface:
                return level[name]
    return None


def _finding(one: Resource, other: Resource) -> Finding:
    first, second = sorted((one, other), key=lambda resource: resource.index)
    message = (
        f"{second.spec.address.network} on {second.spec.interface} overlaps"
        f" {first.spec.address.network} on {first.spec.interface} ({first})"
    )
    allowed = first.spec.allow_overlap or second.spec.allow_overlap
    if not allowed:
        message += "; `allowOverlap` with a reason permits it"
    return second, Fault(("address",), message, warning=allowed)
