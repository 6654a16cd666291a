"""References between resources: do they lead somewhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from holdfast.resources import registry
from holdfast.resources.resource import Fault, Resource
from holdfast.resources.spec.shape import references

Finding = tuple[Resource, Fault]


def dangling(resources: Iterable[Resource], declared: Mapping[str, Set[str]]) -> Iterator[Finding]:
    """References to what is not declared, or is declared absent.

    declared: names by kind, those of resources with faults of their own included.
    """
    resources = list(resources)
    absent = {
        (asked, resource.name): resource
        for resource in resources
        if getattr(resource.spec, "state", "") == "absent"
        for asked in registry.referred_as(resource.kind)
    }
    there: dict[str, set[str]] = defaultdict(set)
    for kind, named in declared.items():
        for asked in registry.referred_as(kind):
            there[asked] |= named
    links: dict[str, Resource] = {}
    for resource in resources:
        for location, asked, name in references(resource.spec):
            if name not in there[asked]:
                links = links or _by_ifname(resources)
                yield resource, Fault(location, _nobody(asked, name, there[asked], links))
                continue
            gone = absent.get((asked, name))
            if gone is not None and getattr(resource.spec, "state", "") != "absent":
                yield resource, Fault(location, f"{gone} is declared absent")


def _by_ifname(resources: Iterable[Resource]) -> dict[str, Resource]:
    return {
        resource.spec.ifname: resource
        for resource in resources
        if getattr(resource.spec, "ifname", "")
    }


def _nobody(asked: str, name: str, names: Set[str], links: Mapping[str, Resource]) -> str:
    link = links.get(name)
    if link is not None and asked in registry.referred_as(link.kind):
        return f"{name!r} is the kernel's name of {link}; write {link.name!r}"
    from holdfast.resources.spec.nearest import nearest  # only mistakes need it

    hint = nearest(name, names) or f"; there is {_listed(names) or 'none'}"
    return f"no {registry.referred(asked)} is named {name!r}{hint}"


def _listed(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(shown[:8]) + more


def unbroken(resources: Sequence[Resource], broken: Set[int]) -> list[Resource]:
    """Those that lead, over any number of references, to nothing that is broken or not there.

    broken: indices of resources. What is asked of the others, and of a site made of them alone,
    finds every resource that it goes by.
    """
    there: Counter[tuple[str, str]] = Counter()
    referring: dict[tuple[str, str], list[Resource]] = defaultdict(list)
    out = {resource.index: resource for resource in resources if resource.index in broken}
    for resource in resources:
        there.update((asked, resource.name) for asked in registry.referred_as(resource.kind))
    for resource in resources:
        for _, asked, name in references(resource.spec):
            referring[asked, name].append(resource)
            if not there[asked, name]:
                out[resource.index] = resource
    left = list(out.values())
    while left:
        gone = left.pop()
        for asked in registry.referred_as(gone.kind):
            there[asked, gone.name] -= 1
            if there[asked, gone.name]:
                continue  # another of the same name
            for resource in referring[asked, gone.name]:
                if resource.index not in out:
                    out[resource.index] = resource
                    left.append(resource)
    return [resource for resource in resources if resource.index not in out]
