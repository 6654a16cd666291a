"""From a YAML file to a Router: every resource read, checked, and checked against the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.config.document import Document, Location, Place, SourceFile, parse, read_file
from holdfast.errors import ConfigError, Problem
from holdfast.resources import clashes, overlaps, references, registry, shape
from holdfast.resources.compile import declared_intents
from holdfast.resources.document import (
    EMPTY_HINT,
    Frame,
    Metadata,
    Ownership,
    RouterDocument,
    RouterSpec,
)
from holdfast.resources.locate import route_places
from holdfast.resources.resource import Fault, Folder, Kind, Resource
from holdfast.resources.shape import Complaint, ShapeError
from holdfast.resources.site import site_of

__all__ = ["Ownership", "Resource", "Router", "load_router"]


@dataclass(frozen=True, slots=True)
class Router:
    name: str
    resources: tuple[Resource, ...]
    ownership: Ownership
    files: tuple[SourceFile, ...]  # the YAML file and every file it names, exactly as read
    warnings: tuple[Problem, ...] = ()

    @property
    def doubt(self) -> str:
        """Why this may not be all that was meant; empty where nothing says so."""
        cut = [file.path for file in self.files if _may_be_cut(file)]
        return f"{cut[0]} does not end with a newline, so it may be cut short" if cut else ""


def _may_be_cut(file: SourceFile) -> bool:
    """Half of a line is often a valid value, only not the one that was meant: 192.0.2.2 of
    192.0.2.254. A document in braces says itself where it ends."""
    content = file.content
    return bool(content) and not content.endswith(b"\n") and not content.startswith(b"{")


def load_router(path: Path, root: Path = Path("/")) -> Router:
    """Raises ConfigError with every problem there is, in file order."""
    document = parse(read_file(path))
    return _Loading(document, Folder(path.parent, root)).run()


_Ranked = tuple[tuple[int, int, int], Problem]  # by file, line and column


class _Loading:
    def __init__(self, document: Document, folder: Folder) -> None:
        self.document = document
        self.folder = folder
        self.files = [document.file]
        self.errors: list[_Ranked] = []
        self.warnings: list[_Ranked] = []
        self.kinds: dict[str, Kind] = {}
        self.names: dict[str, set[str]] = defaultdict(set)  # all that are declared, by kind
        self.partial: list[Resource] = []  # with what could be read of a faulty spec
        self.faulty: set[int] = set()  # resources left out of checks against others

    def run(self) -> Router:
        for trouble in self.document.troubles:
            self._add(self.document.place_at(trouble.position), "", trouble.message)
        router = self._shell()
        resources: list[Resource] = []
        if router is not None:
            self._collect(router, resources)
            self._check_together(resources)
        self._check_end()
        if self.errors or router is None:
            raise ConfigError(_in_order(self.errors))
        return Router(
            router.metadata.name,
            tuple(resources),
            router.spec.ownership,
            tuple(self.files),
            tuple(_in_order(self.warnings)),
        )

    def _check_end(self) -> None:
        """A file without a last newline is fine, unless it is half of one."""
        file = self.document.file
        if _may_be_cut(file):
            last = file.content.rpartition(b"\n")[2].decode()
            end = Place(file.path, file.content.count(b"\n") + 1, len(last) + 1)
            message = "the file does not end with a newline: it may be cut short"
            self._add(end, "", message, warning=not self.errors)

    def _shell(self) -> RouterDocument | None:
        if not isinstance(self.document.data, dict):
            message = "a Router document is expected: apiVersion, kind, metadata, spec"
            self._add(self.document.place(()), "", message)
            return None
        spec = self.document.data.get("spec")
        if isinstance(spec, dict) and "resources" not in spec:
            place = self.document.place(("spec",))
            self._add(place, "spec.resources", f"is missing; {EMPTY_HINT}")
        try:
            return RouterDocument.read(self.document.data)
        except ShapeError as error:
            self._complain(error, ())
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

    def _collect(self, router: RouterDocument, resources: list[Resource]) -> None:
        first: dict[str, Resource] = {}
        for index, data in enumerate(router.spec.resources or ()):
            resource = self._resource(index, data)
            if resource is None:
                continue
            holder = first.setdefault(resource.id, resource)
            if holder is not resource:
                self.faulty.add(index)
                at = self.document.place(_within(index, "metadata", "name"))
                self._add(at, "metadata.name", f"{holder} has this name already")
            resources.append(resource)

    def _resource(self, index: int, data: Any) -> Resource | None:
        try:
            frame = Frame.read(data)
        except ValueError as error:
            self._complain(error, _within(index))
            self._note_name(data)
            return None
        self.names[frame.kind].add(frame.metadata.name)
        if not self._known(index, frame):
            return None
        kind = self._kind(frame.kind)
        try:
            spec = kind.spec.read(frame.spec)
        except ValueError as error:
            self._complain(error, _within(index, "spec"))
            if isinstance(error, ShapeError) and error.rest is not None:
                self.partial.append(
                    Resource(frame.kind, frame.metadata.name, error.rest, "", index)
                )
            return None
        alias = registry.ALIAS in frame.api_version
        place = str(self.document.place(_within(index)))
        resource = Resource(frame.kind, frame.metadata.name, spec, place, index, alias)
        before = len(self.errors)
        self._faults(resource, kind.check(resource))
        if kind.read is not None and len(self.errors) == before:
            content = kind.read(resource, self.folder)
            if content.file is not None and content.file not in self.files:
                self.files.append(content.file)
            self._faults(resource, content.faults)
            resource = replace(resource, content=content.value)
        if len(self.errors) > before:
            self.faulty.add(index)
        return resource

    def _note_name(self, data: Any) -> None:
        """The name of a resource whose frame is faulty: references to it do lead somewhere."""
        if isinstance(data, dict) and isinstance(data.get("metadata"), dict):
            name, kind = data["metadata"].get("name"), data.get("kind")
            if isinstance(name, str) and isinstance(kind, str):
                self.names[kind].add(name)

    def _known(self, index: int, frame: Frame) -> bool:
        """Whether kind and group are ones that can be read."""
        trouble = registry.kind_trouble(frame.kind)
        if trouble:
            self._add(self.document.place(_within(index, "kind")), "kind", trouble)
            return False
        versions = registry.api_versions(frame.kind)
        if frame.api_version not in versions:
            at = self.document.place(_within(index, "apiVersion"))
            message = f"{frame.kind} belongs to {versions[0]}, not {frame.api_version!r}"
            self._add(at, "apiVersion", message)
            return False
        if frame.status is not None:
            alias = registry.ALIAS in frame.api_version
            at = self.document.place(_within(index, "status"), of_key=True)
            message = "is not read: Holdfast observes for itself" if alias else "unknown field"
            self._add(at, "status", message, warning=alias)
        return True

    def _kind(self, name: str) -> Kind:
        if name not in self.kinds:
            self.kinds[name] = registry.kind(name)
        return self.kinds[name]

    def _check_together(self, resources: list[Resource]) -> None:
        known = site_of(resources)
        for resource, fault in (
            *references.dangling([*resources, *self.partial], self.names),
            *references.circles(resources),
            *overlaps.check(resources),
            *clashes.check(resources),
            *(found for check in registry.checks(known.by_kind) for found in check(known)),
        ):
            if not fault.warning:
                self.faulty.add(resource.index)
            self._faults(resource, (fault,))
        sound = [
            resource
            for resource in resources
            if resource.index not in self.faulty
            # An Interface whose spec could not be read has no kernel name.
            and all(
                name in known.ifnames
                for _, kinds, name in shape.references(resource.spec)
                if "Interface" in kinds
            )
        ]
        for resource, fault in clashes.check_artifacts(
            declared_intents(sound, known),
            lambda resource, wanted: route_places(resource, self.files, self.document, wanted),
        ):
            self._faults(resource, (fault,))

    def _faults(self, resource: Resource, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._fault(resource, fault)

    def _fault(self, resource: Resource, fault: Fault) -> None:
        if fault.at is not None:
            self._add(fault.at, "", fault.message, warning=fault.warning, after=resource.index)
            return
        location = ("spec", *fault.location)
        at = self.document.place(_within(resource.index, *location))
        self._add(at, _dotted(location), fault.message, warning=fault.warning)

    def _complain(self, error: ValueError, around: Location) -> None:
        found = error.complaints if isinstance(error, ShapeError) else [Complaint((), str(error))]
        for complaint in found:
            location = (*around, *complaint.location)
            place = self.document.place(location, of_key=complaint.of_key)
            inside = location[3:] if len(around) > 2 else location
            self._add(place, _dotted(inside), complaint.message)

    def _add(
        self, place: Place, path: str, message: str, *, warning: bool = False, after: int = -1
    ) -> None:
        """after: for places in other files, the resource that names the file."""
        rank = 0 if place.path == self.document.file.path else after + 1
        problem = Problem(str(place), path, message)
        found = self.warnings if warning else self.errors
        found.append(((rank, place.line, place.column), problem))


def _in_order(ranked: list[_Ranked]) -> list[Problem]:
    return [problem for _, problem in sorted(ranked, key=lambda entry: entry[0])]


def _within(index: int, *rest: str | int) -> Location:
    return ("spec", "resources", index, *rest)


def _dotted(location: Location) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.removeprefix(".")
