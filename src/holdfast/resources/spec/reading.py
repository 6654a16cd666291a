"""Resources one by one: from plain values to specs, with everything that is wrong on the way."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from holdfast.config.document import Location, Place, SourceFile
from holdfast.dataclass import replace
from holdfast.errors import ConfigError, Problem
from holdfast.resources import registry
from holdfast.resources.resource import Content, Fault, Folder, Resource
from holdfast.resources.spec.document import Frame
from holdfast.resources.spec.shape import Complaint, ShapeError


class Origin(Protocol):
    """Where a list of resources stands."""

    @property
    def part(self) -> str:
        """That holds it; "" for a file."""

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        """Of a value inside, counted from the document or from the part."""


# Of a message: the longest there is of our own names all the kinds.
_LONGEST, _HEAD, _TAIL = 2000, 80, 900
_RUN = re.compile(r"\S{200,}")
_UNSAID = "is not said: false to routerd.net, true to Holdfast; say which it shall be"
_Ranked = tuple[tuple[int, int, int, int], Problem]  # by file, line, column and resource


class Reading:
    """Of the resources of one origin. What is wrong is collected in `errors` and `warnings`."""

    def __init__(self, origin: Origin, folder: Folder, around: Location, first: int = 0) -> None:
        """around: where the list stands in its origin. first: the index of its first resource."""
        self.origin = origin
        self.folder = folder
        self.around = around
        self.first = first
        self.files: list[SourceFile] = []
        self.names: dict[str, set[str]] = defaultdict(set)  # all that are declared, by kind
        self.partial: list[Resource] = []  # with what could be read of a faulty spec
        self.faulty: set[int] = set()  # resources to be left out of checks against others
        self._home = origin.place(()).path
        self._errors: list[_Ranked] = []
        self._warnings: list[_Ranked] = []

    @property
    def errors(self) -> list[Problem]:
        return _in_order(self._errors)

    @property
    def warnings(self) -> list[Problem]:
        return _in_order(self._warnings)

    def collect(self, given: Sequence[Any]) -> list[Resource]:
        """Those that could be read; some of them may be faulty nevertheless."""
        first: dict[str, Resource] = {}
        resources = []
        for number, data in enumerate(given):
            index = self.first + number
            resource = self._resource(index, data)
            if resource is None:
                continue
            holder = first.setdefault(resource.id, resource)
            if holder is not resource:
                self.faulty.add(index)
                at = self._place(index, "metadata", "name")
                self.add(at, "metadata.name", f"{holder} has this name already", after=index)
            resources.append(resource)
        return resources

    def faults(self, resource: Resource, faults: Iterable[Fault]) -> None:
        """Things wrong with a resource of this origin."""
        for fault in faults:
            if fault.at is not None:
                at, path = fault.at, ""
            else:
                location = ("spec", *fault.location)
                at, path = self._place(resource.index, *location), dotted(location)
            self.add(at, path, fault.message, warning=fault.warning, after=resource.index)

    def complain(
        self, error: ValueError, around: Location, skip: int = 0, *, after: int = -1
    ) -> None:
        """skip: so many steps of each location are not worth saying."""
        found = error.complaints if isinstance(error, ShapeError) else [Complaint((), str(error))]
        for complaint in found:
            location = (*around, *complaint.location)
            place = self.origin.place(location, of_key=complaint.of_key)
            self.add(place, dotted(location[skip:]), complaint.message, after=after)

    def add(
        self, place: Place, path: str, message: str, *, warning: bool = False, after: int = -1
    ) -> None:
        """after: the resource it is about, or that names the file it stands in."""
        elsewhere = place.line and place.path != self._home
        rank = after + 1 if elsewhere else 0, place.line, place.column, after
        found = self._warnings if warning else self._errors
        found.append((rank, Problem(str(place), path, _shortened(message))))

    def _place(self, index: int, *location: str | int, of_key: bool = False) -> Place:
        return self.origin.place((*self._within(index), *location), of_key=of_key)

    def _within(self, index: int) -> Location:
        return (*self.around, index - self.first)

    def _resource(self, index: int, data: Any) -> Resource | None:
        within = self._within(index)
        try:
            frame = Frame.read(data)
        except ValueError as error:
            name_version(error, data, _version(data))
            self.complain(error, within, len(within), after=index)
            self._note_name(data)
            return None
        self.names[frame.kind].add(frame.metadata.name)
        if not self._known(index, frame):
            return None
        kind = registry.kind(frame.kind)
        try:
            spec = kind.spec.read(frame.spec)
        except ValueError as error:
            self.complain(error, (*within, "spec"), len(within), after=index)
            if isinstance(error, ShapeError) and error.rest is not None:
                name = frame.metadata.name
                self.partial.append(Resource(frame.kind, name, error.rest, "", index))
            return None
        alias = registry.ALIAS in frame.api_version
        place = str(self._place(index))
        resource = Resource(
            frame.kind,
            frame.metadata.name,
            spec,
            place,
            index,
            alias,
            part=self.origin.part,
            labels=frame.metadata.labels,
            annotations=frame.metadata.annotations,
        )
        before = len(self._errors)
        if alias and kind.alias_asks_managed and "managed" not in frame.spec:
            self.faults(resource, (Fault(("managed",), _UNSAID, warning=True),))
        self.faults(resource, kind.check(resource))
        if kind.read is not None and len(self._errors) == before:
            resource = self._with_content(resource, kind.read)
        if len(self._errors) > before:
            self.faulty.add(index)
        return resource

    def _with_content(
        self, resource: Resource, read: Callable[[Resource, Folder], Content]
    ) -> Resource:
        try:
            content = read(resource, self.folder)
        except ConfigError as error:
            # It names a file, and stands where nothing may name one.
            said = (f"{problem.place}: {problem.message}" for problem in error.problems)
            self.faults(resource, (Fault((), message) for message in said))
            return resource
        if content.file is not None and content.file not in self.files:
            self.files.append(content.file)
        self.faults(resource, content.faults)
        return replace(resource, content=content.value)

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
            self.add(self._place(index, "kind"), "kind", trouble, after=index)
            return False
        versions = registry.api_versions(frame.kind)
        if frame.api_version not in versions:
            at = self._place(index, "apiVersion")
            message = f"{frame.kind} belongs to {versions[0]}, not {frame.api_version!r}"
            self.add(at, "apiVersion", message, after=index)
            return False
        if frame.status is not None:
            alias = registry.ALIAS in frame.api_version
            at = self._place(index, "status", of_key=True)
            message = "is not read: Holdfast observes for itself" if alias else "unknown field"
            self.add(at, "status", message, warning=alias, after=index)
        return True


def name_version(error: ValueError, data: Any, version: str) -> None:
    """Says which apiVersion it is that is missing, where that is known."""
    if isinstance(error, ShapeError) and version and "apiVersion" not in data:
        for complaint in error.complaints:
            if complaint.location == ("apiVersion",):
                complaint.message += f": write `apiVersion: {version}`"


def _version(data: Any) -> str:
    """The one that a resource of this kind has; "" where the kind does not tell."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or registry.kind_trouble(kind):
        return ""
    return registry.api_versions(kind)[0]


def _shortened(message: str) -> str:
    """A value of megabytes is not said back whole; what is wrong with it stands around it."""
    if len(message) <= _LONGEST:
        return message
    message = _RUN.sub(lambda found: f"{found[0][:_HEAD]}… ({len(found[0])} characters)", message)
    return message if len(message) <= _LONGEST else f"{message[:_HEAD]} … {message[-_TAIL:]}"


def _in_order(ranked: list[_Ranked]) -> list[Problem]:
    return [problem for _, problem in sorted(ranked, key=lambda entry: entry[0])]


def dotted(location: Location) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{_field(step)}"
    return path.removeprefix(".")


def _field(name: str) -> str:
    """A field may be called anything until somebody has looked at it."""
    return name if name.isprintable() and len(name) <= _HEAD else repr(name[:_HEAD])
