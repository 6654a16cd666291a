"""What a prefix is told with: fields that several kinds have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from holdfast.config.document import Location
from holdfast.engine.kinds import bgp_attributes
from holdfast.engine.kinds.bgp_attributes import Attributes
from holdfast.resources.resource import Fault
from holdfast.resources.routing.values import community, large_community
from holdfast.resources.spec.shape import Spec, integer, listed, optional
from holdfast.resources.spec.values import Address, address

_MOST = 0xFFFFFFFF
PREPEND_MAX = 10  # FRR takes no more numbers in a line
_COMMUNITIES_MAX = 32  # so that the line stays below 1000 bytes


class PathAttributes(Spec):
    local_preference: int | None = optional(
        integer(0, _MOST), "higher is preferred within an AS; not told to others"
    )
    med: int | None = optional(
        integer(0, _MOST), "lower is preferred by a neighbouring AS; 0 is a value of its own"
    )
    communities: tuple[str, ...] = optional(
        listed(community(), least=0), "as in 65001:100 or `no-export`", default=()
    )
    large_communities: tuple[str, ...] = optional(
        listed(large_community(), least=0), "as in 65001:1:100", default=()
    )
    next_hop: Address | None = optional(address(), "told instead of the own address of the session")
    prepend: int = optional(
        integer(0, PREPEND_MAX), "how often the own AS stands in the path besides", default=0
    )


def check(spec: PathAttributes, families: set[int], at: Location = ()) -> Iterator[Fault]:
    """families: of the prefixes that are told so."""
    for name, given in (
        ("communities", spec.communities),
        ("largeCommunities", spec.large_communities),
    ):
        if len(given) > _COMMUNITIES_MAX:
            message = f"are {len(given)}: {_COMMUNITIES_MAX} at most"
            yield Fault((*at, name), message)
        seen: set[str] = set()
        for index, one in enumerate(given):
            if one in seen:
                yield Fault((*at, name, index), f"{one} is there already")
            seen.add(one)
    hop = spec.next_hop
    if hop is None:
        return
    if hop.is_multicast or hop.is_unspecified or hop.is_loopback:
        yield Fault((*at, "nextHop"), f"{hop} cannot be a next hop")
    for family in sorted(families - {hop.version}):
        message = f"{hop} is no next hop of IPv{family} prefixes: declare them by themselves"
        yield Fault((*at, "nextHop"), message)


def attributes(spec: PathAttributes, local_as: int) -> Attributes:
    """local_as: 0 where it is not known, which `prepend` needs (bgp_checks)."""
    return _attributes(
        spec.local_preference,
        spec.med,
        spec.communities,
        spec.large_communities,
        spec.next_hop,
        (local_as,) * spec.prepend,
    )


@lru_cache(maxsize=1024)
def _attributes(
    local_preference: int | None,
    med: int | None,
    communities: tuple[str, ...],
    large_communities: tuple[str, ...],
    next_hop: Address | None,
    prepend: tuple[int, ...],
) -> Attributes:
    """One object of many prefixes that are told alike: it is compared by identity first."""
    return Attributes(
        local_preference,
        med,
        bgp_attributes.communities(communities),
        bgp_attributes.large_communities(large_communities),
        next_hop=str(next_hop or ""),
        prepend=prepend,
    )
