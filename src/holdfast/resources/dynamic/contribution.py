"""The resources of a part, read by stricter rules than those of the startup file.

Whoever can write a part is not trusted as the administrator is. So a part cannot say what sources
may do, name files of this machine (which Holdfast, as root, would read for it), or bring secrets
along (which the ledger would keep).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.config.document import Location, Place
from holdfast.config.part import Part
from holdfast.dataclass import dataclass
from holdfast.errors import ConfigError, Problem
from holdfast.resources import registry
from holdfast.resources.reading import Reading
from holdfast.resources.resource import Folder, Resource

# Secrets that stand in the spec itself, by kind; those in files cannot be named anyway.
SECRETS = {"PPPoEInterface": "password"}


@dataclass(frozen=True, slots=True)
class Contribution:
    part: Part
    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]  # each of them is a reason to reject the part as a whole
    warnings: tuple[Problem, ...]


def read(part: Part, first: int) -> Contribution:
    """first: the index of its first resource in the effective config."""
    reading = Reading(_Origin(part.ref), _NoFiles(Path(), Path()), ("resources",), first)
    forbidden = list(_forbidden(part))
    if forbidden:
        return Contribution(part, (), tuple(forbidden), ())
    resources = reading.collect([dict(raw) for raw in part.resources])
    problems = (*reading.errors, *_secrets(resources))
    return Contribution(part, tuple(resources), problems, tuple(reading.warnings))


@dataclass(frozen=True, slots=True)
class _Origin:
    part: str

    def place(self, location: Location, *, of_key: bool = False) -> Place:  # noqa: ARG002
        """As near as it gets: a part has no lines."""
        return place(self.part, *location[1:2])


def place(ref: str, *number: str | int) -> Place:
    """Of a resource in a part."""
    return Place(f"{ref} resources[{number[0]}]" if number else ref, 0, 0)


class _NoFiles(Folder):
    def find(self, name: str) -> Path:
        raise ConfigError(
            [Problem(name, "", "a part cannot name files; only the startup file can")]
        )


def _forbidden(part: Part) -> Iterator[Problem]:
    for number, raw in enumerate(part.resources):
        kind = raw.get("kind")
        if isinstance(kind, str) and kind in registry.STARTUP_ONLY:
            message = f"a {kind} can stand in the startup file alone"
            yield Problem(str(place(part.ref, number)), "kind", message)


def _secrets(resources: list[Resource]) -> Iterator[Problem]:
    for resource in resources:
        field = SECRETS.get(resource.kind, "")
        if field and getattr(resource.spec, field) is not None:
            message = "a part cannot hold a secret: the ledger would keep it"
            yield Problem(resource.place, f"spec.{field}", message)
