"""Who holds what, and what two owners cannot have both.

An object has one holder. `admin` may take one over: what it displaced is kept aside under the name
of who lost it, and declared again when `admin` withdraws.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from holdfast.config.part import Raw, Target
from holdfast.dataclass import dataclass, field
from holdfast.resources.dynamic.source_name import OWNER
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.declarations import Held
from holdfast.runtime.routes.documents import INSTANCE, OSPF_PREFIX, PREFIX
from holdfast.runtime.routes.owners import ADMIN, Owner
from holdfast.runtime.routes.text import Network

ADMIN_SOURCE = f"{OWNER}/{ADMIN}"
_PREFIXES = (PREFIX, OSPF_PREFIX)


@dataclass(frozen=True, slots=True)
class Claimed:
    source: str
    target: Target  # what it is about
    document: Raw
    place: str = ""  # where it stands, of what did not come by the API

    @property
    def resource(self) -> str:
        """What it is called."""
        return str(documents.target_of(self.document))


@dataclass(frozen=True, slots=True)
class Conflict:
    holder: Claimed
    overlap: bool = False  # another prefix, which covers this one or lies within it

    def told(self) -> str:
        holder = self.holder
        what = f"{holder.target} is held by {holder.source}"
        if holder.place:
            what = f"{holder.resource} at {holder.place} declares it"
        if self.overlap:
            other = self.holder.document["spec"]["prefix"]
            told = f"overlaps {other}, and {what}"
            if holder.place:
                return told
            return f"{told}: a policy with `overlap: allow` would let both be"
        return what


@dataclass(slots=True)
class Index:
    """Objects by what they are. Made once for each value of what is held, and kept up to date by
    whoever declares."""

    holders: dict[Target, Claimed] = field(default_factory=dict)
    # By kind and version: those of each length, and all of them in their order.
    _lengths: dict[tuple[str, int], dict[int, dict[int, Claimed]]] = field(default_factory=dict)
    _order: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, held: Held, others: Iterable[Claimed] = ()) -> Index:
        """others: what did not come by the API."""
        index = cls()
        for source, resources in held.items():
            for target, raw in resources.items():
                index.add(Claimed(source, target, raw))
        for other in others:
            index.add(other)
        return index

    def add(self, claimed: Claimed) -> None:
        self.remove(claimed.target)
        self.holders[claimed.target] = claimed
        if claimed.target.kind in _PREFIXES:
            network = documents.network_of(claimed.document)
            family, address = (claimed.target.kind, network.version), int(network.network_address)
            lengths = self._lengths.setdefault(family, {})
            lengths.setdefault(network.prefixlen, {})[address] = claimed
            insort(self._order.setdefault(family, []), (address, network.prefixlen))

    def remove(self, target: Target) -> None:
        before = self.holders.pop(target, None)
        if before is None or target.kind not in _PREFIXES:
            return
        network = documents.network_of(before.document)
        family, address = (target.kind, network.version), int(network.network_address)
        lengths = self._lengths[family]
        del lengths[network.prefixlen][address]
        if not lengths[network.prefixlen]:
            del lengths[network.prefixlen]
        order = self._order[family]
        del order[bisect_left(order, (address, network.prefixlen))]

    def covering(self, kind: str, network: Network) -> Iterator[Claimed]:
        """Shorter prefixes that it lies within."""
        address = int(network.network_address)
        for length, found in self._lengths.get((kind, network.version), {}).items():
            if length < network.prefixlen:
                spare = network.max_prefixlen - length
                if (claimed := found.get(address >> spare << spare)) is not None:
                    yield claimed

    def within(self, kind: str, network: Network) -> Iterator[Claimed]:
        """Longer prefixes that lie within it: they follow it in order, without others between."""
        family = (kind, network.version)
        order, last = self._order.get(family, []), int(network.broadcast_address)
        at = bisect_left(order, (int(network.network_address), 0))
        for address, length in islice(order, at, None) if network.num_addresses > 1 else ():
            if address > last:
                return
            if length > network.prefixlen:
                yield self._lengths[family][length][address]


def conflict(index: Index, owners: Mapping[str, Owner], owner: Owner, raw: Raw) -> Conflict | None:
    """Why an owner cannot have it beside what others have; None where it can."""
    target = documents.target_of(raw)
    holder = index.holders.get(target)
    if holder is not None and holder.source != owner.source:
        if target.kind == INSTANCE and _says_all(holder.document, raw):
            return None  # both say the same of the one instance there is
        return Conflict(holder)
    if target.kind in _PREFIXES:
        network = documents.network_of(raw)
        near = chain(index.covering(target.kind, network), index.within(target.kind, network))
        for other in near:
            if other.source != owner.source and not _may_overlap(owners, owner, other):
                return Conflict(other, overlap=True)
    return None


def _says_all(document: Raw, raw: Raw) -> bool:
    return all(document["spec"].get(name) == value for name, value in raw["spec"].items())


def _may_overlap(owners: Mapping[str, Owner], owner: Owner, other: Claimed) -> bool:
    """Where both policies say so: neither is to lose traffic to the other unasked."""
    kind, _, name = other.source.partition("/")
    theirs = owners.get(name) if kind == OWNER else None
    return owner.may_overlap and theirs is not None and theirs.may_overlap
