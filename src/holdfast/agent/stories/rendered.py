"""The effective config as one Router document, as if it had been written so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.config.document import parse
from holdfast.config.redaction import is_secret
from holdfast.resources.dynamic.effective import Effective

HIDDEN = "(a secret, not shown)"


def members(effective: Effective) -> Iterator[tuple[str, Any]]:
    data = parse(effective.startup.files[0]).data
    yield "apiVersion", data["apiVersion"]
    yield "kind", data["kind"]
    yield "metadata", data["metadata"]
    rest = {name: value for name, value in data["spec"].items() if name != "resources"}
    yield "spec", rest | {"resources": list(_resources(effective, data["spec"]["resources"]))}


def _resources(effective: Effective, declared: list[Any]) -> Iterator[Mapping[str, Any]]:
    """As they were written, those of parts after those of the file."""
    for resource in effective.router.resources:
        if not resource.part:
            yield _without_secrets(declared[resource.index])
    for part in effective.active:
        yield from map(_without_secrets, part.resources)


def _without_secrets(value: Any) -> Any:
    """By the names of fields: also in the environment of a plugin, where a name is the user's."""
    if isinstance(value, dict):
        return {
            name: HIDDEN if is_secret(name) and one is not None else _without_secrets(one)
            for name, one in value.items()
        }
    return [_without_secrets(one) for one in value] if isinstance(value, list) else value
