"""Which packets a policy is about: prefixes they come from and go to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import collapse_addresses
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.resources import nft_text
from holdfast.resources.resource import Reach, Resource
from holdfast.resources.spec.shape import Shape, listed
from holdfast.resources.spec.values import EVERYTHING, Network, prefix

SOURCES = "packets from these prefixes"
DESTINATIONS = "packets to these prefixes"
# Up to this many prefixes, or pairs of them, are compared one by one. While a table is replaced a
# set is without its elements for packets that are still in the old chains: up to one in 6 000 new
# flows found no way with a table replaced 40 times a second. Not more, because the kernel takes no
# rule of more than 4 KiB, and of `outside` there is one: 32 of IPv6 are too many.
_FEW = 16


def prefixes(family: int) -> Shape:
    return listed(prefix(family))


@dataclass(frozen=True, slots=True)
class Selection:
    """No prefixes at all stand for any."""

    family: int
    sources: tuple[Network, ...]
    destinations: tuple[Network, ...]

    def covers(self, other: Selection) -> bool:
        """Whether every packet that `other` selects is selected here too."""
        return _cover(self.sources, other.sources) and _cover(self.destinations, other.destinations)

    def overlaps(self, other: Selection) -> bool:
        """Whether some packet could be selected by both."""
        return _meet(self.sources, other.sources) and _meet(self.destinations, other.destinations)

    @property
    def _few(self) -> bool:
        return max(len(self.sources), 1) * max(len(self.destinations), 1) <= _FEW

    def sets(self, name: str) -> Iterator[str]:
        """The nftables sets that `rules` and `outside` refer to."""
        kind = "ipv4_addr" if self.family == 4 else "ipv6_addr"
        for side, found in (("sources", self.sources), ("destinations", self.destinations)):
            if found and not self._few:
                elements = (str(network) for network in found)
                yield nft_text.named_set(f"{name}_{side}", kind, elements, interval=True)

    def rules(self, name: str, verdict: str) -> Iterator[str]:
        """At most one of them matches a packet."""
        for source in self._matches("saddr", self.sources, f"{name}_sources"):
            for target in self._matches("daddr", self.destinations, f"{name}_destinations"):
                yield f"{source}{target}{verdict}"

    def outside(self, name: str) -> str:
        """A match of packets that come from none of the sources; of all where any will do."""
        matches = self._matches("saddr !=", self.sources, f"{name}_sources")
        return "".join(matches) if self.sources else ""

    def _matches(self, field: str, found: tuple[Network, ...], name: str) -> list[str]:
        word = "ip" if self.family == 4 else "ip6"
        if not found:
            return [""]
        named = [str(network) for network in found] if self._few else [f"@{name}"]
        return [f"{word} {field} {one} " for one in named]


def selection(spec: Any, family: int) -> Selection:
    """Of a spec with source_cidrs and destination_cidrs."""
    return Selection(family, _whole(spec.source_cidrs), _whole(spec.destination_cidrs))


def reaches(resource: Resource, family: int) -> Iterator[Reach]:
    """A policy without prefixes is for every packet."""
    if not resource.spec.source_cidrs and not resource.spec.destination_cidrs:
        yield Reach(("sourceCIDRs",), EVERYTHING[family])


def _whole(found: Sequence[Network] | None) -> tuple[Network, ...]:
    # nftables takes neither overlapping elements nor, in version 1.0.6, 0.0.0.0/0 among them.
    merged: tuple[Network, ...] = tuple(collapse_addresses(found or ()))  # type: ignore[type-var]
    return () if any(network.prefixlen == 0 for network in merged) else merged


def _cover(mine: tuple[Network, ...], others: tuple[Network, ...]) -> bool:
    if not mine:
        return True
    return bool(others) and all(
        any(other.subnet_of(network) for network in mine)  # type: ignore[arg-type]
        for other in others
    )


def _meet(mine: tuple[Network, ...], others: tuple[Network, ...]) -> bool:
    if not mine or not others:
        return True
    return any(one.overlaps(other) for one in mine for other in others)
