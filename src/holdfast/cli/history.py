"""What the ledger's stored generations say about where something was declared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.config.document import SourceFile
from holdfast.engine.artifact import Key
from holdfast.errors import ConfigError
from holdfast.paths import Paths
from holdfast.resources.locate import declarations
from holdfast.resources.router import Router, load_router
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Past:
    generation: int  # the newest that declares it
    owner: str
    place: str


def last_declared(paths: Paths, key: Key) -> Past | None:
    """The newest generation that declares an artifact."""

    def owner_and_place(router: Router) -> tuple[str, str] | None:
        found = declarations(router, key)
        return (found[0].owner, found[0].place) if found else None

    return _search(paths, owner_and_place)


def last_resource(paths: Paths, identity: str) -> Past | None:
    """The newest generation that declares a resource."""

    def place(router: Router) -> tuple[str, str] | None:
        found = [resource for resource in router.resources if resource.id == identity]
        return (identity, found[0].place) if found else None

    return _search(paths, place)


def _search(paths: Paths, ask: Callable[[Router], tuple[str, str] | None]) -> Past | None:
    with Ledger.read(paths) as ledger:
        for generation in ledger.generations():
            files = ledger.generation_files(generation.number)
            with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
                for router in _routers(files, Path(folder)):
                    found = ask(router)
                    if found is not None:
                        owner, place = found
                        return Past(generation.number, owner, _as_named(place, files, folder))
    return None


def _routers(files: Mapping[str, bytes], folder: Path) -> Iterator[Router]:
    """The Router document among stored files, which name each other by their relative places."""
    for path, content in files.items():
        copy = _copy(path, folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    for path in files:
        if path.endswith((".yaml", ".yml", ".json")):
            try:
                router = load_router(_copy(path, folder))
            except ConfigError:
                continue  # written for an older Holdfast, or not a Router document
            if all(_is_stored(file, files, folder) for file in router.files):
                yield router


def _is_stored(file: SourceFile, files: Mapping[str, bytes], folder: Path) -> bool:
    """A file named by its absolute path is read from where it was, and may say else by now."""
    return file.path.startswith(str(folder)) or files.get(file.path) == file.content


def _copy(path: str, folder: Path) -> Path:
    # `..` is resolved by name: it must not lead out of the folder.
    return folder / os.path.normpath(Path(path).absolute()).lstrip("/")


def _as_named(place: str, files: Mapping[str, bytes], folder: str) -> str:
    """A place in a copy, said of the file it is a copy of."""
    for path in files:
        copy = str(_copy(path, Path(folder)))
        if place.startswith(copy):
            return path + place.removeprefix(copy)
    return place
