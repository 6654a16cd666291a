"""JSON Schema (draft 7) of a whole Router document, for editors."""

from __future__ import annotations

from holdfast.resources import registry
from holdfast.resources.spec.document import Frame, RouterDocument
from holdfast.resources.spec.shape import Json, Shape, Spec


def json_schema() -> Json:
    document = spec_schema(RouterDocument)
    document["properties"]["spec"]["required"] = ["resources"]
    resources = document["properties"]["spec"]["properties"]["resources"]
    resources["items"] = _resource()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Holdfast Router",
        "description": "What one router shall be.",
        **document,
    }


def _resource() -> Json:
    frame = spec_schema(Frame)
    frame["properties"]["kind"] = {
        "enum": list(registry.names()),
        "description": "what is declared",
    }
    frame["allOf"] = [_kind(name) for name in registry.names()]
    return frame


def _kind(name: str) -> Json:
    kind = registry.kind(name)
    spec = {**spec_schema(kind.spec), "description": kind.summary}
    return {
        "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
        "then": {"properties": {"apiVersion": {"enum": registry.api_versions(name)}, "spec": spec}},
    }


def spec_schema(spec: type[Spec]) -> Json:
    properties = {}
    for entry in spec.entries:
        described = {**_shape(entry.shape), "description": entry.about}
        if isinstance(entry.default, str | int | bool):
            described["default"] = entry.default
        properties[entry.name] = described
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [entry.name for entry in spec.entries if entry.required],
        "properties": properties,
    }


def _shape(shape: Shape) -> Json:
    if shape.nested is None:
        return dict(shape.json)
    inner = spec_schema(shape.nested)
    if shape.many:
        return {**shape.json, "items": inner}
    # It may be written in one line, too.
    return {"anyOf": [dict(shape.json), inner]} if shape.json else inner
