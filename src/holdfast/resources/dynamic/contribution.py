"""The resources of a part, read by stricter rules than those of the startup file.

Whoever can write a part is not trusted as the administrator is. So a part cannot declare a kind
that is not open to other sources, name files of this machine (which Holdfast, as root, would read
for it), or bring secrets along (which the ledger would keep).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.config.document import Location, Place
from holdfast.config.part import Part, id_of
from holdfast.dataclass import dataclass, replace
from holdfast.errors import ConfigError, Problem
from holdfast.resources import registry
from holdfast.resources.resource import Folder, Resource
from holdfast.resources.spec.reading import Reading, dotted

# What is declared by increments stands after all parts, in the order in which it was declared.
FIRST = 1 << 40


@dataclass(frozen=True, slots=True)
class Contribution:
    part: Part
    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]  # each of them is a reason to reject the part as a whole
    warnings: tuple[Problem, ...]


def read(part: Part, first: int) -> Contribution:
    """first: the index of its first resource in the effective config, unless their numbers say
    where they stand."""
    origin = _Origin(part)
    reading = Reading(origin, _NoFiles(Path(), Path()), ("resources",), first)
    forbidden = list(_forbidden(part, origin))
    if forbidden and not part.by_increments:
        return Contribution(part, (), tuple(forbidden), ())
    resources = reading.collect([dict(raw) for raw in part.resources])
    if part.numbers is not None:
        numbers = part.numbers
        resources = [
            replace(resource, index=FIRST + numbers[resource.index - first])
            for resource in resources
        ]
    problems = (*forbidden, *reading.errors, *_beyond_limits(resources))
    return Contribution(part, tuple(resources), problems, tuple(reading.warnings))


@dataclass(frozen=True, slots=True)
class _Origin:
    given: Part

    @property
    def part(self) -> str:
        return self.given.ref

    def place(self, location: Location, *, of_key: bool = False) -> Place:  # noqa: ARG002
        """As near as it gets: a part has no lines."""
        return place(self.given, *location[1:2])


def place(part: Part, *number: str | int) -> Place:
    """Of a resource in a part: `Plugin/inventory#12 resources[3]`, `Owner/ci IPv4Route/office`."""
    if not number:
        return Place(part.ref, 0, 0)
    if part.by_increments:
        with suppress(KeyError, TypeError):  # a frame that is faulty itself
            return Place(f"{part.ref} {'/'.join(id_of(part.resources[int(number[0])]))}", 0, 0)
    return Place(f"{part.ref} resources[{number[0]}]", 0, 0)


class _NoFiles(Folder):
    def find(self, name: str) -> Path:
        raise ConfigError(
            [Problem(name, "", "a part cannot name files; only the startup file can")]
        )


def _forbidden(part: Part, origin: _Origin) -> Iterator[Problem]:
    for number, raw in enumerate(part.resources):
        kind = raw.get("kind")
        found = registry.find(kind) if isinstance(kind, str) else None
        if found is None:
            continue  # which is told when it is read
        if found.open_to_others is None:
            message = f"a {kind} can stand in the startup file alone"
            yield Problem(str(origin.place(("resources", number))), "kind", message)


def _beyond_limits(resources: list[Resource]) -> Iterator[Problem]:
    for resource in resources:
        against = registry.kind(resource.kind).open_to_others
        for fault in against(resource) if against is not None else ():
            yield Problem(resource.place, dotted(("spec", *fault.location)), fault.message)
