"""References between resources: do they lead somewhere, and not in circles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from holdfast.config.document import Location
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.shape import references

Finding = tuple[Resource, Fault]


def dangling(resources: Iterable[Resource], declared: Mapping[str, Set[str]]) -> Iterator[Finding]:
    """References to what is not declared, or is declared absent.

    declared: names by kind, those of resources with faults of their own included.
    """
    resources = list(resources)
    absent = {
        (resource.kind, resource.name): resource
        for resource in resources
        if getattr(resource.spec, "state", "") == "absent"
    }
    links: dict[str, Resource] = {}
    for resource in resources:
        for location, kinds, name in references(resource.spec):
            found = [kind for kind in kinds if name in declared.get(kind, ())]
            if not found:
                links = links or _by_ifname(resources)
                yield resource, Fault(location, _nobody(kinds, name, declared, links))
                continue
            gone = absent.get((found[0], name))
            if gone is not None and getattr(resource.spec, "state", "") != "absent":
                yield resource, Fault(location, f"{gone} is declared absent")


def _by_ifname(resources: Iterable[Resource]) -> dict[str, Resource]:
    return {
        resource.spec.ifname: resource
        for resource in resources
        if getattr(resource.spec, "ifname", "")
    }


def _nobody(
    kinds: tuple[str, ...],
    name: str,
    declared: Mapping[str, Set[str]],
    links: Mapping[str, Resource],
) -> str:
    link = links.get(name)
    if link is not None and link.kind in kinds:
        return f"{name!r} is the kernel's name of {link}; write {link.name!r}"
    from holdfast.resources.nearest import nearest  # only mistakes need it

    names = {other for kind in kinds for other in declared.get(kind, ())}
    hint = nearest(name, names) or f"; there is {_listed(names) or 'none'}"
    return f"no {' or '.join(kinds)} is named {name!r}{hint}"


def _listed(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(shown[:8]) + more


def unbroken(resources: Sequence[Resource], broken: Set[int]) -> list[Resource]:
    """Those that lead, over any number of references, to nothing that is broken or not there.

    broken: indices of resources. What is asked of the others, and of a site made of them alone,
    finds every resource that it goes by.
    """
    there = Counter((one.kind, one.name) for one in resources)
    referring: dict[tuple[str, str], list[tuple[Resource, tuple[str, ...]]]] = defaultdict(list)
    out = {one.index: one for one in resources if one.index in broken}
    for resource in resources:
        for _, kinds, name in references(resource.spec):
            for kind in kinds:
                referring[kind, name].append((resource, kinds))
            if not any(there[kind, name] for kind in kinds):
                out[resource.index] = resource
    left = list(out.values())
    while left:
        gone = left.pop()
        there[gone.kind, gone.name] -= 1
        if there[gone.kind, gone.name]:
            continue  # another of the same name
        for resource, kinds in referring[gone.kind, gone.name]:
            if resource.index not in out and not any(there[kind, gone.name] for kind in kinds):
                out[resource.index] = resource
                left.append(resource)
    return [one for one in resources if one.index not in out]


def circles(resources: Iterable[Resource]) -> Iterator[Finding]:
    """Interfaces that are, over masters and parents, on top of themselves."""
    below: dict[str, list[tuple[Location, str]]] = {}
    interfaces: dict[str, Resource] = {}
    for resource in resources:
        if resource.kind == "Interface":
            spec = resource.spec
            interfaces[resource.name] = resource
            edges: list[tuple[Location, str]] = []
            if spec.master:
                edges.append((("master",), spec.master))
            if spec.parent:
                edges.append(((spec.type, "parent"), spec.parent))
            below[resource.name] = edges
    done: set[str] = set()
    for name in below:
        yield from _walk(name, below, interfaces, done)


def _walk(
    start: str,
    below: Mapping[str, list[tuple[Location, str]]],
    interfaces: Mapping[str, Resource],
    done: set[str],
) -> Iterator[Finding]:
    """Depth first with a stack of its own: a chain may be longer than Python's."""
    path: dict[str, None] = {}
    stack: list[tuple[str, Iterator[tuple[Location, str]]]] = []
    if start not in done:
        stack.append((start, iter(below[start])))
        path[start] = None
    while stack:
        name, edges = stack[-1]
        location, target = next(edges, ((), ""))
        if not target:
            done.add(name)
            stack.pop()
            path.pop(name)
        elif target in path:
            names = list(path)
            circle = [*names[names.index(target) :], target]
            yield interfaces[name], Fault(location, f"goes in a circle: {' -> '.join(circle)}")
        elif target in below and target not in done:
            stack.append((target, iter(below[target])))
            path[target] = None
