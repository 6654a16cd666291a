"""What BGP advertises, as seen: networks packed, by the maps that they name.

A body is what stands before a key, and the key: the family, the VRF, what the line says behind the
prefix, and a NUL. So the 10 000 networks of one map are 10 000 short byte strings with the same
beginning, and comparing them with what is declared is algebra of sets.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import lru_cache

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Batch
from holdfast.engine.kinds.bgp_attributes import NO_ATTRIBUTES, attributes_of, name_of, ours
from holdfast.engine.kinds.bgp_network import NetworkTemplate, expand, scope
from holdfast.engine.observed import Sighting
from holdfast.frr.running_config import Bgp, RunningConfig

TAG = "map HF-…"
FAMILIES = {4: "ipv4 unicast", 6: "ipv6 unicast"}
_LENGTHS = {str(length): bytes((length,)) for length in range(129)}
_BROKEN = "!"  # before the line of a network whose map was changed or is missing
_SIZES = {4: 5, 6: 17}


@dataclass(slots=True)
class NetworkSighting:
    """A BulkSighting."""

    config: RunningConfig
    own: set[bytes] = field(default_factory=set)
    foreign: dict[bytes, list[Sighting]] = field(default_factory=dict)
    impaired: dict[bytes, str] = field(default_factory=dict)
    exact: bool = False
    tag: int = 0
    tag_text: str = TAG
    _templates: dict[bytes, NetworkTemplate] = field(default_factory=dict)

    def pack(self, batch: Batch) -> list[bytes] | None:
        shared: NetworkTemplate = batch.template
        if shared.vrf not in self.config.bgp:
            return None
        head = _head(shared.family, shared.vrf, f"route-map {shared.attributes.map_name}")
        self._templates[head] = shared
        return [head + key for key in batch.keys]

    def unpack(self, body: bytes) -> tuple[NetworkTemplate, bytes]:
        size = _SIZES[body[0]]
        head, key = body[:-size], body[-size:]
        shared = self._templates.get(head)
        if shared is None:
            vrf, said, _ = head[1:].split(b"\0")
            shared = template(body[0], vrf.decode(), said.decode(), self.config)
            self._templates[head] = shared
        return shared, key

    def single(self, shared: NetworkTemplate, key: bytes) -> Sighting:
        return Sighting(expand(shared, key), tag=TAG)


def _head(family: int, vrf: str, said: str) -> bytes:
    return bytes((family,)) + vrf.encode() + b"\0" + said.encode() + b"\0"


def _own_head(family: int, vrf: str, said: str, config: RunningConfig) -> bytes:
    """What stands before the keys of networks with such a line; empty where they are others'."""
    if not ours(map_of(said)):
        return b""
    return _head(family, vrf, said if map_is_whole(map_of(said), config) else f"{_BROKEN}{said}")


def see_networks(config: RunningConfig, wanted: Mapping[bytes, object]) -> NetworkSighting:
    """wanted: identities (scope and key) at which those of others matter."""
    seen = NetworkSighting(config)
    for vrf, instance in config.bgp.items():
        for family in FAMILIES:
            _see(seen, family, vrf, instance, wanted)
    return seen


def _see(
    seen: NetworkSighting, family: int, vrf: str, instance: Bgp, wanted: Mapping[bytes, object]
) -> None:
    told = instance.families.get(FAMILIES[family])
    if told is None or not told.networks:
        return
    shared_scope = scope(NetworkTemplate(family, vrf))
    heads: dict[str, bytes] = {}  # of those that are ours
    own = seen.own
    for key, said in keyed(told.networks, family).items():
        head = heads.get(said)
        if head is None:
            head = heads[said] = _own_head(family, vrf, said, seen.config)
        if head:
            own.add(head + key)
        elif shared_scope + key in wanted:
            other = template(family, vrf, said, seen.config)
            sighting = Sighting(expand(other, key), holder=_holder(said))
            seen.foreign.setdefault(shared_scope + key, []).append(sighting)


@lru_cache(maxsize=8)
def keyed(lines: str, family: int) -> Mapping[bytes, str]:
    """Key and rest of the line of each network. Kept for the last few texts: whoever looks and then
    acts on it asks twice."""
    kind = socket.AF_INET6 if family == 6 else socket.AF_INET
    to_bytes = socket.inet_pton
    found = {}
    for line in lines.splitlines():
        _, prefix, *said = line.split(None, 2)
        address, _, length = prefix.partition("/")
        found[_LENGTHS[length] + to_bytes(kind, address)] = said[0] if said else ""
    return found


def map_of(said: str) -> str:
    """The map that a line names behind its prefix, and nothing else; else empty."""
    words = said.removeprefix(_BROKEN).split()
    return words[1] if len(words) == 2 and words[0] == "route-map" else ""


def map_is_whole(name: str, config: RunningConfig) -> bool:
    """Whether a map is there and is what its name says."""
    entries = config.route_maps.get(name, ())
    if len(entries) != 1 or entries[0][0] != "permit 10" or name_of(entries[0][1]) != name:
        return False
    try:
        attributes_of(entries[0][1])
    except ValueError:
        return False
    return True


def template(family: int, vrf: str, said: str, config: RunningConfig) -> NetworkTemplate:
    name = map_of(said)
    if said.startswith(_BROKEN):
        return NetworkTemplate(family, vrf, other=f"map {name} is not what its name says")
    if ours(name):
        return NetworkTemplate(family, vrf, attributes_of(config.route_maps[name][0][1]))
    return NetworkTemplate(family, vrf, NO_ATTRIBUTES, other=said)


def _holder(said: str) -> str:
    return f"frr.conf or vtysh, with {said}" if said else "frr.conf or vtysh"
