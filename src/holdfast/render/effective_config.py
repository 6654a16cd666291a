"""The effective config as one Router document, as if it had been written so."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from holdfast.config.document import parse
from holdfast.config.redaction import is_secret
from holdfast.config.said_secrets import without_userinfo
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.spec.secret_fields import of_kind

HIDDEN = "(a secret, not shown)"


def members(effective: Effective) -> Iterator[tuple[str, Any]]:
    data = parse(effective.startup.files[0]).data
    yield "apiVersion", data["apiVersion"]
    yield "kind", data["kind"]
    yield "metadata", _without_secrets(data["metadata"], ())
    rest = {name: value for name, value in data["spec"].items() if name != "resources"}
    rest = _without_secrets(rest, ())
    yield "spec", rest | {"resources": list(_resources(effective, data["spec"]["resources"]))}


def _resources(effective: Effective, declared: list[Any]) -> Iterator[Mapping[str, Any]]:
    """As they were written, those of parts after those of the file."""
    for resource in effective.router.resources:
        if not resource.part:
            yield _without_secrets(declared[resource.index], of_kind(resource.kind))
    for part in effective.active:
        yield from (
            _without_secrets(document, of_kind(str(document["kind"])))
            for document in effective.documents(part)
        )


def _without_secrets(value: Any, declared: Collection[str]) -> Any:
    """By what the kind declares to be secret, and by the names of fields."""
    if isinstance(value, dict):
        return {
            name: _hidden(one)
            if one is not None and (is_secret(name) or name in declared)
            else _without_secrets(one, declared)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(one, declared) for one in value]
    return without_userinfo(value) if isinstance(value, str) else value


def _hidden(value: Any) -> Any:
    """Of what is handed to a program, the names may be shown."""
    return dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else HIDDEN
