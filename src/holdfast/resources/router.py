"""From a YAML file to a Router: every resource read, checked, and checked against the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.config.document import Document, Location, Place, SourceFile, parse
from holdfast.config.part import RECORD
from holdfast.config.regular_file import is_handed
from holdfast.dataclass import dataclass, field
from holdfast.errors import ConfigError, Problem
from holdfast.resources.checks import cross_checks
from holdfast.resources.locate import route_places
from holdfast.resources.registry import router_versions
from holdfast.resources.resource import Folder, Resource, read_source
from holdfast.resources.spec.document import (
    EMPTY_HINT,
    Confirm,
    Metadata,
    Ownership,
    RouterDocument,
    RouterSpec,
)
from holdfast.resources.spec.reading import Reading, name_version
from holdfast.resources.spec.shape import ShapeError

__all__ = ["Ownership", "Resource", "Router", "load_router"]

_RESOURCES: Location = ("spec", "resources")


@dataclass(frozen=True, slots=True)
class Router:
    name: str
    resources: tuple[Resource, ...]
    ownership: Ownership
    # The YAML file and every file it names, exactly as read; of an effective config, one more for
    # every part in force.
    files: tuple[SourceFile, ...]
    warnings: tuple[Problem, ...] = ()
    confirm: Confirm = field(default_factory=Confirm)

    @property
    def doubt(self) -> str:
        """Why this may not be all that was meant; empty where nothing says so."""
        # Records of parts were never written by hand, and are made only where they are needed.
        read = (file for file in self.files if not file.path.startswith(RECORD))
        cut = [file.path for file in read if _may_be_cut(file)]
        return f"{cut[0]} does not end with a newline, so it may be cut short" if cut else ""


def _may_be_cut(file: SourceFile) -> bool:
    """Half of a line is often a valid value, only not the one that was meant: 192.0.2.2 of
    192.0.2.254. A document in braces says itself where it ends."""
    content = file.content
    return bool(content) and not content.endswith((b"\n", b"\r")) and not content.startswith(b"{")


def load_router(
    path: Path,
    root: Path = Path("/"),
    stored: Mapping[str, bytes] | None = None,
    again: Router | None = None,
    *,
    handed: bool = False,
    on_host: bool = True,
) -> Router:
    """Raises ConfigError with every problem there is, in file order.

    stored: the files by their paths, as a generation of the ledger keeps them, to be read instead
    of those on disk. again: what the file was the last time, for what need not be read once more.
    handed: it may be a pipe that the command was started with; files it names are then looked for
    where the command is run. on_host: this is the machine it is for, where its secrets have to be.
    """
    known = again.resources if again is not None else ()
    before = {
        resource.id: resource.content
        for resource in known
        if resource.content is not None and not resource.part
    }
    document = parse(read_source(path, stored, handed=handed))
    around = Path.cwd() if handed and is_handed(path) else path.parent
    return _Loading(document, Folder(around, root, before, stored, on_host)).run()


@dataclass(frozen=True, slots=True)
class _Origin:
    document: Document
    part: str = ""

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        return self.document.place(location, of_key=of_key)


class _Loading:
    def __init__(self, document: Document, folder: Folder) -> None:
        self.document = document
        self.reading = Reading(_Origin(document), folder, _RESOURCES)

    def run(self) -> Router:
        for trouble in self.document.troubles:
            self.reading.add(self.document.place_at(trouble.position), "", trouble.message)
        router = self._shell()
        resources: list[Resource] = []
        if router is not None:
            resources = self.reading.collect(router.spec.resources or ())
            self._check_together(resources)
        self._check_end()
        if self.reading.errors or router is None:
            raise ConfigError(self.reading.errors)
        return Router(
            router.metadata.name,
            tuple(resources),
            router.spec.ownership,
            (self.document.file, *self.reading.files),
            tuple(self.reading.warnings),
            router.spec.confirm,
        )

    def _check_end(self) -> None:
        """A file without a last newline is fine, unless it is half of one."""
        file = self.document.file
        if _may_be_cut(file):
            last = file.content.rpartition(b"\n")[2].decode()
            end = Place(file.path, file.content.count(b"\n") + 1, len(last) + 1)
            message = "the file does not end with a newline: it may be cut short"
            self.reading.add(end, "", message, warning=not self.reading.errors)

    def _shell(self) -> RouterDocument | None:
        if not isinstance(self.document.data, dict):
            message = "a Router document is expected: apiVersion, kind, metadata, spec"
            self.reading.add(self.document.place(()), "", message)
            return None
        spec = self.document.data.get("spec")
        if isinstance(spec, dict) and "resources" not in spec:
            place = self.document.place(("spec",))
            self.reading.add(place, "spec.resources", f"is missing; {EMPTY_HINT}")
        try:
            return RouterDocument.read(self.document.data)
        except ShapeError as error:
            name_version(error, self.document.data, router_versions()[0])
            self.reading.complain(error, ())
            return self._salvaged()

    def _salvaged(self) -> RouterDocument | None:
        """A frame to go on with, so that the resources of a faulty document are checked too."""
        spec = self.document.data.get("spec")
        resources = spec.get("resources") if isinstance(spec, dict) else None
        if not isinstance(resources, list):
            return None
        return RouterDocument(
            metadata=Metadata(name="faulty"), spec=RouterSpec(resources=tuple(resources))
        )

    def _check_together(self, resources: list[Resource]) -> None:
        reading = self.reading
        files = (self.document.file, *reading.files)
        for resource, fault in cross_checks.check(
            resources,
            reading.names,
            lambda resource, wanted: route_places(resource, files, lambda: self.document, wanted),
            partial=reading.partial,
            faulty=reading.faulty,
        ):
            reading.faults(resource, (fault,))
