"""Which resources are on other links than another configuration has them on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from holdfast.engine.policy import Moved
from holdfast.resources import registry
from holdfast.resources.resource import Resource
from holdfast.resources.site import ifname_of
from holdfast.resources.spec.shape import DEVICE, LINK, Spec, references

_Resources = Sequence[Resource]
_Links = Mapping[str, Set[str]]  # kernel names, by resource
_Moves = Iterator[Moved]


def link_names(resources: Iterable[Resource]) -> frozenset[str]:
    """The kernel names of all links that are declared to be there."""
    links = registry.having(resources, lambda kind: kind.link)
    return frozenset(ifname_of(link) for link in links if _stays(link))


def moved(before: Iterable[Resource], after: Iterable[Resource]) -> Iterator[Moved]:
    """What hangs on a link now and hung on another before. A link itself hangs on none but those
    it stands on: one that nothing refers to can be called anything."""
    was, now = list(before), list(after)
    former, present = _links(was), _links(now)
    for owner, links in present.items():
        yield from _between(owner, former.get(owner, frozenset()), links)
    yield from _under_other_names(was, former, now, present)
    yield from _misspelt(was, former, now, present)


def _between(owner: str, was: Set[str], links: Set[str]) -> Iterator[Moved]:
    for name in sorted(links - was):
        for gone in sorted(was - links):
            yield Moved(owner, name, gone)


def _under_other_names(was: _Resources, former: _Links, now: _Resources, present: _Links) -> _Moves:
    """A resource that is gone, and a new one that says the same but for the names it refers to."""
    old = _by_content(was, former.keys() - {resource.id for resource in now})
    new = _by_content(now, present.keys() - {resource.id for resource in was})
    for content, owners in new.items():
        left = {link for gone in old.get(content, ()) for link in former[gone]}
        taken = {link for owner in owners for link in present[owner]}
        for owner in owners:
            yield from _between(owner, left, present[owner] | (left & taken))


def _misspelt(was: _Resources, former: _Links, now: _Resources, present: _Links) -> _Moves:
    """A link that nothing declares any more, and a new one with a name like it."""
    gone = {link for links in former.values() for link in links} - link_names(now)
    fresh = link_names(now) - link_names(was)
    if not gone or not fresh:
        return
    import difflib  # only mistakes need it

    for owner, links in present.items():
        for name in sorted(links & fresh):
            for near in difflib.get_close_matches(name, sorted(gone), n=1):
                yield Moved(owner, name, near)


def _by_content(resources: _Resources, owners: Set[str]) -> Mapping[object, list[str]]:
    """Those of whom it can be told what they are by what they say, as an address or a destination;
    not a zone, which says nothing but names."""
    found: dict[object, list[str]] = defaultdict(list)
    for resource in resources:
        if resource.id in owners and any(
            entry.required and not entry.shape.refers for entry in resource.spec.entries
        ):
            found[resource.kind, _content(resource.spec)].append(resource.id)
    return found


def _content(spec: Spec) -> tuple[object, ...]:
    """All that it says, without the names of other resources."""
    return tuple(
        _value(getattr(spec, entry.attribute)) for entry in spec.entries if not entry.shape.refers
    )


def _value(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_value(each) for each in value)
    return _content(value) if isinstance(value, Spec) else repr(value)


def _links(resources: Iterable[Resource]) -> _Links:
    """The kernel names of the links that each resource refers to, by its id."""
    known = list(resources)
    ifnames: dict[str, str] = {}
    for link in registry.having(known, lambda kind: kind.link):
        ifnames.setdefault(link.name, ifname_of(link))
    found: dict[str, set[str]] = defaultdict(set)
    for resource in filter(_stays, known):
        for _, asked, name in references(resource.spec):
            if name in ifnames and asked in (LINK, DEVICE):
                found[resource.id].add(ifnames[name])
    return found


def _stays(resource: Resource) -> bool:
    return getattr(resource.spec, "state", "") != "absent"
