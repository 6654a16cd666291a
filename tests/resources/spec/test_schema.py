"""The JSON Schema accepts what Holdfast accepts, and refuses what a schema can refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from holdfast.config.document import read_document
from holdfast.resources.spec.schema import json_schema
from tests.resources.routers import document

GOOD = sorted((Path(__file__).parents[1] / "cases").glob("*/router.yaml"))
BAD = Path(__file__).parents[2] / "config" / "bad"
VALIDATOR = jsonschema.Draft7Validator(json_schema())


def test_it_is_a_draft_7_schema() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())
    text = json.dumps(json_schema())
    for newer in ("$defs", "prefixItems", "unevaluatedProperties", "dependentRequired"):
        assert newer not in text


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.parent.name)
def test_good_files(path: Path) -> None:
    VALIDATOR.validate(read_document(path).data)


# Mistakes a schema for one document can see; references and clashes are beyond it.
VISIBLE = (
    "unknown-field", "unknown-field-nested", "many-at-once", "yaml-11-words", "unknown-kind",
    "wrong-group", "resources-missing", "resources-null", "not-a-list", "top-level-list",
    "ownership", "router-kind", "names", "ifnames", "macs", "spec-missing", "route-list-not-text",
    "resource-not-a-mapping", "sysctls", "rules", "routes", "addresses", "hostnames",
)  # fmt: skip


@pytest.mark.parametrize("name", VISIBLE)
def test_bad_files(name: str) -> None:
    assert not VALIDATOR.is_valid(read_document(BAD / name / "router.yaml").data)


@pytest.mark.parametrize(
    "spec",
    [
        {"ifname": "eth0", "mtu": 10},
        {"ifname": "eth0", "type": "vlan", "vlan": {"parent": "a", "id": 4095}},
        {"ifname": "eth0", "type": "tun"},
        {"ifname": "eth0", "vlan": {"id": 4, "parent": "a", "x": 1}},
        {"ifname": 5},
        {},
    ],
)
def test_bad_interface(spec: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(document(("Interface", "a", {"ifname": "eth0"})))
    assert not VALIDATOR.is_valid(document(("Interface", "a", spec)))


def test_every_field_is_described() -> None:
    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            for name, field in schema.get("properties", {}).items():
                described = "description" in field or "const" in field or "enum" in field
                assert described, name
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    walk({key: value for key, value in json_schema().items() if key != "if"})
