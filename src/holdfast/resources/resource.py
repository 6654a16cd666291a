"""What a resource is, and what a kind of resource has to declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.config.document import Location, Place, SourceFile, read_file
from holdfast.dataclass import dataclass, field
from holdfast.errors import ConfigError, Problem

if TYPE_CHECKING:
    from holdfast.engine.intent import BulkIntent, Intent, Waiting
    from holdfast.resources.shape import Spec
    from holdfast.resources.site import Site


Identity = tuple[bytes, bytes]  # scope and key of a route


@dataclass(frozen=True, slots=True)
class Resource:
    kind: str
    name: str
    spec: Any  # an instance of the kind's spec
    place: str  # "router.yaml:12:5", or "Plugin/inventory#12 resources[3]"
    index: int = field(repr=False)  # in spec.resources; of parts, after those of the file
    alias: bool = field(default=False, repr=False)  # declared under routerd.net
    content: Any = field(default=None, repr=False)  # what the kind read besides its spec
    part: str = field(default="", repr=False)  # that contributed it; "" for the startup file

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"

    def __str__(self) -> str:
        return f"{self.id} at {self.place}"


# An intent, or why there is none yet, with the resource that has it.
Declared = tuple[Resource, "Intent | BulkIntent | Waiting"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with one resource."""

    location: Location  # inside the spec
    message: str
    warning: bool = False
    at: Place | None = None  # where it stands, if not at `location`


Finding = tuple[Resource, Fault]


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the files stand that a configuration names."""

    path: Path  # that of the YAML file
    root: Path  # what `--root` says
    # What kinds read besides the spec of each resource (by its id) when this was last loaded: what
    # it was made of is compared, and need not be read once more.
    before: Mapping[str, Any] = field(default_factory=dict)
    # Files as they were read once, by their paths: they are taken from here alone then. Secrets
    # are never kept, so those are read where they are.
    stored: Mapping[str, bytes] | None = field(default=None, repr=False)

    def find(self, name: str) -> Path:
        """Relative names start from the YAML file, absolute ones from the root."""
        return self.root / name.lstrip("/") if name.startswith("/") else self.path / name

    def read(self, name: str) -> SourceFile:
        """Raises ConfigError in the system's own words."""
        return read_source(self.find(name), self.stored)


def read_source(
    path: Path, stored: Mapping[str, bytes] | None, *, handed: bool = False
) -> SourceFile:
    """A file from the disk, or as it is stored. handed: as `read_file` has it."""
    if stored is None:
        return read_file(path, handed=handed)
    if str(path) not in stored:
        raise ConfigError([Problem(str(path), "", "is not among the files that were stored")])
    return SourceFile(str(path), stored[str(path)])


@dataclass(frozen=True, slots=True)
class Content:
    """What a kind read besides its spec."""

    value: Any
    file: SourceFile | None = None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """The one declaration of a resource kind."""

    name: str
    spec: type[Spec]
    summary: str
    emits: tuple[str, ...]  # artifact kinds
    example: str  # YAML of a spec, for the documentation
    # What a resource asks for by itself; what it contributes to with others is for a combiner
    # (registry.COMBINERS).
    intents: Callable[[Resource, Site], Iterable[Intent | BulkIntent | Waiting]]
    check: Callable[[Resource], Iterable[Fault]] = lambda _resource: ()
    read: Callable[[Resource, Folder], Content] | None = None
    effect: str = ""  # of a kind that has no artifact: what it does then


def nothing_alone(_resource: Resource, _site: Site) -> Iterable[Intent | BulkIntent | Waiting]:
    """The intents of a kind that only contributes to what a combiner makes."""
    return ()
