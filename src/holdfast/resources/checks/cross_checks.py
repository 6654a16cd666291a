"""Resources against each other: whatever one alone cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from holdfast.resources import registry
from holdfast.resources.checks import clashes, overlaps, references
from holdfast.resources.checks.clashes import RoutePlaces
from holdfast.resources.compile import declared_intents
from holdfast.resources.resource import Finding, Resource
from holdfast.resources.site import site_of


def check(
    resources: Sequence[Resource],
    names: Mapping[str, Set[str]],
    places: RoutePlaces,
    *,
    partial: Iterable[Resource] = (),
    faulty: Iterable[int] = (),
) -> Iterator[Finding]:
    """names: all that are declared, by kind, those of resources that could not be read included.
    partial: what could be read of those. faulty: indices of resources with faults of their own,
    whose artifacts, and those of what leads to them, are not compared."""
    known = site_of(resources)
    left_out = set(faulty)
    for resource, fault in (
        *references.dangling([*resources, *partial], names),
        *overlaps.check(known),
        *clashes.check(known),
        *(found for check in registry.checks(known.by_kind) for found in check(known)),
    ):
        if not fault.warning:
            left_out.add(resource.index)
        yield resource, fault
    # Artifacts are compiled, and a kind goes by whatever a reference leads to: only what is whole
    # to the end of every reference can be.
    whole = references.unbroken(resources, left_out)
    yield from clashes.check_artifacts(declared_intents(whole, site_of(whole)), places)
