"""bgpd's configuration as sightings of our kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.driver import Scope
from holdfast.engine.kinds.bgp_attributes import attributes_of, ours
from holdfast.engine.kinds.bgp_filter import BGP_FILTER, is_what_its_name_says
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE, in_vrf, instance_key, name_and_vrf
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, bgp_aggregate
from holdfast.engine.kinds.bgp_peer import (
    BGP_PEER,
    BGP_PEER_GROUP,
    Session,
    group_key,
    peer_key,
)
from holdfast.engine.observed import Loss, Sighting
from holdfast.frr import lines, marks, peers
from holdfast.frr.networks import map_is_whole, map_of
from holdfast.frr.running_config import (
    Bgp,
    Neighbour,
    RunningConfig,
    entries_as_lines,
    networks,
)

HOLDER = "frr.conf or vtysh"
NAME_TAG = "name HF-…"


def is_datacenter(config: RunningConfig) -> bool:
    return any(head == "frr defaults datacenter" for head, _ in config.blocks)


def artifact(key: Key, config: RunningConfig) -> Artifact | None:
    """What is there under a key; None where nothing is. Not for networks."""
    if key.kind == BGP_FILTER.name:
        found = filter_in(key.name, config)
        return Artifact(key, {"lines": found}) if found else None
    name, vrf = ("", key.name) if key.kind == BGP_INSTANCE.name else name_and_vrf(key.name)
    instance = config.bgp.get(vrf)
    if instance is None:
        return None
    if key.kind == BGP_INSTANCE.name:
        return Artifact(key, lines.instance_fields(instance, is_datacenter(config)))
    if key.kind == BGP_AGGREGATE.name:
        return _aggregate(name, instance, config)
    told = instance.neighbours.get(name)
    if told is None or told.is_group != (key.kind == BGP_PEER_GROUP.name):
        return None
    return Artifact(key, peers.fields_of(told, instance))


def in_the_way(key: Key, config: RunningConfig) -> str:
    """What of another kind has the same name in FRR."""
    other = {BGP_PEER.name: BGP_PEER_GROUP.name, BGP_PEER_GROUP.name: BGP_PEER.name}.get(key.kind)
    if other and artifact(Key(other, key.name), config) is not None:
        return str(Key(other, key.name))
    return ""


def sightings(scope: Scope, config: RunningConfig) -> dict[Key, Sequence[Sighting]]:
    kinds = (BGP_INSTANCE, BGP_PEER_GROUP, BGP_PEER, BGP_AGGREGATE, BGP_FILTER)
    names = {kind.name for kind in kinds}
    wanted = {key for key in (*scope.keys, *scope.claims) if key.kind in names}
    found: dict[Key, Sequence[Sighting]] = {}
    for key in {*wanted, *_tagged(config)}:
        seen = artifact(key, config)
        if seen is not None:
            tag = tag_of(seen, config)
            nonce = marks.nonce_of(seen, scope.claims, _fresh(seen, config))
            found[key] = (Sighting(seen, tag=tag, holder="" if tag else HOLDER, nonce=nonce),)
    return found


def _fresh(seen: Artifact, config: RunningConfig) -> Fields:
    """The fields of one that was just made by its first line."""
    if seen.key.kind == BGP_INSTANCE.name:
        told = config.bgp[seen.key.name]
        bare = Bgp(told.vrf, told.local_as, (), {}, {})
        return lines.instance_fields(bare, is_datacenter(config))
    if seen.key.kind in (BGP_PEER.name, BGP_PEER_GROUP.name):
        return {**Session().fields(), "ipv4_unicast": ("activate",)}
    return {}


def tag_of(seen: Artifact, config: RunningConfig) -> str:
    """What shows that it is of our making, whatever became of the claim."""
    if seen.key.kind == BGP_FILTER.name:
        said: Iterable[str] = _lines_of(seen.fields)
        return NAME_TAG if is_what_its_name_says(seen.key.name, said) else ""
    if seen.key.kind == BGP_AGGREGATE.name:
        prefix, vrf = name_and_vrf(seen.key.name)
        return NAME_TAG if ours(_aggregate_map(config.bgp[vrf], prefix)) else ""
    return ""


def _lines_of(fields: Fields) -> tuple[str, ...]:
    value = fields.get("lines")
    return value if isinstance(value, tuple) else ()


def _tagged(config: RunningConfig) -> Iterator[Key]:
    for name in config.route_maps:
        if ours(name) and _is_filter(name):
            yield Key(BGP_FILTER.name, name)
    for vrf, instance in config.bgp.items():
        for family in instance.families.values():
            for prefix, said in family.aggregates.items():
                if ours(_map_in(said)):
                    yield Key(BGP_AGGREGATE.name, in_vrf(prefix, vrf))


def _is_filter(name: str) -> bool:
    """A filter is called `HF-READABLE-DIGEST`, a map of attributes `HF-DIGEST`."""
    return "-" in name.removeprefix("HF-")


def filter_in(name: str, config: RunningConfig) -> tuple[str, ...]:
    """Its lines, in the order of the kind; empty where there are none."""
    found: list[str] = []
    lists = [said for said in config.lists if said.startswith(f"{name}-")]
    for named in sorted(lists, key=lambda said: _number(said, name)):
        found += config.lists[named]
    found += entries_as_lines(name, config.route_maps.get(name, ()))
    return tuple(found)


def _number(named: str, name: str) -> int:
    number = named.removeprefix(f"{name}-")
    return int(number) if number.isdigit() else 1 << 30


def family_of(prefix: str) -> str:
    return "ipv6 unicast" if ":" in prefix else "ipv4 unicast"


def _map_in(said: str) -> str:
    words = said.split()
    return words[words.index("route-map") + 1] if "route-map" in words[:-1] else ""


def _aggregate_map(instance: Bgp, prefix: str) -> str:
    family = instance.families.get(family_of(prefix))
    return _map_in(family.aggregates.get(prefix, "")) if family else ""


def _aggregate(prefix: str, instance: Bgp, config: RunningConfig) -> Artifact | None:
    family = instance.families.get(family_of(prefix))
    said = family.aggregates.get(prefix) if family else None
    if said is None:
        return None
    words = said.split()
    as_set, summary_only = "as-set" in words, "summary-only" in words
    name = _map_in(said)
    whole = ours(name) and map_is_whole(name, config)
    entries = config.route_maps[name][0][1] if whole else ()
    made = bgp_aggregate(
        prefix,
        vrf=instance.vrf,
        as_set=as_set,
        summary_only=summary_only,
        attributes=attributes_of(entries),
    )
    used = {"as-set", "summary-only"} | ({"route-map", name} if ours(name) else set())
    other = " ".join(word for word in words if word not in used)
    if ours(name) and not whole:
        other = f"{other} map {name} is not what its name says".strip()
    return Artifact(made.key, {**made.fields, "other": other}) if other else made


def losses(scope: Scope, config: RunningConfig) -> dict[Key, Sequence[Loss]]:
    """What of others goes with an instance or a group of ours that ends."""
    found: dict[Key, Sequence[Loss]] = {}
    for vrf, instance in config.bgp.items():
        key = instance_key(vrf)
        seen = artifact(key, config)
        known = key in scope.claims or key in scope.keys
        if known and seen is not None and _may_end(scope, seen):
            found[key] = tuple(map(Loss, others_in(instance, scope.claims)))
        for name, told in instance.neighbours.items():
            group = artifact(group_key(name, vrf), config) if told.is_group else None
            if group is not None and group.key in scope.claims and _may_end(scope, group):
                others = members_of_others(name, instance, scope.claims)
                found[group.key] = tuple(map(Loss, others))
    return {key: lost for key, lost in found.items() if lost}


def _may_end(scope: Scope, seen: Artifact) -> bool:
    return scope.declared(seen.key) is None or scope.coming(seen).ends


def others_in(instance: Bgp, claims: Mapping[Key, object]) -> list[str]:
    """What in an instance is not ours, in words."""
    found = [
        f"{_neighbour(name, told)} ({HOLDER})"
        for name, told in instance.neighbours.items()
        if _neighbour_key(name, told, instance.vrf) not in claims
    ]
    for family in instance.families.values():
        foreign = [prefix for prefix, said in networks(family) if not ours(map_of(said))]
        found += (f"network {prefix} ({HOLDER})" for prefix in foreign[:10])
        if len(foreign) > 10:
            found.append(f"{len(foreign) - 10} more networks ({HOLDER})")
        for prefix, said in family.aggregates.items():
            if not ours(_map_in(said)):
                found.append(f"aggregate-address {prefix} ({HOLDER})")
    found += (f"`{said}` ({HOLDER})" for said in lines.others_lines(instance))
    return found


def members_of_others(group: str, instance: Bgp, claims: Mapping[Key, object]) -> list[str]:
    return [
        f"{_neighbour(name, told)} ({HOLDER})"
        for name, told in instance.neighbours.items()
        if any(said.removeprefix("interface ") == f"peer-group {group}" for said in told.lines)
        and _neighbour_key(name, told, instance.vrf) not in claims
    ]


def _neighbour(name: str, told: Neighbour) -> str:
    return f"{'peer-group' if told.is_group else 'neighbor'} {name}"


def _neighbour_key(name: str, told: Neighbour, vrf: str) -> Key:
    return group_key(name, vrf) if told.is_group else peer_key(name, vrf)
