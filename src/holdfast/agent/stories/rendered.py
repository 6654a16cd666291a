"""The effective config as one Router document, as if it had been written so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.config.document import parse
from holdfast.resources.dynamic.contribution import SECRETS
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
            yield _without_secret(declared[resource.index])
    for part in effective.active:
        yield from part.resources


def _without_secret(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    field = SECRETS.get(raw["kind"], "")
    if not field or field not in raw["spec"]:
        return raw
    return {**raw, "spec": {**raw["spec"], field: HIDDEN}}
