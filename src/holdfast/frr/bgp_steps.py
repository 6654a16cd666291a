"""What is told to bgpd for an operation on a single artifact."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE, name_and_vrf
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, attributes_in
from holdfast.engine.kinds.bgp_peer import BGP_PEER_GROUP
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.frr import bgp_view, lines, peers
from holdfast.frr.commands import line, word
from holdfast.frr.lines import BATCH, Step
from holdfast.frr.networks import map_is_whole
from holdfast.frr.running_config import Bgp, RunningConfig, bgp_header

_NOTHING: Fields = {}


def steps(
    operation: Operation, subject: Artifact, there: Artifact | None, config: RunningConfig
) -> Sequence[Step]:
    """there: what is there now, which may be nothing."""
    ends = operation.verb is Verb.DELETE
    if ends and there is None:
        return ()
    match subject.key.kind:
        case BGP_INSTANCE.name:
            return _instance(operation, subject, there, config)
        case BGP_FILTER.name:
            return _filter(subject, there, ends)
        case BGP_AGGREGATE.name:
            return _aggregate(subject, config, ends)
        case _:
            return _neighbour(subject, there, config, ends)


def others_lost(key: Key, config: RunningConfig, claimed: Collection[Key]) -> list[str]:
    """What of others would go with an instance or a group."""
    known = dict.fromkeys(claimed)
    if key.kind == BGP_INSTANCE.name:
        instance = config.bgp.get(key.name)
        return bgp_view.others_in(instance, known) if instance else []
    name, vrf = name_and_vrf(key.name)
    if key.kind == BGP_PEER_GROUP.name and vrf in config.bgp:
        return bgp_view.members_of_others(name, config.bgp[vrf], known)
    return []


def password_of(key: Key, config: RunningConfig) -> bytes:
    name, vrf = name_and_vrf(key.name)
    instance = config.bgp.get(vrf)
    told = instance.neighbours.get(name) if instance else None
    if told is None:
        raise ValueError(f"{key} is no longer there")
    return peers.password_in(told)


def _instance(
    operation: Operation, subject: Artifact, there: Artifact | None, config: RunningConfig
) -> list[Step]:
    vrf = subject.key.name
    found: list[Step] = []
    if there is not None and operation.verb in (Verb.DELETE, Verb.REPLACE):
        found.append(Step((), line(f"no {config.bgp[vrf].header}")))
        if operation.verb is Verb.DELETE:
            return found
        there = None
    header = bgp_header(word(subject.fields["local_as"]), word(vrf))
    if there is None:
        found.append(Step((), line(header)))
    old = there.fields if there is not None else _NOTHING
    said = lines.instance_lines(old, subject.fields)
    return [*found, *(Step((header,), each) for each in said)]


def _filter(subject: Artifact, there: Artifact | None, ends: bool) -> list[Step]:
    """In one batch, taken away and made anew where it was changed by hand."""
    said = []
    if there is not None:
        said += lines.no_filter(subject.key.name, _lines(there.fields))
    if not ends:
        said += lines.filter_lines(_lines(subject.fields))
    return [Step(BATCH, each) for each in said]


def _lines(fields: Fields) -> Sequence[str]:
    value = fields.get("lines")
    return value if isinstance(value, tuple) else ()


def _aggregate(subject: Artifact, config: RunningConfig, ends: bool) -> list[Step]:
    prefix, vrf = name_and_vrf(subject.key.name)
    instance = _running(vrf, config)
    path = (instance.header, f"address-family {bgp_view.family_of(prefix)}")
    if ends:
        return [Step(path, line(f"no aggregate-address {word(prefix)}"))]
    attributes = attributes_in(subject.fields)
    name = attributes.map_name
    found = []
    if not map_is_whole(name, config):
        found += [Step(BATCH, line(f"no route-map {name}"))] if name in config.route_maps else []
        found += (Step(BATCH, each) for each in lines.map_lines(attributes))
    return [*found, Step(path, lines.aggregate(prefix, subject.fields, name))]


def _neighbour(
    subject: Artifact, there: Artifact | None, config: RunningConfig, ends: bool
) -> list[Step]:
    name, vrf = name_and_vrf(subject.key.name)
    is_group = subject.key.kind == BGP_PEER_GROUP.name
    instance = _running(vrf, config)
    path = (instance.header,)
    if ends:
        held = _ranges(there.fields) if there is not None else ()
        gone = (f"no bgp listen range {prefix} peer-group {word(name)}" for prefix in held)
        return [
            *(Step(path, line(said)) for said in gone),
            Step(path, peers.ending(name, is_group)),
        ]
    old, new = there.fields if there is not None else _NOTHING, subject.fields
    said = []
    if there is None:
        said += peers.making(name, new, is_group)
        active = "no bgp default ipv4-unicast" not in instance.lines and not new.get("group")
        old = {"ipv4_unicast": ("activate",)} if active else _NOTHING
    said += peers.main_lines(name, old, new, subject.payload.decode())
    ranges = [list(_ranges(fields)) for fields in (old, new)]
    for prefix in ranges[0]:
        if prefix not in ranges[1]:
            said.append(line(f"no bgp listen range {word(prefix)} peer-group {word(name)}"))
    for prefix in ranges[1]:
        if prefix not in ranges[0]:
            said.append(line(f"bgp listen range {word(prefix)} peer-group {word(name)}"))
    found = [Step(path, each) for each in said]
    for family, told in peers.family_lines(name, old, new).items():
        found += (Step((*path, f"address-family {family}"), each) for each in told)
    return found


def _ranges(fields: Fields) -> Sequence[str]:
    value = fields.get("listen_ranges")
    return value if isinstance(value, tuple) else ()


def _running(vrf: str, config: RunningConfig) -> Bgp:
    instance = config.bgp.get(vrf)
    if instance is None:
        raise DriverError(f"bgpd has no `router bgp` in VRF {vrf}")
    return instance
