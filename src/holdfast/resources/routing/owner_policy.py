"""What an owner of the routing API may declare, and how owners stand to each other.

Policies are values, and what is said here is said of canonical prefixes: whoever asks reads them
with `values.parse_prefix`, which refuses host bits and brings IPv6 into one spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

from holdfast.dataclass import dataclass, field
from holdfast.resources.spec.values import Address, Network

# A subnet of a site, not a whole region and not a host.
SUBNET_SHORTEST, SUBNET_LONGEST = 8, 28


class PrefixType(StrEnum):
    HOST_ONLY = "host_only"  # single addresses
    SUBNET = "subnet"  # IPv4 /8 to /28, IPv6 anything but a single address
    ANY = "any"


class Overlap(StrEnum):
    """What becomes of a prefix that lies within, or around, one of another owner's."""

    ALLOWED = "allowed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ranges:
    """AS numbers, from and to."""

    spans: tuple[tuple[int, int], ...] = ()

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and any(low <= number <= high for low, high in self.spans)

    def __str__(self) -> str:
        said = (str(low) if low == high else f"{low}-{high}" for low, high in self.spans)
        return ", ".join(said) or "none"


@dataclass(frozen=True, slots=True)
class OwnerPolicy:
    """What one owner may declare. None: no limit; (): nothing at all."""

    prefix_type: PrefixType = PrefixType.HOST_ONLY
    cidrs: tuple[Network, ...] | None = None
    peers: tuple[Network, ...] | None = None
    as_numbers: Ranges | None = None
    interfaces: tuple[str, ...] | None = None  # kernel names; `*` stands for any letters
    instance: bool = False  # it may say the AS number: a change resets the sessions of all
    max_prefixes: int | None = None
    overlap: Overlap = Overlap.REFUSED
    overrides: bool = False  # it takes what others hold, and gives it back when it is done


def refused_prefix(policy: OwnerPolicy, network: Network) -> str:
    """Why an owner may not tell a prefix; "" if it may.

    |           | IPv4     | IPv6     |
    |-----------|----------|----------|
    | host_only | /32      | /128     |
    | subnet    | /8 - /28 | not /128 |
    | any       | any      | any      |

    Beside that, it has to lie within one of `cidrs`.
    """
    length, bits = network.prefixlen, network.max_prefixlen
    match policy.prefix_type:
        case PrefixType.HOST_ONLY if length != bits:
            return f"{network} is no single address, which would be /{bits}"
        case PrefixType.SUBNET if network.version == 6 and length == bits:
            return f"{network} is a single address, and subnets are allowed"
        case PrefixType.SUBNET if network.version == 4 and not (
            SUBNET_SHORTEST <= length <= SUBNET_LONGEST
        ):
            return f"{network} is no subnet from /{SUBNET_SHORTEST} to /{SUBNET_LONGEST}"
        case _:
            return refused_network(policy.cidrs, network)


def refused_network(allowed: Iterable[Network] | None, network: Network) -> str:
    """Why a network is not within those that are allowed. An IPv4 address that is written as one of
    IPv6 lies in no IPv4 network: it is another prefix for BGP."""
    if allowed is None or any(_within(network, one) for one in allowed):
        return ""
    shown = ", ".join(map(str, allowed)) or "none"
    return f"{network} is not within what is allowed: {shown}"


def _within(network: Network, other: Network) -> bool:
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]  # of one family


def refused_count(policy: OwnerPolicy, count: int) -> str:
    """Why so many prefixes, those that are there included, are too many."""
    if policy.max_prefixes is None or count <= policy.max_prefixes:
        return ""
    return f"{count} prefixes are more than {policy.max_prefixes}"


def refused_peer(policy: OwnerPolicy, peer: Address, remote_as: int | None) -> str:
    """remote_as: None where only `internal` or `external` is said, which limits cannot judge."""
    if policy.peers is not None and not any(
        peer.version == one.version and peer in one for one in policy.peers
    ):
        shown = ", ".join(map(str, policy.peers)) or "none"
        return f"peer {peer} is not among those allowed: {shown}"
    return refused_as(policy, remote_as)


