"""Configurations as the ledger keeps them: every generation with the files it came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import ConfigError, Refused
from holdfast.resources.router import Router, load_router
from holdfast.state.generations import CARRIED_OUT, REVERTED, Generation
from holdfast.state.latches import DYNAMIC
from holdfast.state.ledger import Ledger

_DOCUMENTS = (".yaml", ".yml", ".json")


def in_force(ledger: Ledger) -> Generation | None:
    """The newest generation that was not taken back."""
    return next(
        (generation for generation in ledger.generations() if generation.state != REVERTED), None
    )


def carried_out(ledger: Ledger) -> Generation | None:
    """The newest generation that a pass came to the end with and that was not taken back. Of one
    that was begun and no more, nothing may have been done: a trial that was refused, for one."""
    return next(
        (generation for generation in ledger.generations() if generation.state in CARRIED_OUT), None
    )


def startup_files(ledger: Ledger, number: int) -> dict[str, bytes]:
    """The files of a generation, without what other sources contributed."""
    found = ledger.generation_files(number)
    return {path: content for path, content in found.items() if not path.startswith(DYNAMIC)}


def load_generation(
    ledger: Ledger, number: int, root: Path, served: Path, *, on_host: bool = True
) -> tuple[Path, Router]:
    """The Router document of a generation, read from the ledger alone but for secrets, and where
    it stood. served: which file it is, if it is among them. on_host: whether its secrets have to
    be there. Refused where none can be read."""
    files = startup_files(ledger, number)
    problem = "it holds no Router document"
    for path in _candidates(files, served):
        try:
            router = load_router(Path(path), root, stored=files, on_host=on_host)
        except ConfigError as error:
            if path == str(served) or len(files) == 1:
                problem = str(error)
            continue
        if {file.path for file in router.files} == files.keys():
            return Path(path), router
    raise Refused(f"generation {number} cannot be read: {problem}")


def _candidates(files: Mapping[str, bytes], served: Path) -> list[str]:
    documents = [path for path in files if path.endswith(_DOCUMENTS)]
    first = [str(served)] if str(served) in files else []
    rest = [path for path in files if path not in documents]
    return list(dict.fromkeys((*first, *documents, *rest)))
