"""Many prefixes that are asked whether one of them holds an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.engine.kinds.route import pack_key
from holdfast.resources.spec.values import Address, Network


class Prefixes:
    """An address is looked up once for each length there is, and not among all prefixes: a file may
    have ten thousand of both."""

    def __init__(self) -> None:
        self._keys: dict[int, set[bytes]] = {4: set(), 6: set()}
        self._lengths: dict[int, set[int]] = {4: set(), 6: set()}

    def add(self, network: Network) -> None:
        key = pack_key(network.network_address.packed, network.prefixlen)
        self._keys[network.version].add(key)
        self._lengths[network.version].add(network.prefixlen)

    def hold(self, address: Address) -> bool:
        keys = self._keys[address.version]
        return any(key in keys for key in keys_around(address, [*self._lengths[address.version]]))


def keys_around(address: Address, lengths: Sequence[int]) -> Iterator[bytes]:
    """The keys, as routes have them, of the prefixes of these lengths that hold an address."""
    number, bits = int(address), address.max_prefixlen
    for length in lengths:
        masked = number >> (bits - length) << (bits - length)
        yield pack_key(masked.to_bytes(bits // 8, "big"), length)