def refused_as(policy: OwnerPolicy, number: int | None) -> str:
    if policy.as_numbers is None or number in policy.as_numbers:
        return ""
    said = f"AS {number}" if number is not None else "an AS that is not said by number"
    return f"{said} is not among those allowed: {policy.as_numbers}"


def refused_interface(policy: OwnerPolicy, ifname: str) -> str:
    if policy.interfaces is None or any(fnmatchcase(ifname, one) for one in policy.interfaces):
        return ""
    return (
        f"interface {ifname} is not among those allowed: {', '.join(policy.interfaces) or 'none'}"
    )


def refused_instance(policy: OwnerPolicy) -> str:
    return "" if policy.instance else "the AS number is not this owner's to say"


@dataclass(frozen=True, slots=True)
class Held:
    """What stands in the way of a declaration."""

    what: str  # "203.0.113.0/24"
    owner: str
    exact: bool  # the very same, not one that overlaps


def _enclosing(network: Network) -> Iterator[tuple[int, int, int]]:
    number, bits = int(network.network_address), network.max_prefixlen
    for length in range(network.prefixlen, -1, -1):
        yield network.version, length, number >> (bits - length)


@dataclass(slots=True)
class PrefixHolders:
    """Which owner holds which prefix. An owner may hold one of its own within another; of two
    owners, only one holds a prefix. A look costs a step for each bit, however many there are."""

    _owners: dict[tuple[int, int, int], str] = field(default_factory=dict)
    # Prefixes at or below each network, by owner: who is in the way of a wider one.
    _below: dict[tuple[int, int, int], dict[str, int]] = field(default_factory=dict)

    def add(self, network: Network, owner: str) -> None:
        places = list(_enclosing(network))
        before = self._owners.get(places[0])
        if before is not None:
            self.remove(network)
        self._owners[places[0]] = owner
        for place in places:
            counts = self._below.setdefault(place, {})
            counts[owner] = counts.get(owner, 0) + 1

    def remove(self, network: Network) -> None:
        places = list(_enclosing(network))
        owner = self._owners.pop(places[0], None)
        if owner is None:
            return
        for place in places:
            counts = self._below[place]
            counts[owner] -= 1
            if not counts[owner]:
                del counts[owner]
            if not counts:
                del self._below[place]

    def owner(self, network: Network) -> str | None:
        return self._owners.get(next(_enclosing(network)))

    def in_the_way(self, network: Network, owner: str, overlap: Overlap) -> Held | None:
        """Another owner's that the same prefix, or one that overlaps, belongs to."""
        here, *around = _enclosing(network)
        holder = self._owners.get(here)
        if holder is not None and holder != owner:
            return Held(str(network), holder, exact=True)
        if overlap is Overlap.ALLOWED:
            return None
        for other in self._below.get(here, ()):
            if other != owner:
                return Held(f"a prefix within {network}", other, exact=False)
        for version, length, number in around:
            holder = self._owners.get((version, length, number))
            if holder is not None and holder != owner:
                address = type(network.network_address)(number << (network.max_prefixlen - length))
                return Held(f"{address}/{length}", holder, exact=False)
        return None


@dataclass(frozen=True, slots=True)
class Claimed:
    """One thing that an owner declares: a peer, a BFD session, an interface of OSPF, the AS."""

    key: Hashable  # the same for what is the same
    shown: str
    owner: str
    since: int  # the lower came first


@dataclass(frozen=True, slots=True)
class Decision:
    winner: Claimed
    losers: tuple[Claimed, ...] = ()


def decide(
    claimed: Iterable[Claimed], overrides: Callable[[str], bool]
) -> Mapping[Hashable, Decision]:
    """Who gets what several owners declare: one that overrides, else whoever came first. Made anew
    of all that is declared, it gives back what was overridden as soon as that ends."""
    groups: dict[Hashable, list[Claimed]] = {}
    for one in claimed:
        groups.setdefault(one.key, []).append(one)
    found: dict[Hashable, Decision] = {}
    for key, many in groups.items():
        winner, *losers = sorted(many, key=lambda one: (not overrides(one.owner), one.since))
        others = tuple(one for one in losers if one.owner != winner.owner)
        found[key] = Decision(winner, others)
    return found
