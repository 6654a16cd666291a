"""Resources that want different things of one name, number or artifact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set

from holdfast.config.document import Place
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.kinds import route as routes
from holdfast.resources.resource import Fault, Identity, Resource

Finding = tuple[Resource, Fault]
Declared = tuple[Resource, Intent | BulkIntent]
# The exact places of some routes of a resource, for the few that clash.
RoutePlaces = Callable[[Resource, Set[Identity]], Mapping[Identity, Place]]

_FINDINGS_SHOWN = 50


def check(resources: Iterable[Resource]) -> Iterator[Finding]:
    """Clashes that the specs alone show."""
    by_kind: dict[str, list[Resource]] = defaultdict(list)
    for resource in resources:
        by_kind[resource.kind].append(resource)
    yield from _taken(
        by_kind["Interface"], ("ifname",), lambda r: r.spec.ifname, "interface {} is also"
    )
    yield from _veths(by_kind["Interface"])
    yield from _taken(
        (r for r in by_kind["Interface"] if r.spec.vrf is not None),
        ("vrf", "table"),
        lambda r: r.spec.vrf.table,
        "table {} is also the table of",
    )
    yield from _tunnels(by_kind["Interface"])
    yield from _taken(
        (r for r in by_kind["Hostname"] if r.spec.managed),
        (),
        lambda _resource: "host",
        "the {} can have one managed name, and has that of",
    )


def _veths(interfaces: list[Resource]) -> Iterator[Finding]:
    """Making one end of a veth makes the other: no other Interface may make that too."""
    by_name = {resource.spec.ifname: resource for resource in interfaces}
    ends = [resource for resource in interfaces if resource.spec.veth is not None]
    yield from _taken(ends, ("veth", "peer"), lambda r: r.spec.veth.peer, "{} is also the peer of")
    for resource in ends:
        other = by_name.get(resource.spec.veth.peer)
        if other is None or other.spec.type is None:
            continue
        if other.spec.veth is None or other.spec.veth.peer != resource.spec.ifname:
            message = f"{other.spec.ifname} would be made by {other} too, as something else"
            yield resource, Fault(("veth", "peer"), message)


def _tunnels(interfaces: list[Resource]) -> Iterator[Finding]:
    """The kernel has one tunnel between two addresses over one link, whatever it carries."""
    ends: dict[Hashable, Resource] = {}
    for resource in interfaces:
        tunnel = resource.spec.ip6tnl
        if tunnel is None or resource.spec.state == "absent":
            continue
        first = ends.setdefault((tunnel.local, tunnel.remote, tunnel.parent), resource)
        if first is not resource:
            message = f"{first} has the same local end, remote end and parent"
            yield resource, Fault(("ip6tnl",), message)


def _taken(
    resources: Iterable[Resource],
    location: tuple[str, ...],
    value: Callable[[Resource], Hashable],
    words: str,
) -> Iterator[Finding]:
    seen: dict[Hashable, Resource] = {}
    for resource in resources:
        first = seen.setdefault(value(resource), resource)
        if first is not resource:
            message = f"{words.format(value(resource))} {first}"
            yield resource, Fault(location, message)


def check_artifacts(declared: Iterable[Declared], places: RoutePlaces) -> Iterator[Finding]:
    """One artifact declared by several resources: the same by all, or it is a clash."""
    seen: dict[Key, tuple[Resource, Artifact]] = {}
    bulk: dict[bytes, list[tuple[Resource, Batch]]] = defaultdict(list)
    rules: list[tuple[Resource, Key]] = []
    for resource, intent in declared:
        if isinstance(intent, BulkIntent):
            bulk[intent.batch.scope].append((resource, intent.batch))
            continue
        artifact = intent.artifact
        if artifact.key.kind == "rule":
            rules.append((resource, artifact.key))
        elif artifact.key.kind != "link":  # two Interfaces of one ifname are found by `check`
            holder, first = seen.setdefault(artifact.key, (resource, artifact))
            if first.fields != artifact.fields:
                yield resource, Fault((), _difference(artifact, first, holder))
    yield from _rules(rules)
    for scope, batches in bulk.items():
        if len(batches) > 1:
            yield from _routes(scope, batches, places)


def _difference(artifact: Artifact, other: Artifact, holder: Resource) -> str:
    fields = [
        f"{name} {value!r} here, {other.fields.get(name)!r} there"
        for name, value in artifact.fields.items()
        if other.fields.get(name) != value
    ]
    return f"{artifact.key} is declared differently by {holder}: {', '.join(fields)}"


def _rules(rules: Iterable[tuple[Resource, Key]]) -> Iterator[Finding]:
    """Two rules at one priority, or one mark with two tables; the same rule twice is shared."""
    priorities: dict[Hashable, tuple[Resource, Key]] = {}
    marks: dict[Hashable, tuple[Resource, Key]] = {}
    for resource, key in rules:
        spec = resource.spec
        holder, other = priorities.setdefault((spec.version, spec.priority), (resource, key))
        if other != key:
            message = f"{spec.priority} is also the priority of {holder}, a different rule"
            yield resource, Fault(("priority",), message)
        if spec.fwmark is None or spec.table is None:
            continue
        mark = spec.selectors, spec.fwmark, spec.mask
        holder, _ = marks.setdefault(mark, (resource, key))
        if holder.spec.table != spec.table:
            message = (
                f"mark {spec.fwmark:#x} leads to table {spec.table} here and to table"
                f" {holder.spec.table} by {holder}"
            )
            yield resource, Fault(("fwmark",), message)


def _routes(
    scope: bytes, batches: list[tuple[Resource, Batch]], places: RoutePlaces
) -> Iterator[Finding]:
    """Routes with one identity and different fields. Built for lists of any length: where no
    destination is there twice, nothing is done for a single route."""
    everything: set[bytes] = set()
    everything.update(*(batch.keys for _, batch in batches))
    if len(everything) == sum(len(batch) for _, batch in batches):
        return
    seen: dict[bytes, tuple[Resource, Batch]] = {}
    clashing: list[tuple[bytes, Resource, Batch, Resource]] = []
    for resource, batch in batches:
        for key in batch.keys:
            holder, first = seen.setdefault(key, (resource, batch))
            if first is not batch and first.template != batch.template:
                clashing.append((key, resource, batch, holder))
    more = len(clashing) - _FINDINGS_SHOWN
    wanted: dict[int, set[Identity]] = defaultdict(set)
    involved: dict[int, Resource] = {}
    for key, resource, _, holder in clashing[:_FINDINGS_SHOWN]:
        for one in (resource, holder):
            wanted[one.index].add((scope, key))
            involved[one.index] = one
    found = {index: places(involved[index], keys) for index, keys in wanted.items()}
    for key, resource, batch, holder in clashing[:_FINDINGS_SHOWN]:
        route = routes.expand(batch.template, key).key
        at = found[holder.index].get((scope, key), holder.place)
        message = f"{route} is declared differently by {holder.id} at {at}"
        yield resource, Fault((), message, at=found[resource.index].get((scope, key)))
    if more > 0:
        yield clashing[-1][1], Fault((), f"and {more} more routes that others declare differently")
