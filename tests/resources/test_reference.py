"""The reference page is what the code says, and its examples are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.document import SourceFile, parse
from holdfast.engine.kinds import KINDS
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.reference import example, render
from holdfast.resources.router import load_router
from tests.resources.routers import document

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "resources.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(), f"write it again: python -m {__name__}"


@pytest.mark.parametrize("name", list(registry.REGISTRY))
def test_example(name: str, tmp_path: Path) -> None:
    one: dict[str, Any] = parse(SourceFile("example", example(name).encode())).data
    whole = document(
        ("Interface", "lan", {"ifname": "eth1"}),
        ("IPv6StaticAddress", "six", {"interface": "lan", "address": "2001:db8:1::1/64"}),
    )
    whole["spec"]["resources"].append(one)
    path = tmp_path / "router.yaml"
    path.write_text(json.dumps(whole) + "\n")
    router = load_router(path)
    emitted = {
        intent.artifact.key.kind if hasattr(intent, "artifact") else intent.batch.kind.name
        for intent in compile_router(router).intents
        if intent.owner == f"{name}/example"
    }
    assert emitted == set(registry.kind(name).emits)


def test_every_kind_says_what_becomes_of_its_artifacts() -> None:
    for name in registry.REGISTRY:
        kind = registry.kind(name)
        assert kind.name == name
        assert kind.emits
        assert all(KINDS[artifact].cleanup for artifact in kind.emits)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render())
