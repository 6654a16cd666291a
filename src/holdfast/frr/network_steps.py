"""What is told to bgpd for networks, thousands at once.

New maps come first, in one batch: a network with a map that is not there yet is withheld, and for
five seconds more once it is. Then the networks, in a pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.driver import Failure, Result, Scope
from holdfast.engine.kinds.bgp_attributes import Attributes, ours
from holdfast.engine.kinds.bgp_network import (
    BGP_NETWORK,
    NetworkTemplate,
    identify,
    scope,
    template_of,
)
from holdfast.engine.kinds.route import destination
from holdfast.engine.plan import Operation, Verb
from holdfast.frr import lines
from holdfast.frr.commands import Line, line
from holdfast.frr.daemon import Daemon
from holdfast.frr.lines import BATCH, Step
from holdfast.frr.networks import FAMILIES, keyed, map_is_whole, map_of
from holdfast.frr.running_config import RunningConfig, networks

# How long 10.x needs to forget a network below an aggregate that suppresses it: bgpd crashes where
# the line is changed as it stands.
_FORGOTTEN_S = 1.0


@dataclass(slots=True)
class NetworkJob:
    operation: Operation
    shared: NetworkTemplate
    keys: Sequence[bytes]
    todo: list[bytes] = field(default_factory=list)
    failures: dict[bytes, Failure] = field(default_factory=dict)
    said: dict[bytes, str] = field(default_factory=dict)  # what FRR did not take
    path: tuple[str, ...] = ()

    def fail(self, key: bytes, why: str, *, exists: bool = False) -> None:
        named = Batch(BGP_NETWORK, self.shared, [key]).artifact(key).key
        self.failures[key] = Failure(named, why, exists)


def identities(wanted: Scope, config: RunningConfig) -> dict[bytes, None]:
    """At which networks of others matter."""
    found: dict[bytes, None] = {}
    for batch in wanted.batches:
        if batch.kind.name == BGP_NETWORK.name:
            head = batch.scope
            found.update(dict.fromkeys(head + key for key in batch.keys))
    for key, claim in wanted.claims.items():
        if key.kind == BGP_NETWORK.name:
            found[b"".join(identify(claim.fields))] = None
    for vrf in config.bgp if wanted.bulk_keys else ():
        for family in FAMILIES:
            head = scope(NetworkTemplate(family, vrf))
            found.update(dict.fromkeys(head + key for key in wanted.bulk_keys))
    return found


def job(operation: Operation, config: RunningConfig) -> NetworkJob:
    """What of an operation is to be told, and what must not be, by what is there now."""
    shared, keys = _contents(operation.subject)
    made = NetworkJob(operation, shared, keys)
    instance = config.bgp.get(shared.vrf)
    if instance is None:
        for key in keys if operation.verb is not Verb.DELETE else ():
            made.fail(key, f"bgpd has no `router bgp` in VRF {shared.vrf}")
        return made
    made.path = (instance.header, f"address-family {FAMILIES[shared.family]}")
    there = _there(config, shared)
    for key in keys:
        said = there.get(key)
        if said is None:
            if operation.verb is not Verb.DELETE:
                made.todo.append(key)
        elif operation.verb is Verb.CREATE:
            words = f"network {destination(key)} {said}".strip()
            made.fail(key, f"`{words}` is there already", exists=True)
        elif ours(map_of(said)) or said == _planned(operation, key):
            made.todo.append(key)
        else:
            made.fail(key, f"no longer what was planned for: its line says {said or 'no map'}")
    return made


def carry_out(jobs: Sequence[NetworkJob], config: RunningConfig, bgpd: Daemon) -> None:
    """First what comes or changes, then what goes."""
    made = [each for each in jobs if each.operation.verb is not Verb.DELETE and each.todo]
    gone = [each for each in jobs if each.operation.verb is Verb.DELETE and each.todo]
    wanted = {each.shared.attributes.map_name: each.shared.attributes for each in made}
    steps = maps(wanted, config)
    if steps:
        bgpd.tell(steps)
    crashing = {id(each): _crashing(each, config, bgpd.version) for each in made}
    if any(crashing.values()):
        _tell(bgpd, [(each, key, _no(key)) for each in made for key in crashing[id(each)]])
        time.sleep(_FORGOTTEN_S)
    told = [(each, key, said) for each in made for key, said in _given(each)]
    _tell(bgpd, [*told, *((each, key, _no(key)) for each in gone for key in each.todo)])


def maps(wanted: Mapping[str, Attributes], config: RunningConfig) -> list[Step]:
    """The maps that are not there, or not as their names say."""
    found: list[Line] = []
    for name, attributes in wanted.items():
        if not map_is_whole(name, config):
            if name in config.route_maps:
                found.append(line(f"no route-map {name}"))
            found += lines.map_lines(attributes)
    return [Step(BATCH, each) for each in found]


def result(done: NetworkJob, now: RunningConfig) -> Result:
    """By what FRR shows afterwards."""
    there = _there(now, done.shared) if done.todo else {}
    wanted = f"route-map {done.shared.attributes.map_name}"
    goes = done.operation.verb is Verb.DELETE
    for key in done.todo:
        seen = there.get(key)
        if seen == (None if goes else wanted):
            continue
        shown = "is not there" if seen is None else f"is there with {seen or 'no map'}"
        said = done.said.get(key, "FRR took the line")
        done.fail(key, f"it {shown} afterwards ({said})")
    failures = tuple(done.failures[key] for key in done.keys if key in done.failures)
    return Result(done.operation, len(done.keys) - len(failures), failures)


def _contents(subject: Artifact | Batch) -> tuple[NetworkTemplate, Sequence[bytes]]:
    if isinstance(subject, Batch):
        return subject.template, subject.keys
    shared, key = template_of(subject)
    return shared, [key]


def _there(config: RunningConfig, shared: NetworkTemplate) -> Mapping[bytes, str]:
    instance = config.bgp.get(shared.vrf)
    family = instance.families.get(FAMILIES[shared.family]) if instance else None
    return keyed(family.networks, shared.family) if family is not None else {}


def _planned(operation: Operation, key: bytes) -> str | None:
    """What the line of others said when this was planned: one that was adopted."""
    seen = operation.observed if operation.observed is not None else operation.subject
    shared, keys = _contents(seen)
    return shared.other if key in keys else None


def _given(each: NetworkJob) -> Iterator[tuple[bytes, Line]]:
    name = each.shared.attributes.map_name
    for key in each.todo:
        yield key, lines.network(destination(key), name)


def _no(key: bytes) -> Line:
    return lines.no_network(destination(key))


def _tell(bgpd: Daemon, told: Sequence[tuple[NetworkJob, bytes, Line]]) -> None:
    answers = bgpd.tell([Step(each.path, said) for each, _, said in told])
    for (each, key, _), answer in zip(told, answers, strict=True):
        if answer.failed:
            each.said[key] = answer.words


def _crashing(each: NetworkJob, config: RunningConfig, version: str) -> list[bytes]:
    """The networks whose change would crash bgpd: those that an aggregate suppresses."""
    instance = config.bgp.get(each.shared.vrf)
    family = instance.families.get(FAMILIES[each.shared.family]) if instance else None
    if version.startswith("8.") or family is None:
        return []
    summaries = [p for p, said in family.aggregates.items() if "summary-only" in said.split()]
    if not summaries:
        return []
    there = {prefix for prefix, _ in networks(family)}
    return [key for key in each.todo if destination(key) in there and _below(key, summaries)]


def _below(key: bytes, prefixes: Iterable[str]) -> bool:
    length, address = key[0], int.from_bytes(key[1:], "big")
    for prefix in prefixes:
        summary = ip_network(prefix)
        same_family = summary.max_prefixlen == 8 * len(key[1:])
        inside = address & int(summary.netmask) == int(summary.network_address)
        if same_family and inside and length > summary.prefixlen:
            return True
    return False
