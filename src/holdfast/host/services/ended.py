"""Why programs of ours do not run, or had to be started again: for whoever asks how things are."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.engine.artifact import Artifact
from holdfast.errors import DriverError
from holdfast.host.services import backend as backends
from holdfast.host.services.driver import lacking
from holdfast.paths import Paths


def why(paths: Paths, services: Iterable[Artifact]) -> dict[str, str]:
    """By name, of those that ended by themselves: how, and the last line of what they said."""
    found: dict[str, str] = {}
    backend = backends.choose(paths)
    try:
        for service in services:
            name = service.key.name
            try:
                how = backend.ended(name)
                said = backend.last_words(name, 1) if how else ""
            except (OSError, ValueError, DriverError):
                continue  # the plan says what cannot be observed
            if how:
                words = f"service {name} {how}{': ' + said if said else ''}"
                found[name] = words + lacking(service)
    finally:
        backend.close()
    return found
