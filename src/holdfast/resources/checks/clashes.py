"""Resources that want different things of one name, number or artifact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set

from holdfast.config.document import Place
from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.bulk_keys import few_of
from holdfast.engine.intent import BulkIntent, Waiting
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.rule import RULE
from holdfast.resources import registry
from holdfast.resources.resource import Declared, Fault, Identity, Resource
from holdfast.resources.site import Site, ifname_of

Finding = tuple[Resource, Fault]
# The exact places of some routes of a resource, for the few that clash.
RoutePlaces = Callable[[Resource, Set[Identity]], Mapping[Identity, Place]]

_FINDINGS_SHOWN = 50
# What makes two rules pick the same packets.
_SELECTORS = ("family", "source", "destination", "iif", "oif", "fwmark", "fwmask")


def check(site: Site) -> Iterator[Finding]:
    """Clashes that the specs alone show."""
    links = site.having(lambda kind: kind.link)
    yield from _names(links)
    for name, alike in site.by_kind.items():
        kind = registry.kind(name)
        if kind.link is not None:
            yield from taken(links, (kind.link.field,), ifname_of, "interface {} is also", name)
        if kind.only_one:
            managed = [resource for resource in alike if getattr(resource.spec, "managed", True)]
            for other in managed[1:]:
                yield other, Fault((), f"{kind.only_one} {managed[0]}")


def _names(links: list[Resource]) -> Iterator[Finding]:
    """Others refer to a link by its name alone, whatever its kind."""
    seen: dict[str, Resource] = {}
    for resource in links:
        first = seen.setdefault(resource.name, resource)
        if first.kind != resource.kind:
            message = (
                f"{first} has the name {resource.name} too, and references go by it: rename one"
            )
            yield resource, Fault((), message)


def taken(
    resources: Iterable[Resource],
    location: tuple[str, ...],
    value: Callable[[Resource], Hashable],
    words: str,
    kind: str = "",
) -> Iterator[Finding]:
    """kind: findings on resources of this one only."""
    seen: dict[Hashable, Resource] = {}
    for resource in resources:
        first = seen.setdefault(value(resource), resource)
        if first is not resource and kind in ("", resource.kind):
            message = f"{words.format(value(resource))} {first}"
            yield resource, Fault(location, message)


def check_artifacts(declared: Iterable[Declared], places: RoutePlaces) -> Iterator[Finding]:
    """One artifact declared by several resources: the same by all, or it is a clash."""
    seen: dict[Key, tuple[Resource, Artifact]] = {}
    bulk: dict[tuple[str, bytes], list[tuple[Resource, Batch]]] = defaultdict(list)
    rules: list[tuple[Resource, Artifact]] = []
    for resource, intent in declared:
        if isinstance(intent, Waiting):
            continue
        if isinstance(intent, BulkIntent):
            batch = intent.batch
            bulk[batch.kind.name, batch.scope].append((resource, batch))
            continue
        artifact = intent.artifact
        if artifact.key.kind == RULE.name:
            # Those of uplinks come in pairs, by marks that nothing else has (policy_checks).
            if registry.kind(resource.kind).uplinks is None:
                rules.append((resource, artifact))
        elif artifact.key.kind != LINK.name:  # two Interfaces of one ifname are found by `check`
            holder, first = seen.setdefault(artifact.key, (resource, artifact))
            if first.fields != artifact.fields:
                yield resource, Fault((), _difference(artifact, first, holder))
    yield from _rules(rules)
    for (_, scope), batches in bulk.items():
        if len(batches) > 1:
            yield from _bulk(scope, batches, places)


def _difference(artifact: Artifact, other: Artifact, holder: Resource) -> str:
    fields = [
        f"{name} {value!r} here, {other.fields.get(name)!r} there"
        for name, value in artifact.fields.items()
        if other.fields.get(name) != value
    ]
    return f"{artifact.key} is declared differently by {holder}: {', '.join(fields)}"


def _rules(rules: Iterable[tuple[Resource, Artifact]]) -> Iterator[Finding]:
    """Two rules at one priority, or one mark with two tables; the same rule twice is shared."""
    priorities: dict[Hashable, tuple[Resource, Artifact]] = {}
    marks: dict[Hashable, tuple[Resource, Artifact]] = {}
    for resource, rule in rules:
        at = rule.fields["family"], rule.fields["priority"]
        holder, other = priorities.setdefault(at, (resource, rule))
        if other.key != rule.key:
            priority = rule.fields["priority"]
            message = f"{priority} is also the priority of {holder}, a different rule"
            yield resource, Fault(("priority",), message)
        if rule.fields["fwmark"] is None or rule.fields["action"] != "lookup":
            continue
        mark = tuple(rule.fields[name] for name in _SELECTORS)
        holder, other = marks.setdefault(mark, (resource, rule))
        if other.fields["table"] != rule.fields["table"]:
            message = (
                f"mark {rule.fields['fwmark']:#x} leads to table {rule.fields['table']} here and"
                f" to table {other.fields['table']} by {holder}"
            )
            yield resource, Fault(("fwmark",), message)


def _all_apart(lists: Sequence[Sequence[bytes]]) -> bool:
    """Whether no key is in two lists. The longest is only looked through: one route beside a
    hundred thousand costs no set of them."""
    *others, longest = sorted(lists, key=len)
    keys: set[bytes] = set()
    keys.update(*others)
    return len(keys) == sum(map(len, others)) and not few_of(keys, longest)


def _bulk(
    scope: bytes, batches: list[tuple[Resource, Batch]], places: RoutePlaces
) -> Iterator[Finding]:
    """Artifacts of a bulk kind with one identity and different fields. Built for lists of any
    length: where no key is there twice, nothing is done for a single one."""
    if _all_apart([batch.keys for _, batch in batches]):
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
        named = batch.artifact(key).key
        at = found[holder.index].get((scope, key), holder.place)
        message = f"{named} is declared differently by {holder.id} at {at}"
        yield resource, Fault((), message, at=found[resource.index].get((scope, key)))
    if more > 0:
        yield (
            clashing[-1][1],
            Fault(
                (), f"and {more} more {clashing[-1][2].kind.name}s that others declare differently"
            ),
        )
