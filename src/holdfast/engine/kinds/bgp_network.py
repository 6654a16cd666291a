"""Prefixes that BGP advertises: networks, the second bulk kind, and aggregates.

A network is `network P route-map HF-DIGEST` below its family, and always names a map, one without a
line where it has no attributes: so each of ours tells its maker. Canonical form is what FRR reads
back: host bits masked, attributes as `Attributes` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    BulkKind,
    Fields,
    Key,
    NamedBy,
    Naming,
    PartialLook,
    Value,
)
from holdfast.engine.kinds.bgp_attributes import NO_ATTRIBUTES, Attributes
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF, in_vrf, name_and_vrf
from holdfast.engine.kinds.route import destination
from holdfast.engine.kinds.route import pack_key as pack_key
from holdfast.engine.plan import Changes, Cost, Risk, Verb


@dataclass(frozen=True, slots=True)
class NetworkTemplate:
    """Everything about a network but its prefix."""

    family: int  # 4 or 6
    vrf: str = DEFAULT_VRF
    attributes: Attributes = NO_ATTRIBUTES
    # What a line says besides, or in place of a map of ours, as it stands there: "backdoor",
    # "route-map THEIRS". None is made with it. "map HF-… is not what its name says" where that map
    # is missing or was changed by hand.
    other: str = ""


def scope(shared: NetworkTemplate) -> bytes:
    """What all networks of a template have in common of their identity."""
    return _scope(shared.family, shared.vrf)


@lru_cache(maxsize=256)
def _scope(family: int, vrf: str) -> bytes:
    return bytes((family,)) + vrf.encode()


def _vrf_of(scope: bytes) -> str:
    return scope[1:].decode()


def network_key(prefix: str, vrf: str = DEFAULT_VRF) -> Key:
    return Key(BGP_NETWORK.name, in_vrf(prefix, vrf))


def _attribute_fields(attributes: Attributes) -> dict[str, Value]:
    return {
        "local_preference": attributes.local_preference,
        "med": attributes.med,
        "communities": attributes.communities,
        "large_communities": attributes.large_communities,
        "extended_communities": attributes.extended_communities,
        "next_hop": attributes.next_hop or None,
        "prepend": tuple(map(str, attributes.prepend)),
    }


_ATTRIBUTES = tuple(_attribute_fields(NO_ATTRIBUTES))


def attributes_in(fields: Fields) -> Attributes:
    """The inverse of what stands in fields."""
    said: Any = fields
    return Attributes(
        said["local_preference"],
        said["med"],
        tuple(said["communities"]),
        tuple(said["large_communities"]),
        tuple(said["extended_communities"]),
        said["next_hop"] or "",
        tuple(map(int, said["prepend"])),
    )


def expand(shared: NetworkTemplate, key: bytes) -> Artifact:
    prefix = destination(key)
    fields: dict[str, Value] = {
        "prefix": prefix,
        "vrf": shared.vrf,
        **_attribute_fields(shared.attributes),
    }
    if shared.other:
        fields["other"] = shared.other
    return Artifact(network_key(prefix, shared.vrf), fields)


def _packed(prefix: str) -> tuple[int, bytes]:
    text, _, length = prefix.partition("/")
    address = ip_address(text)
    return address.version, pack_key(address.packed, int(length))


def identify(fields: Fields) -> tuple[bytes, bytes]:
    family, key = _packed(str(fields["prefix"]))
    return _scope(family, str(fields["vrf"])), key


def template_of(artifact: Artifact) -> tuple[NetworkTemplate, bytes]:
    """The inverse of `expand`."""
    fields = artifact.fields
    family, key = _packed(str(fields["prefix"]))
    other = str(fields.get("other") or "")
    return NetworkTemplate(family, str(fields["vrf"]), attributes_in(fields), other), key


def identity(key: Key) -> bytes:
    """Scope and key of the network that `network_key` named so."""
    prefix, vrf = name_and_vrf(key.name)
    return b"".join(identify({"prefix": prefix, "vrf": vrf}))


def _risk(verb: Verb, _subject: Artifact | Batch, _changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, "neighbours may send what is for it here"
    if verb is Verb.DELETE:
        return Risk.MEDIUM, "neighbours no longer learn it from here"
    return Risk.LOW, "neighbours learn other attributes of it, without a withdrawal"


def _shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    prefix, vrf = name_and_vrf(name)
    words = ["network", prefix]
    if "prepend" in fields:
        words += (line.removeprefix("set ") for line in attributes_in(fields).lines())
    words += [fields["other"]] if fields.get("other") else []
    return words if vrf == DEFAULT_VRF else [*words, "vrf", vrf]


BGP_NETWORK = ArtifactKind(
    name="bgp_network",
    identity="prefix and VRF",
    fields=(*_ATTRIBUTES, "other"),
    surplus=("other",),
    proof="the map it names: `HF-` and a digest, which only Holdfast gives; a claim where it was"
    " adopted",
    cleanup="deleted when it names a map of ours; a map that nothing names any more goes after it",
    deletes_orphans=True,
    after=("link", "address", "bgp_instance", "bgp_filter", "bgp_peer"),
    risk=_risk,
    survives_reboot=True,
    tells_its_maker=True,
    tagged=True,
    needs_program=True,
    partial_look=PartialLook.KIND,
    shown=_shown,
    naming=Naming(aliases=("network",), by=NamedBy.DESTINATION),
    bulk=BulkKind(
        scope=scope,
        expand=expand,
        identify=identify,
        template_of=template_of,
        declarable=lambda shared: not shared.other,
        group=_vrf_of,
    ),
)


def batch(shared: NetworkTemplate, keys: list[bytes]) -> Batch:
    return Batch(BGP_NETWORK, shared, keys)


BGP_AGGREGATE = ArtifactKind(
    name="bgp_aggregate",
    identity="prefix and VRF",
    fields=("as_set", "summary_only", *_ATTRIBUTES, "other"),
    surplus=("other",),
    proof="the map it names: `HF-` and a digest, which only Holdfast gives",
    cleanup="deleted when it names a map of ours; a map that nothing names any more goes after it",
    deletes_orphans=True,
    after=("link", "address", "bgp_instance", "bgp_filter", "bgp_peer", "bgp_network"),
    risk=lambda verb, _subject, _changes: (
        (Risk.LOW, "") if verb is Verb.CREATE else (Risk.MEDIUM, "neighbours learn other prefixes")
    ),
    survives_reboot=True,
    tells_its_maker=True,
    tagged=True,
    needs_program=True,
    partial_look=PartialLook.KIND,
    shown=lambda name, fields: [
        "aggregate-address",
        name,
        *(["as-set"] if fields.get("as_set") else []),
        *(["summary-only"] if fields.get("summary_only") else []),
    ],
    naming=Naming(aliases=("aggregate",), by=NamedBy.DESTINATION),
)


def bgp_aggregate(
    prefix: str,
    *,
    vrf: str = DEFAULT_VRF,
    as_set: bool = False,
    summary_only: bool = False,
    attributes: Attributes = NO_ATTRIBUTES,
) -> Artifact:
    """`aggregate-address P [as-set] [summary-only] route-map HF-DIGEST` below the family of the
    prefix. The map is the one that networks with these attributes name, too. `other` holds what the
    line says besides ("origin igp", "matching-MED-only"), which nobody declares."""
    fields: dict[str, Value] = {
        "prefix": prefix,
        "vrf": vrf,
        "as_set": as_set,
        "summary_only": summary_only,
        **_attribute_fields(attributes),
    }
    return Artifact(Key(BGP_AGGREGATE.name, in_vrf(prefix, vrf)), fields)
